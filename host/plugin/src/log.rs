//! What a plugin says, into the host's tracing: bounded in length, fields and lines per second.
//!
//! Owns the bounds and the attribution. It must not know where tracing sends the lines.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::limits::Limits;

/// Bytes of the last line of standard error that are kept for the reason of a trap.
const LAST_WORDS: usize = 256;

/// Everything that one instance says goes through this.
#[derive(Clone)]
pub(crate) struct LogGate {
    inner: Arc<Inner>,
}

struct Inner {
    plugin: Arc<str>,
    generation: u64,
    allowed: bool,
    line_bytes: usize,
    fields: usize,
    lines: u32,
    window: Mutex<Window>,
    /// The last line of standard error: what a panic says before it traps.
    last_words: Mutex<String>,
    #[cfg(test)]
    recorded: Option<Mutex<Vec<String>>>,
}

struct Window {
    began: Instant,
    lines: u32,
    dropped: u64,
}

impl LogGate {
    pub(crate) fn new(plugin: Arc<str>, generation: u64, allowed: bool, limits: &Limits) -> Self {
        Self {
            inner: Arc::new(Inner {
                plugin,
                generation,
                allowed,
                line_bytes: limits.log_line_bytes,
                fields: limits.log_fields,
                lines: limits.log_lines,
                window: Mutex::new(Window {
                    began: Instant::now(),
                    lines: 0,
                    dropped: 0,
                }),
                last_words: Mutex::new(String::new()),
                #[cfg(test)]
                recorded: None,
            }),
        }
    }

    /// Bytes of one line.
    pub(crate) fn line_bytes(&self) -> usize {
        self.inner.line_bytes
    }

    /// Remembers a line of standard error, whether it may be logged or not.
    pub(crate) fn heard(&self, line: &str) {
        let mut words = self.inner.last_words.lock();
        words.clear();
        words.push_str(cut(line, LAST_WORDS));
    }

    /// The last line of standard error.
    pub(crate) fn last_words(&self) -> Option<String> {
        let words = self.inner.last_words.lock();
        (!words.is_empty()).then(|| words.clone())
    }

    /// Whether a line of this level would be seen (0 trace, 1 debug, 2 info, 3 warn, 4 error).
    pub(crate) fn enabled(&self, level: u8) -> bool {
        self.inner.allowed
            && match level {
                0 => tracing::enabled!(target: "plugin", tracing::Level::TRACE),
                1 => tracing::enabled!(target: "plugin", tracing::Level::DEBUG),
                2 => tracing::enabled!(target: "plugin", tracing::Level::INFO),
                3 => tracing::enabled!(target: "plugin", tracing::Level::WARN),
                _ => tracing::enabled!(target: "plugin", tracing::Level::ERROR),
            }
    }

    /// Logs one line. Levels above 4 count as error.
    pub(crate) fn write(&self, level: u8, message: &str, fields: &[(&str, &str)]) {
        let inner = &*self.inner;
        if !inner.allowed {
            return;
        }
        let Some(dropped) = self.admit() else { return };
        let message = &*clean(cut(message, inner.line_bytes));
        let mut extra = String::new();
        for (name, value) in fields.iter().take(inner.fields) {
            let room = inner.line_bytes.saturating_sub(extra.len());
            extra.push_str(cut(&format!("{name}={value:?} "), room));
        }
        #[cfg(test)]
        if let Some(recorded) = &inner.recorded {
            recorded.lock().push(message.to_owned());
        }
        let (plugin, generation, fields) = (&*inner.plugin, inner.generation, extra.trim_end());
        if dropped > 0 {
            tracing::warn!(target: "plugin", plugin, generation, dropped, "log lines dropped: over the limit per second");
        }
        match level {
            0 => tracing::trace!(target: "plugin", plugin, generation, fields, "{message}"),
            1 => tracing::debug!(target: "plugin", plugin, generation, fields, "{message}"),
            2 => tracing::info!(target: "plugin", plugin, generation, fields, "{message}"),
            3 => tracing::warn!(target: "plugin", plugin, generation, fields, "{message}"),
            _ => tracing::error!(target: "plugin", plugin, generation, fields, "{message}"),
        }
    }

    /// Takes a place in this second; the answer is how many lines were dropped since the last one.
    fn admit(&self) -> Option<u64> {
        let mut window = self.inner.window.lock();
        if window.began.elapsed() >= Duration::from_secs(1) {
            window.began = Instant::now();
            window.lines = 0;
        }
        if window.lines >= self.inner.lines {
            window.dropped = window.dropped.saturating_add(1);
            return None;
        }
        window.lines = window.lines.saturating_add(1);
        Some(std::mem::take(&mut window.dropped))
    }

    #[cfg(test)]
    pub(crate) fn recording(lines: u32, line_bytes: usize) -> Self {
        let limits = Limits {
            log_lines: lines,
            log_line_bytes: line_bytes,
            ..Limits::default()
        };
        let mut gate = Self::new("test".into(), 1, true, &limits);
        if let Some(inner) = Arc::get_mut(&mut gate.inner) {
            inner.recorded = Some(Mutex::new(Vec::new()));
        }
        gate
    }

    #[cfg(test)]
    pub(crate) fn recorded(&self) -> Vec<String> {
        self.inner
            .recorded
            .as_ref()
            .map(|lines| lines.lock().clone())
            .unwrap_or_default()
    }
}

/// The text without control characters: a plugin must not be able to forge a second line, or to colour a terminal.
fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        Cow::Owned(text.chars().map(shown).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The longest beginning of at most `bytes` bytes that ends between two characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while end > 0 && !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_bounded_and_counted() {
        let gate = LogGate::recording(3, 16);
        for line in 0..10 {
            gate.write(2, &format!("line {line}"), &[]);
        }
        assert_eq!(gate.recorded().len(), 3);
        assert_eq!(gate.inner.window.lock().dropped, 7);
    }

    #[test]
    fn lines_cannot_be_forged() {
        let gate = LogGate::recording(3, 64);
        gate.write(2, "one\r\n\u{1b}[31mtwo\0", &[]);
        assert_eq!(gate.recorded(), ["one\u{fffd}\u{fffd}\u{fffd}[31mtwo\u{fffd}"]);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("é", 1), "");
    }
}
