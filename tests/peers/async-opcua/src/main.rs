//! async-opcua as a server to compare with: `peer-async-opcua [--port N] [--nodes N] [--policy none|encrypt]`.
//!
//! The library's defaults but for limits that a load test runs into, on one thread: with several it is no faster, and less fair.

#[path = "../../arguments.rs"]
mod arguments;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use opcua::crypto::SecurityPolicy;
use opcua::server::address_space::VariableBuilder;
use opcua::server::diagnostics::NamespaceMetadata;
use opcua::server::node_manager::memory::{SimpleNodeManager, simple_node_manager};
use opcua::server::{ANONYMOUS_USER_TOKEN_ID, Server, ServerBuilder, ServerHandle};
use opcua::types::{DataTypeId, MessageSecurityMode, NodeId, ObjectId};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::Arguments;

/// The namespace of the variables.
const NAMESPACE: &str = "urn:backplane:load";
/// The application's URI, which its certificate carries.
const APPLICATION: &str = "urn:backplane:peer:async-opcua";
/// Sessions, above what a load test opens.
const SESSIONS: usize = 2_000;
/// Most elements of an array, such as the operations of a request, and most items of a subscription; the default of both is 1,000.
const ARRAY: usize = 100_000;
/// Most notifications in a message: with more, the first one of many items is longer than the library's messages may be.
const NOTIFICATIONS: u64 = 1_000;
/// Publish requests of a session that may wait; the default is 20.
const PUBLISH_REQUESTS: usize = 1_000;
/// Fastest publishing and sampling interval in milliseconds, and how often subscriptions are looked at.
const FASTEST: u32 = 10;

fn main() -> ExitCode {
    let result = Arguments::of_process().and_then(|arguments| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(run(&arguments))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-async-opcua: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A folder for keys and trust lists that goes away with the process.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("peer-async-opcua-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

fn server(arguments: &Arguments, port: u16, keys: &Path) -> Result<(Server, ServerHandle), String> {
    let anonymous: &[&str] = &[ANONYMOUS_USER_TOKEN_ID];
    let namespace = NamespaceMetadata {
        namespace_uri: NAMESPACE.to_owned(),
        ..NamespaceMetadata::default()
    };
    let mut builder = ServerBuilder::new()
        .application_name("peer async-opcua")
        .application_uri(APPLICATION)
        .product_uri(APPLICATION)
        .host("127.0.0.1")
        .port(port)
        .pki_dir(keys)
        .discovery_urls(vec!["/".to_owned()])
        .max_sessions(SESSIONS)
        .max_array_length(ARRAY)
        .subscription_poll_interval_ms(u64::from(FASTEST))
        .with_node_manager(simple_node_manager(namespace, "load"))
        .add_endpoint(
            "none",
            ("/", SecurityPolicy::None, MessageSecurityMode::None, anonymous),
        );
    let limits = &mut builder.limits_mut().subscriptions;
    limits.max_monitored_items_per_sub = ARRAY;
    limits.max_notifications_per_publish = NOTIFICATIONS;
    limits.min_publishing_interval_ms = f64::from(FASTEST);
    limits.min_sampling_interval_ms = f64::from(FASTEST);
    limits.max_pending_publish_requests = PUBLISH_REQUESTS;
    limits.max_publish_requests_per_subscription = PUBLISH_REQUESTS;
    if arguments.encrypt {
        let policy = SecurityPolicy::Basic256Sha256;
        builder = builder
            .create_sample_keypair(true)
            .trust_client_certs(true)
            .add_endpoint("sign", ("/", policy, MessageSecurityMode::Sign, anonymous))
            .add_endpoint("encrypt", ("/", policy, MessageSecurityMode::SignAndEncrypt, anonymous));
    }
    builder.build()
}

fn add_variables(handle: &ServerHandle, nodes: u32) -> Result<(), String> {
    let namespace = handle.get_namespace_index(NAMESPACE).ok_or("no namespace")?;
    let manager = handle
        .node_managers()
        .get_of_type::<SimpleNodeManager>()
        .ok_or("no node manager")?;
    let space = manager.address_space();
    let mut space = space.write();
    for number in 0..nodes {
        let name = format!("v{number}");
        let id = NodeId::new(namespace, name.clone());
        let variable = VariableBuilder::new(&id, name.as_str(), name.as_str())
            .data_type(DataTypeId::Double)
            .value(f64::from(number))
            .writable()
            .organized_by(ObjectId::ObjectsFolder);
        if !variable.insert(&mut *space) {
            return Err(format!("{name} cannot be added"));
        }
    }
    Ok(())
}

async fn run(arguments: &Arguments) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await;
    let listener = listener.map_err(|error| format!("port {}: {error}", arguments.port))?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let mut ended = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let scratch = Scratch::new()?;
    let (server, handle) = server(arguments, port, &scratch.0)?;
    add_variables(&handle, arguments.nodes)?;
    println!("READY opc.tcp://127.0.0.1:{port}/ pid={}", std::process::id());
    tokio::select! {
        result = server.run_with(listener) => result,
        _ = ended.recv() => Ok(()),
    }
}
