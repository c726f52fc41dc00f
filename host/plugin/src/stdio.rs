//! A guest's standard output and error, line by line into tracing.
//!
//! Owns splitting and bounding. It must not know what the lines mean, and never blocks the guest.

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::log::LogGate;

/// Bytes a guest may write at once; more than a line, so that a line seldom needs two calls.
const PERMIT: usize = 16 << 10;

/// One of the two streams.
#[derive(Clone)]
pub(crate) struct LineStream {
    gate: LogGate,
    level: u8,
    stream: &'static str,
}

impl LineStream {
    /// A stream whose lines are logged at `level` (as in `log.write`).
    pub(crate) fn new(gate: LogGate, stream: &'static str, level: u8) -> Self {
        Self { gate, level, stream }
    }
}

impl IsTerminal for LineStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LineStream {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(LineWriter {
            target: self.clone(),
            line: Vec::new(),
        })
    }

    // Only asked for by interfaces that are not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

/// One handle to the stream. What it holds of an unfinished line is logged when it is dropped: a panic message often ends that way.
struct LineWriter {
    target: LineStream,
    line: Vec<u8>,
}

impl LineWriter {
    fn take(&mut self, bytes: &[u8]) {
        let bound = self.target.gate.line_bytes();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            // The rest of an endless line is dropped, not the memory for it grown.
            let room = bound.saturating_sub(self.line.len());
            self.line.extend_from_slice(text.get(..room).unwrap_or(text));
            if ended {
                self.log();
            }
        }
    }

    fn log(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end();
        if !text.is_empty() {
            // "note: run with `RUST_BACKTRACE=1`" comes after what matters.
            if self.target.level > 2 && !text.starts_with("note:") {
                self.target.gate.heard(text);
            }
            self.target
                .gate
                .write(self.target.level, text, &[("stream", self.target.stream)]);
        }
        self.line.clear();
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        self.log();
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LineWriter {
    async fn ready(&mut self) {}
}

impl OutputStream for LineWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_cut() {
        let gate = LogGate::recording(10, 8);
        let mut writer = LineWriter {
            target: LineStream::new(gate.clone(), "stdout", 2),
            line: Vec::new(),
        };
        writer.take(b"one\ntw");
        writer.take(b"o\n\n123456789abc\nrest");
        drop(writer);
        assert_eq!(gate.recorded(), ["one", "two", "12345678", "rest"]);
    }
}
