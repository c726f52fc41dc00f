//! Tries to leave: reads and writes files, connects, looks names up, reads secrets, the environment, clocks and randomness. Its start never succeeds; the fault
//! says what came of each try.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant, SystemTime};

use backplane_sdk::{Fault, NodeManager, StartReason, StatusCode, secret, setting};

#[derive(Default)]
struct ReachesOut;

fn outcome<T>(result: std::io::Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    }
}

impl NodeManager for ReachesOut {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let address: String = setting("address").unwrap_or_default();
        let began = Instant::now();
        let map: HashMap<u8, u8> = [(1, 2)].into();
        let tries = [
            ("passwd", outcome(std::fs::read("/etc/passwd"))),
            (
                "escape",
                outcome(std::fs::read("/data/../../../../../../../../etc/passwd")),
            ),
            ("link", outcome(std::fs::read("/data/link"))),
            ("own", outcome(std::fs::write("/data/own", [0; 10_000]))),
            ("much", outcome(std::fs::write("/data/much", vec![0; 200_000]))),
            ("import", outcome(std::fs::read("/import/in"))),
            ("import-write", outcome(std::fs::write("/import/out", b"x"))),
            ("connect", outcome(TcpStream::connect(&*address))),
            ("lookup", outcome(("localhost", 1).to_socket_addrs())),
            (
                "variable",
                std::env::var("PATH").map_or("none".to_owned(), |_| "some".to_owned()),
            ),
            ("secret", secret("key").unwrap_or_else(|| "none".to_owned())),
            (
                "early",
                SystemTime::UNIX_EPOCH
                    .elapsed()
                    .is_ok_and(|age| age < Duration::from_secs(3600))
                    .to_string(),
            ),
            (
                "alive",
                (began.elapsed() < Duration::from_secs(3600) && map.len() == 1).to_string(),
            ),
        ];
        let tries: Vec<_> = tries.iter().map(|(what, came)| format!("{what}={came}")).collect();
        Err(Fault::new(StatusCode::BAD_USER_ACCESS_DENIED, tries.join(" ")))
    }
}

backplane_sdk::plugin!(ReachesOut);
