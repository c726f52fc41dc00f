//! A server process: started, waited for, asked for its allocations, ended by SIGTERM, its folder removed.
//!
//! Owns one child. Knows how the product is started; of peers it knows a command line.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{LoadError, setup};

/// How long a server may take until READY; a first start makes keys.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(10);
/// How long it may take to write its allocations.
const ANSWER: Duration = Duration::from_secs(2);
/// Bytes of its log that are kept.
const LOG: usize = 256 * 1024;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// How to start a server.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// As it stands in the report.
    pub(crate) name: String,
    /// Program and arguments.
    pub(crate) command: Vec<OsString>,
    /// What the product is given besides; peers have none of it.
    pub(crate) product: Option<Product>,
}

/// What the product is started with.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// The plugin to install, and the text of its settings file.
    pub(crate) plugin: PathBuf,
    pub(crate) settings: String,
    /// The text of its configuration; its demonstration without.
    pub(crate) config: Option<String>,
}

/// A running server. Ended and reaped when dropped.
pub(crate) struct Server {
    child: Child,
    pid: u32,
    url: String,
    folder: PathBuf,
    log: Arc<Mutex<String>>,
    is_product: bool,
}

impl Server {
    /// Starts it, on the CPUs `cpus` (as taskset lists them) if given, and waits until it is ready.
    pub(crate) fn start(launch: &Launch, cpus: Option<&str>) -> Result<Self, LoadError> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("backplane-load-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut words = launch.command.clone();
        if let Some(product) = &launch.product {
            words.extend(install(&folder, product)?);
        }
        if let Some(cpus) = cpus {
            words.splice(0..0, ["taskset", "-c", cpus].map(OsString::from));
        }
        let (program, arguments) = words.split_first().ok_or_else(|| setup("an empty command"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| setup(format!("{}: {error}", launch.name)))?;
        let log = Arc::new(Mutex::new(String::new()));
        if let Some(stderr) = child.stderr.take() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || collect(stderr, &log));
        }
        let stdout = child.stdout.take();
        let mut server = Self {
            pid: child.id(),
            child,
            url: String::new(),
            folder,
            log,
            is_product: launch.product.is_some(),
        };
        let line = server.first_line(stdout.ok_or_else(|| setup("no standard output"))?)?;
        let (url, pid) = ready(&line).ok_or_else(|| setup(format!("{}: not READY but {line:?}", launch.name)))?;
        server.url = url;
        server.pid = pid;
        Ok(server)
    }

    fn first_line(&self, stdout: impl Read + Send + 'static) -> Result<String, LoadError> {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Only the first line has a reader; the others are read so that the pipe never fills.
                let _ = sender.send(line);
            }
        });
        receiver
            .recv_timeout(START)
            .map_err(|_| setup(format!("the server did not get ready; its log:\n{}", self.log())))
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The end of what it wrote to standard error.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it writes its allocations on SIGUSR1; another process would be ended by the signal, or start a debugger.
    fn counts(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        self.is_product && catches_user_signal(&status)
    }

    /// Allocations and their bytes since its start, if it counts them.
    pub(crate) fn allocations(&self) -> Option<(u64, u64)> {
        if !self.counts() {
            return None;
        }
        let before = self.log().matches("ALLOCATIONS ").count();
        self.signal(Signal::USR1);
        let deadline = Instant::now() + ANSWER;
        while Instant::now() < deadline {
            let log = self.log();
            if log.matches("ALLOCATIONS ").count() > before && log.ends_with('\n') {
                return log.lines().rev().find_map(allocations);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // A process that is gone needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + STOP;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        // All three fail when what they are for is done already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Puts plugin and configuration into a folder of their own; returns the product's arguments.
fn install(folder: &Path, product: &Product) -> Result<Vec<OsString>, LoadError> {
    let plugins = folder.join("plugins");
    std::fs::create_dir_all(&plugins)?;
    std::fs::write(plugins.join("load.toml"), &product.settings)?;
    let plugin = &product.plugin;
    std::fs::copy(plugin, plugins.join("load.wasm"))
        .map_err(|error| setup(format!("{}: {error}", plugin.display())))?;
    let mut arguments: Vec<OsString> = vec!["serve".into()];
    match &product.config {
        None => arguments.push("--demo".into()),
        Some(text) => {
            let file = folder.join("backplane.toml");
            std::fs::write(&file, text)?;
            arguments.extend(["--config".into(), file.into_os_string()]);
        }
    }
    arguments.extend(["--port", "0", "--state"].map(OsString::from));
    arguments.extend([
        folder.join("state").into_os_string(),
        "--plugins".into(),
        plugins.into_os_string(),
    ]);
    Ok(arguments)
}

/// URL and pid of a READY line.
fn ready(line: &str) -> Option<(String, u32)> {
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("READY") {
        return None;
    }
    let url = words.next()?.to_owned();
    let pid = words.next()?.strip_prefix("pid=")?.parse().ok()?;
    Some((url, pid))
}

/// The numbers of a line `ALLOCATIONS count=N bytes=M`.
fn allocations(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("ALLOCATIONS ")?;
    let mut words = rest.split_ascii_whitespace();
    let count = words.next()?.strip_prefix("count=")?.parse().ok()?;
    let bytes = words.next()?.strip_prefix("bytes=")?.parse().ok()?;
    Some((count, bytes))
}

/// Whether the text of `/proc/<pid>/status` says that SIGUSR1 (number 10, so bit 9) is caught.
fn catches_user_signal(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << 9) != 0)
}

fn collect(stream: impl Read, log: &Mutex<String>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(count) if count > 0) {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() > LOG {
            log.clear();
        }
        log.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{allocations, catches_user_signal, ready};

    #[test]
    fn lines_of_servers() {
        assert_eq!(
            ready("READY opc.tcp://127.0.0.1:4841/ pid=42"),
            Some(("opc.tcp://127.0.0.1:4841/".to_owned(), 42))
        );
        assert_eq!(ready("READY opc.tcp://127.0.0.1:4841/"), None);
        assert_eq!(ready("Listening"), None);
        assert_eq!(allocations("ALLOCATIONS count=17 bytes=4096"), Some((17, 4_096)));
        assert_eq!(allocations("ALLOCATIONS count=17"), None);
        assert_eq!(allocations("INFO nothing"), None);
    }

    #[test]
    fn a_signal_that_is_caught() {
        assert!(catches_user_signal(
            "SigIgn:\t0000000000001000\nSigCgt:\t0000000000000200\n"
        ));
        assert!(!catches_user_signal(
            "SigIgn:\t0000000000000200\nSigCgt:\t0000000000000100\n"
        ));
        assert!(!catches_user_signal(""));
    }
}
