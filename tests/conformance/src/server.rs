//! One server process with folders of its own; ended and reaped when dropped.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a server may take to print READY; a first start makes keys.
const START: Duration = Duration::from_secs(60);
/// How long a server may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(15);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A running server.
pub(crate) struct Server {
    child: Child,
    binary: PathBuf,
    url: String,
    folder: PathBuf,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts `binary` in its demonstration configuration on a free port, with `plugins` (source, installed name) in its folder.
    pub(crate) fn start(binary: &Path, plugins: &[(PathBuf, &str)]) -> Result<Self, String> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("backplane-conformance-{}-{number}", std::process::id()));
        let plugin_folder = folder.join("plugins");
        std::fs::create_dir_all(&plugin_folder).map_err(|error| format!("{}: {error}", plugin_folder.display()))?;
        for (source, name) in plugins {
            place(source, &plugin_folder, name)?;
        }
        let mut server = Self {
            child: spawn(binary, &folder)?,
            binary: binary.to_owned(),
            url: String::new(),
            folder,
            log: Arc::default(),
        };
        server.wait_ready()?;
        Ok(server)
    }

    /// SIGTERM, then the same program once more, with the same state and plugins, on another port.
    pub(crate) fn restart(&mut self) -> Result<(), String> {
        self.terminate()?;
        self.child = spawn(&self.binary, &self.folder)?;
        self.wait_ready()
    }

    /// Follows both streams of the child, and takes its address from the first line.
    fn wait_ready(&mut self) -> Result<(), String> {
        if let Some(mut stderr) = self.child.stderr.take() {
            let log = Arc::clone(&self.log);
            std::thread::spawn(move || collect(&mut stderr, &log));
        }
        let stdout = self.child.stdout.take().ok_or("no standard output")?;
        self.url = self.first_line(stdout)?;
        Ok(())
    }

    fn first_line(&self, stdout: impl Read + Send + 'static) -> Result<String, String> {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let line = receiver
            .recv_timeout(START)
            .map_err(|_| format!("the server did not get ready; its log:\n{}", self.log()))?;
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("READY"), Some(url), Some(pid)) if pid == format!("pid={}", self.child.id()) => Ok(url.to_owned()),
            _ => Err(format!(
                "the first line on standard output is not READY URL pid={}: {line:?}",
                self.child.id()
            )),
        }
    }

    /// Where it serves.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A folder for clients' keys, gone with the server.
    pub(crate) fn scratch(&self, client: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join(client);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Puts a component into the plugin folder under `name`, replacing what is there in one step.
    pub(crate) fn install(&self, source: &Path, name: &str) -> Result<(), String> {
        place(source, &self.folder.join("plugins"), name)
    }

    /// Everything on standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGTERM, then the exit code; anything but 0 is an error.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        self.terminate()
    }

    fn terminate(&mut self) -> Result<(), String> {
        let killed = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        killed.map_err(|error| format!("kill: {error}"))?;
        let deadline = Instant::now() + STOP;
        loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the server ended with {status}; its log:\n{}", self.log())),
                None if Instant::now() > deadline => {
                    return Err(format!("the server did not end {STOP:?} after SIGTERM"));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail when the process is already gone or the folder was never made, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Starts `binary` in its demonstration configuration on a free port; all it keeps is in `folder`.
fn spawn(binary: &Path, folder: &Path) -> Result<Child, String> {
    Command::new(binary)
        .args(["serve", "--demo", "--port", "0", "--state"])
        .arg(folder.join("state"))
        .arg("--plugins")
        .arg(folder.join("plugins"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", binary.display()))
}

/// Copies beside the target, then renames: a running server sees the old file or the new one.
fn place(source: &Path, folder: &Path, name: &str) -> Result<(), String> {
    let partial = folder.join(format!("{name}.partial"));
    let placed = folder.join(format!("{name}.wasm"));
    std::fs::copy(source, &partial)
        .and_then(|_| std::fs::rename(&partial, &placed))
        .map_err(|error| format!("cannot place {} as {}: {error}", source.display(), placed.display()))
}

fn collect(stream: &mut impl Read, log: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count) = stream.read(&mut buffer) {
        if count == 0 {
            return;
        }
        if let (Ok(mut log), Some(bytes)) = (log.lock(), buffer.get(..count)) {
            log.push_str(&String::from_utf8_lossy(bytes));
        }
    }
}
