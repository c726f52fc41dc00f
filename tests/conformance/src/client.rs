//! A client process: how it is started, and the JSON lines it prints.
//!
//! `{"case": NAME}` is a pass, `{"case": NAME, "problem": TEXT}` a failure, `{"event": "subscribed"}` says that a long
//! running script is where it should be before the harness goes on, and does what it has to; the script reads a word when that is done.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::tally::Tally;

/// Longest time for a whole script.
pub(crate) const SCRIPT: Duration = Duration::from_secs(300);

/// Which client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Asyncua,
    NodeOpcua,
    AsyncOpcua,
}

/// A client that can be started.
#[derive(Debug)]
pub(crate) struct Client {
    kind: Kind,
    /// The interpreter, the folder with its modules, or the binary.
    path: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    case: Option<String>,
    problem: Option<String>,
    event: Option<String>,
}

impl Client {
    pub(crate) fn new(kind: Kind, path: PathBuf) -> Self {
        Self { kind, path }
    }

    /// The name in `expect.toml`.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Asyncua => "asyncua",
            Kind::NodeOpcua => "node-opcua",
            Kind::AsyncOpcua => "async-opcua",
        }
    }

    /// Starts `script` (services, reload, ...) against `url`; keys and other files go to `scratch`.
    pub(crate) fn start(&self, script: &str, url: &str, scratch: &Path) -> Result<Running, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = match self.kind {
            Kind::Asyncua => {
                let mut command = Command::new(&self.path);
                command.arg(folder.join("asyncua").join("client.py"));
                command
            }
            Kind::NodeOpcua => {
                let mut command = Command::new("node");
                command
                    .arg(folder.join("node-opcua").join("client.js"))
                    .env("NODE_PATH", self.path.join("node_modules"));
                command
            }
            Kind::AsyncOpcua => Command::new(&self.path),
        };
        command.args([script, url]).arg(scratch).current_dir(scratch);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let errors = std::fs::File::create(scratch.join(format!("{script}.log"))).map_err(|error| error.to_string())?;
        command.stderr(errors);
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", self.name()))?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let log = scratch.join(format!("{script}.log"));
        Ok(Running {
            name: self.name(),
            script: script.to_owned(),
            child,
            lines,
            log,
        })
    }
}

/// A started script; killed and reaped when dropped.
pub(crate) struct Running {
    name: &'static str,
    script: String,
    child: Child,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Running {
    /// Takes reports until the script says some event; `None` when it has ended.
    pub(crate) fn next_event(&mut self, tally: &mut Tally) -> Result<Option<String>, String> {
        let deadline = Instant::now() + SCRIPT;
        while let Some(mut line) = self.next(deadline)? {
            if let Some(event) = line.event.take() {
                return Ok(Some(event));
            }
            self.report(line, tally);
        }
        Ok(None)
    }

    /// Takes reports until the script says `event`.
    pub(crate) fn wait_for(&mut self, event: &str, tally: &mut Tally) -> Result<(), String> {
        while let Some(said) = self.next_event(tally)? {
            if said == event {
                return Ok(());
            }
        }
        Err(format!(
            "{} {} ended before it said {event}:\n{}",
            self.name,
            self.script,
            self.tail()
        ))
    }

    /// Tells the script to go on: one line on its standard input.
    pub(crate) fn tell(&mut self, word: &str) -> Result<(), String> {
        let stdin = self.child.stdin.as_mut().ok_or("no standard input")?;
        writeln!(stdin, "{word}")
            .and_then(|()| stdin.flush())
            .map_err(|error| format!("{}: {error}", self.name))
    }

    /// Takes reports until the script ends; an exit code other than 0 is a failed case of its own.
    pub(crate) fn finish(mut self, tally: &mut Tally) -> Result<(), String> {
        let deadline = Instant::now() + SCRIPT;
        loop {
            match self.next(deadline) {
                Ok(Some(line)) => self.report(line, tally),
                Ok(None) => break,
                Err(problem) => {
                    let problem = format!("{problem}\n{}", self.tail());
                    tally.record(self.name, &format!("{}/ends", self.script), Some(&problem));
                    return Ok(());
                }
            }
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let problem = (!status.success()).then(|| format!("{status}\n{}", self.tail()));
        tally.record(self.name, &format!("{}/ends", self.script), problem.as_deref());
        Ok(())
    }

    fn next(&mut self, deadline: Instant) -> Result<Option<Line>, String> {
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                // Libraries print to standard output too; a line of ours is a JSON object.
                Ok(text) if !text.starts_with('{') => {}
                Ok(text) => {
                    return serde_json::from_str(&text)
                        .map(Some)
                        .map_err(|error| format!("{}: {text}: {error}", self.name));
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => return Err(format!("did not end within {SCRIPT:?}")),
            }
        }
    }

    fn report(&self, line: Line, tally: &mut Tally) {
        if let Some(case) = line.case {
            tally.record(self.name, &format!("{}/{case}", self.script), line.problem.as_deref());
        }
    }

    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
