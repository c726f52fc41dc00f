//! open62541 as a server to compare with: `peer-open62541 [--port N] [--nodes N] [--policy none|encrypt]`.
//!
//! The C library's defaults but for the number of sessions and channels and the fastest publishing and sampling interval.

#[path = "../../arguments.rs"]
mod arguments;
mod certificate;

use std::ffi::{CString, c_void};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::ptr;

use open62541_sys::{
    UA_ACCESSLEVELMASK_READ, UA_ACCESSLEVELMASK_STATUSWRITE, UA_ACCESSLEVELMASK_TIMESTAMPWRITE,
    UA_ACCESSLEVELMASK_WRITE, UA_Double, UA_LOCALIZEDTEXT_ALLOC, UA_Logger, UA_NODEID_NUMERIC, UA_NODEID_STRING_ALLOC,
    UA_NS0ID_BASEDATAVARIABLETYPE, UA_NS0ID_OBJECTSFOLDER, UA_NS0ID_ORGANIZES, UA_QUALIFIEDNAME_ALLOC, UA_Server,
    UA_Server_addNamespace, UA_Server_addVariableNode, UA_Server_newWithConfig, UA_Server_run_iterate,
    UA_Server_run_startup, UA_ServerConfig, UA_ServerConfig_setDefaultWithSecurityPolicies, UA_ServerConfig_setMinimal,
    UA_StatusCode, UA_String, UA_String_fromChars, UA_TYPES, UA_TYPES_DOUBLE, UA_VariableAttributes_default,
    UA_Variant_setScalarCopy,
};

use crate::arguments::Arguments;

/// The namespace of the variables.
const NAMESPACE: &str = "urn:backplane:load";
/// The application's URI, which its certificate carries.
const APPLICATION: &str = "urn:backplane:peer:open62541";
/// Sessions and channels, above what a load test opens.
const CONNECTIONS: u16 = 2_000;
/// Values may be read, and written with or without status and timestamp, as clients do either.
const ACCESS: u32 = UA_ACCESSLEVELMASK_READ
    | UA_ACCESSLEVELMASK_WRITE
    | UA_ACCESSLEVELMASK_STATUSWRITE
    | UA_ACCESSLEVELMASK_TIMESTAMPWRITE;
/// Fastest publishing and sampling interval in milliseconds.
const FASTEST: f64 = 10.0;

fn main() -> ExitCode {
    let result = Arguments::of_process().and_then(|arguments| run(&arguments));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-open62541: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A zero terminated copy; none of our texts contains a zero.
fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error| error.to_string())
}

/// A string that belongs to the library.
fn ua_string(text: &str) -> Result<UA_String, String> {
    let text = c_string(text)?;
    // SAFETY: `text` ends with a zero and lives through the call, which copies it.
    Ok(unsafe { UA_String_fromChars(text.as_ptr()) })
}

fn good(status: UA_StatusCode, what: &str) -> Result<(), String> {
    if status == 0 {
        Ok(())
    } else {
        Err(format!("{what}: 0x{status:08X}"))
    }
}

/// A logger that says nothing: standard output belongs to the READY line. It lives as long as the process.
fn silent_logger() -> *mut UA_Logger {
    Box::leak(Box::new(UA_Logger {
        log: None,
        context: ptr::null_mut(),
        clear: None,
    }))
}

fn config(arguments: &Arguments, port: u16) -> Result<UA_ServerConfig, String> {
    // SAFETY: all zeros is how the library wants a configuration before it is set up.
    let mut config: UA_ServerConfig = unsafe { std::mem::zeroed() };
    config.logging = silent_logger();
    if arguments.encrypt {
        let own = certificate::create(config.logging, APPLICATION)?;
        // SAFETY: the configuration is fresh; certificate and key are copied; there are no trust lists, so every client is trusted.
        let status = unsafe {
            UA_ServerConfig_setDefaultWithSecurityPolicies(
                &mut config,
                port,
                &own.certificate,
                &own.private_key,
                ptr::null(),
                0,
                ptr::null(),
                0,
                ptr::null(),
                0,
            )
        };
        good(status, "configuration with security")?;
    } else {
        // SAFETY: the configuration is fresh; there is no certificate.
        good(
            unsafe { UA_ServerConfig_setMinimal(&mut config, port, ptr::null()) },
            "configuration",
        )?;
    }
    config.applicationDescription.applicationUri = ua_string(APPLICATION)?;
    let urls = Box::leak(Box::new([ua_string(&format!("opc.tcp://127.0.0.1:{port}"))?]));
    config.serverUrls = urls.as_mut_ptr();
    config.serverUrlsSize = urls.len();
    for index in 0..config.endpointsSize {
        // SAFETY: the library allocated that many endpoints.
        let endpoint = unsafe { &mut *config.endpoints.add(index) };
        endpoint.server.applicationUri = ua_string(APPLICATION)?;
    }
    config.maxSecureChannels = CONNECTIONS;
    config.maxSessions = CONNECTIONS;
    config.publishingIntervalLimits.min = FASTEST;
    config.samplingIntervalLimits.min = FASTEST;
    Ok(config)
}

fn add_variable(server: *mut UA_Server, namespace: u16, number: u32) -> Result<(), String> {
    let name = c_string(&format!("v{number}"))?;
    let empty = c_string("")?;
    let value: UA_Double = f64::from(number);
    // SAFETY: `server` was made by the library and runs in this thread only; all texts end with a zero and are copied; the default
    // attributes are plain data without allocations of their own.
    let status = unsafe {
        let mut attributes = ptr::read(&raw const UA_VariableAttributes_default);
        let double = &raw const UA_TYPES[UA_TYPES_DOUBLE as usize];
        let status = UA_Variant_setScalarCopy(&mut attributes.value, (&raw const value).cast::<c_void>(), double);
        good(status, "value")?;
        attributes.displayName = UA_LOCALIZEDTEXT_ALLOC(empty.as_ptr(), name.as_ptr());
        attributes.dataType = ptr::read(&raw const (*double).typeId);
        attributes.valueRank = -1;
        attributes.accessLevel = ACCESS as u8;
        UA_Server_addVariableNode(
            server,
            UA_NODEID_STRING_ALLOC(namespace, name.as_ptr()),
            UA_NODEID_NUMERIC(0, UA_NS0ID_OBJECTSFOLDER),
            UA_NODEID_NUMERIC(0, UA_NS0ID_ORGANIZES),
            UA_QUALIFIEDNAME_ALLOC(namespace, name.as_ptr()),
            UA_NODEID_NUMERIC(0, UA_NS0ID_BASEDATAVARIABLETYPE),
            attributes,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    good(status, "variable")
}

/// The port that was asked for, or one that is free right now: the library does not say which one the system gave it.
fn free_port(port: u16) -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let address = listener.and_then(|listener| listener.local_addr());
    address
        .map(|address| address.port())
        .map_err(|error| format!("port {port}: {error}"))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let port = free_port(arguments.port)?;
    let mut config = config(arguments, port)?;
    // SAFETY: the configuration is whole, and is not used again after the server has taken it.
    let server = unsafe { UA_Server_newWithConfig(&mut config) };
    if server.is_null() {
        return Err("the server cannot be made".to_owned());
    }
    let namespace = c_string(NAMESPACE)?;
    // SAFETY: `server` is valid; the text ends with a zero and is copied.
    let namespace = unsafe { UA_Server_addNamespace(server, namespace.as_ptr()) };
    for number in 0..arguments.nodes {
        add_variable(server, namespace, number)?;
    }
    // SAFETY: `server` is valid and used by this thread alone.
    good(unsafe { UA_Server_run_startup(server) }, &format!("127.0.0.1:{port}"))?;
    println!("READY opc.tcp://127.0.0.1:{port}/ pid={}", std::process::id());
    loop {
        // SAFETY: as above. SIGTERM ends the process, as nothing handles it.
        unsafe { UA_Server_run_iterate(server, true) };
    }
}
