//! The server process: started in a folder of its own, killed and reaped when its guard goes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::PATIENCE;

/// The configuration that [`Server::with`] begins with; `[limits]` is open at its end.
const BASE: &str = "[server]\napplication-uri = \"urn:backplane:test\"\nlisten = \"127.0.0.1:0\"\n[security]\nallow-none = true\nauto-trust = true\n[users]\nanonymous = true\n[limits]\n";

/// Between two looks at what is in use.
const LOOK: Duration = Duration::from_millis(5);

/// How long a server may take to start: it compiles its components, and others may want the processors too.
const START: Duration = Duration::from_secs(240);

/// Before what is in use, in the log.
const IN_USE: &str = "in use: ";

/// Whoever can be connected to.
pub(crate) trait Reachable {
    /// `127.0.0.1:port`.
    fn address(&self) -> &str;

    /// `opc.tcp://127.0.0.1:port/`.
    fn url(&self) -> String {
        format!("opc.tcp://{}/", self.address())
    }
}

/// The address of a server, for tasks that have nothing to do with the process.
#[derive(Clone, Debug)]
pub(crate) struct Place(Arc<str>);

impl Reachable for Place {
    fn address(&self) -> &str {
        &self.0
    }
}

/// What is in use of a server, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Usage(BTreeMap<String, u64>);

impl Usage {
    /// From a line of the log.
    pub(crate) fn of(line: &str) -> Self {
        let pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
        let pairs = pairs.filter_map(|(name, number)| Some((name.to_owned(), number.parse().ok()?)));
        let usage = Self(pairs.collect());
        assert_eq!(usage.0.len(), 11, "eight stages, owners, requests, queued: {line}");
        usage
    }

    /// One number.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0[name]
    }

    /// Whether nothing is in use.
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.values().all(|number| *number == 0)
    }
}

/// The binary under test.
/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("BACKPLANE_BINARY")
        .or_else(|| option_env!("CARGO_BIN_EXE_backplane").map(Into::into))
        .expect("BACKPLANE_BINARY names the binary under test")
        .into()
}

/// Runs a command of the binary to its end, with `input` on standard input.
pub(crate) fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(binary())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input has closed the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The lines of one stream of a process, as they come.
pub(crate) struct Lines {
    receiver: Receiver<String>,
    /// All lines taken so far.
    pub(crate) seen: Vec<String>,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            receiver,
            seen: Vec::new(),
        }
    }

    /// Waits for a line that was not taken before and contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        self.wait_long_for(text, PATIENCE)
    }

    fn wait_long_for(&mut self, text: &str, patience: Duration) -> String {
        let end = Instant::now() + patience;
        while let Ok(line) = self
            .receiver
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
        panic!("no line with {text:?} among {:#?}", self.seen);
    }

    /// A line that contains `text`, whether it was taken before or is still to come.
    pub(crate) fn ever(&mut self, text: &str) -> String {
        match self.seen.iter().find(|line| line.contains(text)) {
            Some(line) => line.clone(),
            None => self.wait_for(text),
        }
    }

    /// Takes what is there, without waiting for more.
    fn take(&mut self) {
        self.seen.extend(self.receiver.try_iter());
    }

    /// Takes everything up to the end of the stream; false when it does not end.
    fn finish(&mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        loop {
            match self
                .receiver
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.seen.push(line),
                Err(error) => return error == std::sync::mpsc::RecvTimeoutError::Disconnected,
            }
        }
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    arguments: Vec<String>,
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    pub(crate) out: Lines,
    pub(crate) log: Lines,
}

impl Server {
    /// The demonstration without plugins: None and all policies, anonymous and user1/password1.
    pub(crate) fn demo() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        Self::start(folder, &["--demo", "--port", "0", "--state", state.to_str().unwrap()])
    }

    /// The demonstration with these files in its plugin folder.
    pub(crate) fn with_plugins(files: &[(&str, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (state, plugins) = (folder.path().join("state"), folder.path().join("plugins"));
        fs::create_dir(&plugins).unwrap();
        for (name, bytes) in files {
            fs::write(plugins.join(name), bytes).unwrap();
        }
        let (state, plugins) = (state.to_str().unwrap().to_owned(), plugins.to_str().unwrap().to_owned());
        Self::start(
            folder,
            &["--demo", "--port", "0", "--state", &state, "--plugins", &plugins],
        )
    }

    /// A server with None and anonymous users and these lines in `[limits]`.
    pub(crate) fn with(limits: &str) -> Self {
        Self::configured(&format!("{BASE}{limits}\n"))
    }

    /// A server with this configuration.
    pub(crate) fn configured(config: &str) -> Self {
        let none: [(&str, Vec<u8>); 0] = [];
        Self::with_files(config, &none)
    }

    /// A server with this configuration, and these files beside it.
    pub(crate) fn with_files(config: &str, files: &[(impl AsRef<Path>, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let file = folder.path().join("backplane.toml");
        fs::write(&file, config).unwrap();
        Self::start(folder, &["--config", file.to_str().unwrap()])
    }

    /// A server with these arguments, which keeps `folder`.
    pub(crate) fn start(folder: TempDir, arguments: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let log = Lines::of(child.stderr.take().unwrap());
        // From here on the guard ends the process, whatever happens.
        let mut server = Self {
            child,
            folder,
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            address: String::new(),
            out,
            log,
        };
        let ready = server.out.wait_long_for("READY ", START);
        let url = ready.split(' ').nth(1).unwrap();
        server.address = url.trim_start_matches("opc.tcp://").trim_end_matches('/').to_owned();
        server
    }

    /// Stops it as an operator does, and starts it again with what it left.
    pub(crate) fn restarted(self) -> Self {
        self.stopped(|_| {})
    }

    /// The same with something done to its folder in between.
    pub(crate) fn stopped(mut self, meanwhile: impl FnOnce(&Path)) -> Self {
        self.signal("TERM");
        assert_eq!(self.wait().code(), Some(0));
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        meanwhile(folder.path());
        let arguments = std::mem::take(&mut self.arguments);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Self::start(folder, &arguments)
    }

    pub(crate) fn url(&self) -> String {
        Reachable::url(self)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder of configuration and state.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where it is, without the process.
    pub(crate) fn place(&self) -> Place {
        Place(self.address.as_str().into())
    }

    /// The largest resident size of the process so far, KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The resident size of the process now, KiB.
    pub(crate) fn resident_memory(&self) -> u64 {
        self.memory("VmRSS:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// How many files and sockets the process has open.
    pub(crate) fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// What is in use now, as the server says when it is told to read its configuration again.
    pub(crate) fn usage(&mut self) -> Usage {
        self.signal("HUP");
        Usage::of(&self.log.wait_for(IN_USE))
    }

    /// Looks until so many files and sockets are open; more may be for a moment, when the server looks at its folders.
    pub(crate) async fn files_until(&self, wanted: usize) {
        let end = Instant::now() + PATIENCE;
        loop {
            let open = self.open_files();
            if open == wanted {
                return;
            }
            assert!(Instant::now() < end, "{open} files are open instead of {wanted}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Looks at the log until it is as it should be; gives up after [`PATIENCE`].
    pub(crate) async fn log_until(&mut self, what: &str, mut hit: impl FnMut(&[String]) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            self.log.take();
            if hit(&self.log.seen) {
                return;
            }
            assert!(Instant::now() < end, "{what}: not in the log");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Asks until what is in use is as it should be; gives up after [`PATIENCE`].
    pub(crate) async fn usage_until(&mut self, what: &str, hit: impl Fn(&Usage) -> bool) -> Usage {
        let end = Instant::now() + PATIENCE;
        loop {
            let usage = self.usage();
            if hit(&usage) {
                return usage;
            }
            assert!(Instant::now() < end, "{what}: {usage:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.pid().to_string())
            .status()
            .unwrap();
        assert!(status.success(), "kill -{name}");
    }

    /// Waits for the end of the process: its standard output ends with it.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        assert!(self.out.finish(), "the server does not end");
        self.child.wait().unwrap()
    }

    /// Whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Reachable for Server {
    fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has been reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let _ = self
                .log
                .receiver
                .recv_timeout(Duration::from_secs(1))
                .map(|line| self.log.seen.push(line));
            self.log.seen.extend(self.log.receiver.try_iter());
            eprintln!("log of the server:\n{}", self.log.seen.join("\n"));
        }
    }
}
