//! Counting instructions: this program again, under callgrind, which tells for each function how many it took.
//!
//! Collection is on inside the functions whose names start with `measured_` and nowhere else, so what prepares the work does not count. It must not know
//! what the work is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use backplane_crypto::{ApplicationCertificateRequest, SystemRandom, create_application_certificate};
use backplane_types::DateTime;

use crate::work::PIECES;

/// Names the folder with the keys, which the measured process cannot make: that would take it minutes.
const KEYS: &str = "BACKPLANE_INSTRUCTIONS_KEYS";

/// A private key in PEM, and its certificate in DER.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) private: Vec<u8>,
    pub(crate) certificate: Vec<u8>,
}

/// The keys of both ends of a channel.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) server: Key,
    pub(crate) client: Key,
}

pub(crate) fn has_valgrind() -> bool {
    let mut command = Command::new("valgrind");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Architecture, and the instruction sets that change what libraries do.
pub(crate) fn machine() -> String {
    let mut words = vec![std::env::consts::ARCH];
    #[cfg(target_arch = "x86_64")]
    for (name, is_there) in [
        ("aes", is_x86_feature_detected!("aes")),
        ("avx2", is_x86_feature_detected!("avx2")),
    ] {
        if is_there {
            words.push(name);
        }
    }
    words.join(" ")
}

impl Keys {
    /// The keys in the folder that the environment names, or new ones.
    pub(crate) fn get() -> Result<Self, String> {
        let get = |name: &str| match std::env::var_os(KEYS) {
            Some(folder) => Key::read(Path::new(&folder), name),
            None => Key::new(name),
        };
        Ok(Self {
            server: get("server")?,
            client: get("client")?,
        })
    }

    fn write(&self, folder: &Path) -> Result<(), String> {
        self.server.write(folder, "server")?;
        self.client.write(folder, "client")
    }
}

impl Key {
    fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let read = |ending: &str| fs::read(folder.join(name).with_extension(ending)).map_err(|error| error.to_string());
        Ok(Self {
            private: read("pem")?,
            certificate: read("der")?,
        })
    }

    fn write(&self, folder: &Path, name: &str) -> Result<(), String> {
        let write = |ending: &str, bytes: &[u8]| {
            fs::write(folder.join(name).with_extension(ending), bytes).map_err(|error| error.to_string())
        };
        write("pem", &self.private)?;
        write("der", &self.certificate)
    }

    fn new(name: &str) -> Result<Self, String> {
        let request = ApplicationCertificateRequest {
            application_uri: format!("urn:backplane:instructions:{name}"),
            common_name: name.to_owned(),
            organization: String::new(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            key_bits: 2_048,
            not_before: DateTime::from_unix_nanos(1_790_000_000_000_000_000),
            validity: Duration::from_secs(86_400),
        };
        let made = create_application_certificate(&request, &mut SystemRandom).map_err(|error| error.to_string())?;
        let private = made.private_key.to_pkcs8_pem().map_err(|error| error.to_string())?;
        Ok(Self {
            private: private.as_bytes().to_vec(),
            certificate: made.certificate.der().to_vec(),
        })
    }
}

/// Instructions for one operation of each piece of work.
pub(crate) fn all() -> Result<BTreeMap<String, f64>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    Keys::get()?.write(folder.path())?;
    let out = folder.path().join("dump");
    let mut option = OsString::from("--callgrind-out-file=");
    option.push(&out);
    let itself = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=*measured_*",
        ])
        .arg(option)
        .arg(itself)
        .arg("--run")
        .env(KEYS, folder.path())
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "valgrind: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let text = fs::read_to_string(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let counts = PIECES.iter().map(|piece| {
        let total = total_of(&text, piece.name).ok_or_else(|| format!("nothing was counted for {}", piece.name))?;
        Ok((piece.name.to_owned(), total as f64 / f64::from(piece.count)))
    });
    counts.collect()
}

/// The instructions of the function `measured_NAME` and everything it called; none if it did not run.
///
/// In the blocks of a function (from its `fn=` to the next) every line of two numbers is a position and a count: of its own instructions, or of a
/// call's if the line follows `calls=`.
fn total_of(dump: &str, name: &str) -> Option<u64> {
    let mut total = None;
    let mut is_inside = false;
    // Names are written out once, and are numbers from then on.
    let mut number = None;
    for line in dump.lines() {
        let (is_function, function) = match (line.strip_prefix("fn="), line.strip_prefix("cfn=")) {
            (Some(function), _) => (true, function),
            (None, Some(function)) => (false, function),
            (None, None) => (false, ""),
        };
        let (id, function) = function.split_once(' ').unwrap_or((function, ""));
        if is_measured(function, name) {
            number = Some(id);
        }
        if is_function {
            is_inside = number == Some(id);
        } else if is_inside && line.starts_with(['+', '-', '*', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            let count: u64 = line.rsplit(' ').next()?.parse().ok()?;
            total = Some(total.unwrap_or(0) + count);
        }
    }
    total
}

/// Whether a function is `measured_NAME` itself, with or without the hash that some compilers append.
fn is_measured(function: &str, name: &str) -> bool {
    let mut segments = function.rsplit("::");
    let is_it = |segment: Option<&str>| segment.and_then(|segment| segment.strip_prefix("measured_")) == Some(name);
    is_it(segments.next()) || is_it(segments.next()) && !function.ends_with('}')
}

#[cfg(test)]
mod tests {
    use super::total_of;

    const DUMP: &str = "\
events: Ir
fn=(1) core::fmt::write
10 1000
cfn=(2) work::measured_a
calls=1 1
* 326
fn=(2)
fi=(7) other.rs
20 5
+3 7
cfn=(1)
calls=3 10
* 300
fn=(3) work::measured_ab
1 11
fn=(4) work::measured_a::{{closure}}
1 13
fn=(5) work::measured_b::h0123456789abcdef
1 17
fn=(2)
-2 1

totals: 1354
";

    #[test]
    fn a_function_counts_with_what_it_calls() {
        assert_eq!(total_of(DUMP, "a"), Some(313));
        assert_eq!(total_of(DUMP, "ab"), Some(11));
        assert_eq!(total_of(DUMP, "b"), Some(17));
        assert_eq!(total_of(DUMP, "c"), None);
    }
}
