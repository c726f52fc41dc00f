//! Components for servers under test. They are built before the tests; without them, what needs one is skipped, and says so.

use std::fs;
use std::path::PathBuf;

use backplane_types::{NodeId, ReadRequest, RequestHeader};

use super::peer::read_of;
use super::{Peer, Server};

/// Where the components are.
pub(crate) const GUESTS: &str = "BACKPLANE_TEST_GUESTS";

/// A call of this component takes as long as anybody waits for it: no deadline of its own ends it.
const PATIENT: &str =
    "[limits]\nread = { wall = \"3600s\" }\nwake = { wall = \"3600s\" }\ndrain = \"100ms\"\nmailbox = 20000\n";

/// Everything before `[limits]`, which is open at its end.
const BASE: &str = "[server]\napplication-uri = \"urn:backplane:test\"\nlisten = \"127.0.0.1:0\"\n[security]\nallow-none = true\nauto-trust = true\n[users]\nanonymous = true\n[plugins]\nfolder = \"plugins\"\n[log]\nfilter = \"info,backplane::server=debug\"\n[limits]\n";

/// The bytes of a component. Without the folder of components: nothing, and a line on standard error.
pub(crate) fn guest(name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os(GUESTS).map(PathBuf::from) else {
        eprintln!("SKIPPED: what needs the component {name} is not tested: {GUESTS} names no folder of components");
        return None;
    };
    // As it is installed, or as the compiler calls it.
    let names = [name.to_owned(), name.replace('-', "_")];
    let found = names
        .iter()
        .find_map(|name| fs::read(folder.join(format!("{name}.wasm"))).ok());
    Some(found.unwrap_or_else(|| panic!("no component {name} in {}", folder.display())))
}

/// A server with components and their settings, and these lines in `[limits]` and after it. Nothing without the components.
pub(crate) fn with_guests(limits: &str, guests: &[(&str, &str)]) -> Option<Server> {
    let mut files = Vec::new();
    for (name, settings) in guests {
        files.push((format!("plugins/{name}.wasm"), guest(name)?));
        files.push((format!("plugins/{name}.toml"), settings.as_bytes().to_vec()));
    }
    Some(Server::with_files(&format!("{BASE}{limits}\n"), &files))
}

/// A server with a component that answers no Read before anybody's deadline.
pub(crate) struct Sleeper {
    pub(crate) server: Server,
    /// A node whose value the component has to be asked for.
    pub(crate) asked: NodeId,
}

impl Sleeper {
    /// With these lines in `[limits]` and after it. Nothing without the component.
    pub(crate) async fn start(limits: &str) -> Option<Self> {
        let server = with_guests(limits, &[("sleeps", PATIENT)])?;
        let mut peer = Peer::new(&server).await;
        let namespace = peer.namespace("urn:backplane:test:sleeps").await;
        let namespace = namespace.expect("the component is loaded before the server is ready");
        peer.close().await;
        Some(Self {
            server,
            asked: NodeId::string(namespace, "Asked"),
        })
    }

    /// A Read that waits for the component, with a handle and a hint of ms.
    pub(crate) fn read(&self, request_handle: u32, timeout_hint: u32) -> ReadRequest {
        waiting_read(&self.asked, request_handle, timeout_hint)
    }
}

/// See [`Sleeper::read`].
pub(crate) fn waiting_read(asked: &NodeId, request_handle: u32, timeout_hint: u32) -> ReadRequest {
    ReadRequest {
        request_header: RequestHeader {
            request_handle,
            timeout_hint,
            ..RequestHeader::default()
        },
        ..read_of(asked.clone())
    }
}
