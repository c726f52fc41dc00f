//! What a plugin asks of the host, as plain functions and small types. Owns no state: every call goes to [`crate::backend`].

use std::marker::PhantomData;
use std::time::Duration;

pub use crate::bindings::backplane::host::values::{Mark, Update};

use crate::backend;
use crate::{DataValue, DateTime, Fault, Namespace, NodeId, QualifiedName, StatusCode, Typed, Value};

/// The number that the plugin gives to one of its nodes, with the type of its value. Declare tags as constants, different from each other, from 1 up.
///
/// ```
/// # use backplane_sdk::Tag;
/// const LEVEL: Tag<f64> = Tag::new(1);
/// assert!(LEVEL == 1);
/// ```
pub struct Tag<T> {
    number: u32,
    type_of_value: PhantomData<fn() -> T>,
}

impl<T> Tag<T> {
    /// For a node that is never named again.
    pub const NONE: Tag<T> = Tag::new(0);

    /// A tag of the plugin's own choice, the same in every version of the plugin.
    pub const fn new(number: u32) -> Self {
        Tag {
            number,
            type_of_value: PhantomData,
        }
    }

    /// The number that read, write and invoke get.
    pub const fn number(self) -> u32 {
        self.number
    }
}

impl<T: Typed> Tag<T> {
    /// A new Good value to publish, stamped by the host on arrival.
    pub fn set(self, value: impl Into<T>) -> Update {
        Update {
            tag: self.number,
            value: DataValue {
                value: value.into().into_value(),
                status: 0,
                source_time: 0,
            },
        }
    }

    /// A new value with status or time to publish.
    pub fn update(self, value: DataValue) -> Update {
        Update {
            tag: self.number,
            value,
        }
    }
}

impl<T> Clone for Tag<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tag<T> {}

impl<T> std::fmt::Debug for Tag<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tag({})", self.number)
    }
}

impl<T> PartialEq<u32> for Tag<T> {
    fn eq(&self, other: &u32) -> bool {
        self.number == *other
    }
}

impl<T> PartialEq<Tag<T>> for u32 {
    fn eq(&self, other: &Tag<T>) -> bool {
        *self == other.number
    }
}

/// The index of a namespace in the plugin's own table, added to the server's when it is new.
pub fn namespace(uri: &str) -> Namespace {
    Namespace(backend::address_space::namespace(uri))
}

/// Follows a browse path from `start`.
///
/// # Errors
/// The status of TranslateBrowsePathsToNodeIds, such as `BAD_NO_MATCH`.
pub fn resolve(start: &NodeId, path: &[QualifiedName]) -> Result<NodeId, StatusCode> {
    backend::address_space::resolve(start, path).map_err(StatusCode)
}

/// Sets current values, in order. What can be applied is applied, also when there is an error.
///
/// # Errors
/// The first refusal, in words: an unknown tag or a value of the wrong type.
pub fn publish(updates: &[Update]) -> Result<(), Fault> {
    match publish_each(updates)?.first() {
        None => Ok(()),
        Some((tag, status)) => Err(Fault::new(
            *status,
            format!("publish: the value for tag {tag} was refused"),
        )),
    }
}

/// Sets current values, in order, and says which tags were refused and why.
///
/// # Errors
/// The host takes nothing at all.
pub fn publish_each(updates: &[Update]) -> Result<Vec<(u32, StatusCode)>, Fault> {
    Ok(backend::values::publish(updates)?
        .into_iter()
        .map(|(tag, status)| (tag, StatusCode(status)))
        .collect())
}

/// Marks every variable of the plugin with a status; values and source times stay.
pub fn degrade_all(status: StatusCode) {
    backend::values::degrade(&[Mark {
        tags: None,
        status: status.0,
    }]);
}

/// Marks some variables with a status; values and source times stay.
pub fn degrade(tags: &[u32], status: StatusCode) {
    backend::values::degrade(&[Mark {
        tags: Some(tags.to_vec()),
        status: status.0,
    }]);
}

/// Emits an event of `event_type` from `source` and returns its EventId. Fields are named by browse path: "Severity", "1:Level".
///
/// # Errors
/// The type or a field does not exist, or the host takes no more events.
pub fn emit(source: &NodeId, event_type: &NodeId, fields: &[(&str, Value)]) -> Result<Vec<u8>, Fault> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    backend::events::emit(source, event_type, &fields)
}

/// Calls `wake` with `token` again and again.
pub fn every(period: Duration, token: u64) {
    backend::timers::every(milliseconds(period), token);
}

/// Calls `wake` with `token` once.
pub fn after(delay: Duration, token: u64) {
    backend::timers::after(milliseconds(delay), token);
}

/// Stops the timer with this token.
pub fn cancel(token: u64) {
    backend::timers::cancel(token);
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The time of day.
pub fn utc() -> DateTime {
    DateTime(backend::clock::utc())
}

/// The time since a fixed moment in the life of the host: never goes back, and runs on through a reload.
pub fn monotonic() -> Duration {
    Duration::try_from_secs_f64(backend::clock::monotonic() / 1000.0).unwrap_or_default()
}

/// A counter for the operator's dashboards.
pub fn metric_add(name: &str, delta: f64) {
    backend::metrics::add(name, delta, &[]);
}

/// A gauge for the operator's dashboards.
pub fn metric_gauge(name: &str, value: f64) {
    backend::metrics::gauge(name, value, &[]);
}

/// A key-value store that survives restarts and reloads; what one call writes becomes durable together when that call returns.
pub mod store {
    use super::{Fault, backend};

    /// What is kept under `key`, with what this call has changed.
    ///
    /// # Errors
    /// None by a host that has the store.
    pub fn get(key: &str) -> Result<Option<Vec<u8>>, Fault> {
        backend::store::get(key)
    }

    /// Keeps `value` under `key`.
    ///
    /// # Errors
    /// `BadInvalidArgument` for a key that is empty or longer than 256 bytes, `BadOutOfMemory` when the store is full (`limits.store` of the operator),
    /// `BadInvalidState` when another generation serves.
    pub fn set(key: &str, value: &[u8]) -> Result<(), Fault> {
        backend::store::set(key, value)
    }

    /// Nothing is kept under `key` any more.
    ///
    /// # Errors
    /// As [`set`].
    pub fn remove(key: &str) -> Result<(), Fault> {
        backend::store::remove(key)
    }

    /// The keys that begin with `prefix`.
    ///
    /// # Errors
    /// As [`get`].
    pub fn keys(prefix: &str) -> Result<Vec<String>, Fault> {
        backend::store::keys(prefix)
    }
}

/// The call that is running: who asks, and how long the answer is of use. After the call every answer is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(pub(crate) u32);

impl Call {
    /// When the client stops waiting.
    pub fn deadline(self) -> DateTime {
        DateTime(backend::context::deadline(self.0))
    }

    /// Whether nobody waits any more.
    pub fn cancelled(self) -> bool {
        backend::context::cancelled(self.0)
    }

    /// A pseudonym of the client's session, stable for this plugin.
    pub fn client(self) -> String {
        backend::context::client(self.0)
    }

    /// The user, if the session has one.
    pub fn user(self) -> Option<String> {
        backend::context::user(self.0)
    }

    /// The roles of the user.
    pub fn roles(self) -> Vec<String> {
        backend::context::roles(self.0)
    }

    /// The locales that the session prefers.
    pub fn locales(self) -> Vec<String> {
        backend::context::locales(self.0)
    }

    /// Whom the work is charged to.
    pub fn isolation_owner(self) -> String {
        backend::context::isolation_owner(self.0)
    }

    /// The W3C trace context of the request, if it came with one.
    pub fn trace_parent(self) -> Option<String> {
        backend::context::trace_parent(self.0)
    }
}

/// What transport and session have established about a peer, for classifiers. Under SecurityPolicy None there is no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub(crate) u32);

impl Peer {
    /// "192.0.2.7" or "2001:db8::1", without a port.
    pub fn address(self) -> Option<String> {
        backend::evidence::address(self.0)
    }

    /// The endpoint that the client asked for.
    pub fn endpoint_url(self) -> Option<String> {
        backend::evidence::endpoint_url(self.0)
    }

    /// The URI of the security policy.
    pub fn security_policy(self) -> Option<String> {
        backend::evidence::security_policy(self.0)
    }

    /// 1 None, 2 Sign, 3 SignAndEncrypt; 0 before the channel is open.
    pub fn security_mode(self) -> u32 {
        backend::evidence::security_mode(self.0)
    }

    /// The ApplicationUri of the client's certificate.
    pub fn application_uri(self) -> Option<String> {
        backend::evidence::application_uri(self.0)
    }

    /// The SHA-256 of the client's certificate.
    pub fn certificate_sha256(self) -> Option<Vec<u8>> {
        backend::evidence::certificate_sha256(self.0)
    }

    /// The SHA-1 of the client's certificate: its thumbprint.
    pub fn certificate_sha1(self) -> Option<Vec<u8>> {
        backend::evidence::certificate_sha1(self.0)
    }

    /// The client's certificate, DER.
    pub fn certificate(self) -> Option<Vec<u8>> {
        backend::evidence::certificate(self.0)
    }

    /// A pseudonym of the live session, if there is one.
    pub fn session(self) -> Option<String> {
        backend::evidence::session(self.0)
    }

    /// How the user of that session has proved who it is: 0 Anonymous, 1 UserName, 2 Certificate, 3 IssuedToken.
    pub fn user_token_type(self) -> Option<u32> {
        backend::evidence::user_token_type(self.0)
    }

    /// The user of that session; none when anonymous.
    pub fn user(self) -> Option<String> {
        backend::evidence::user(self.0)
    }

    /// The roles of that user.
    pub fn roles(self) -> Vec<String> {
        backend::evidence::roles(self.0)
    }
}
