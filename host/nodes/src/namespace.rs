//! The NamespaceArray: grows, never shrinks, never changes an entry, so that an index a client has learned keeps its meaning.

use std::sync::Arc;

use arc_swap::ArcSwap;
use backplane_types::{ArrayValues, StatusCode, UaString, Variant};

/// URI of namespace 0.
pub const UA_NAMESPACE: &str = "http://opcfoundation.org/UA/";

/// See the module text. Index 0 is OPC UA, 1 the server's application URI.
#[derive(Debug)]
pub struct NamespaceTable {
    uris: ArcSwap<Vec<UaString>>,
    limit: u16,
}

impl NamespaceTable {
    /// A table with its two fixed entries. `known`: the URIs that were there before a restart, from index 2 on, in order; those that are already there are
    /// passed over. `limit`: how many entries there may be.
    #[must_use]
    pub fn new(application_uri: &str, known: &[String], limit: u16) -> Self {
        let mut uris = vec![UaString::from(UA_NAMESPACE), UaString::from(application_uri)];
        for uri in known {
            if uris.len() < usize::from(limit) && !uris.iter().any(|there| there.text() == uri) {
                uris.push(UaString::from(uri.as_str()));
            }
        }
        Self {
            uris: ArcSwap::from_pointee(uris),
            limit,
        }
    }

    /// The index of a URI, which is added when it is new.
    ///
    /// # Errors
    /// `BadOutOfMemory` when the table is full, `BadInvalidArgument` for an empty URI.
    pub fn register(&self, uri: &str) -> Result<u16, StatusCode> {
        if uri.is_empty() {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
        if let Some(index) = self.index(uri) {
            return Ok(index);
        }
        let text = UaString::from(uri);
        let limit = usize::from(self.limit);
        self.uris.rcu(|uris| {
            if uris.len() >= limit || uris.contains(&text) {
                return Arc::clone(uris);
            }
            let mut longer = Vec::with_capacity(uris.len() + 1);
            longer.extend(uris.iter().cloned());
            longer.push(text.clone());
            Arc::new(longer)
        });
        self.index(uri).ok_or(StatusCode::BAD_OUT_OF_MEMORY)
    }

    /// The index of a URI.
    #[must_use]
    pub fn index(&self, uri: &str) -> Option<u16> {
        let position = self.uris.load().iter().position(|there| there.text() == uri)?;
        u16::try_from(position).ok()
    }

    /// The URI at an index.
    #[must_use]
    pub fn uri(&self, index: u16) -> Option<UaString> {
        self.uris.load().get(usize::from(index)).cloned()
    }

    /// All URIs, in order.
    #[must_use]
    pub fn all(&self) -> Arc<Vec<UaString>> {
        self.uris.load_full()
    }

    /// The value of NamespaceArray.
    #[must_use]
    pub fn value(&self) -> Variant {
        Variant::from(ArrayValues::String(self.uris.load().as_ref().clone()))
    }
}
