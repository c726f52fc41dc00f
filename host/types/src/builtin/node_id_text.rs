//! The text form of node ids (Part 6, 5.3.1.10 and 5.3.1.11): `ns=2;s=Name`, `i=85`, `g=<guid>`, `b=<base64>`, and
//! `svr=1;nsu=http://x;i=5` for expanded ones.

use std::fmt;
use std::str::FromStr;

use super::base64;
use super::{ByteString, ExpandedNodeId, Guid, Identifier, IdentifierRef, NodeId, NodeIdRef, UaString};

/// The text is not a node id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseNodeIdError {
    /// The namespace index is not a number from 0 to 65535, the namespace URI is empty, or its `;` is missing.
    #[error("bad namespace index")]
    Namespace,
    /// The server index is not a number, or its `;` is missing.
    #[error("bad server index")]
    ServerIndex,
    /// There is no `i=`, `s=`, `g=` or `b=`, or what follows does not fit it.
    #[error("bad identifier")]
    Identifier,
}

pub(super) fn write(id: &NodeIdRef<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if id.namespace != 0 {
        write!(f, "ns={};", id.namespace)?;
    }
    match id.identifier {
        IdentifierRef::Numeric(number) => write!(f, "i={number}"),
        IdentifierRef::String(text) => write!(f, "s={}", text.unwrap_or("")),
        IdentifierRef::Guid(guid) => write!(f, "g={guid}"),
        IdentifierRef::Opaque(bytes) => write!(f, "b={}", base64::encode(bytes.unwrap_or(&[]))),
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.as_node_id_ref(), f)
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    // FromStr of integers takes a leading plus sign, the standard does not.
    if text.starts_with('+') {
        return None;
    }
    text.parse().ok()
}

fn identifier(text: &str) -> Result<Identifier, ParseNodeIdError> {
    let (kind, value) = text.split_once('=').ok_or(ParseNodeIdError::Identifier)?;
    let parsed = match kind {
        "i" => number(value).map(Identifier::Numeric),
        "s" => Some(Identifier::String(UaString::from(value))),
        "g" => Guid::from_str(value).ok().map(Identifier::Guid),
        "b" => base64::decode(value).map(|bytes| Identifier::Opaque(ByteString::from(bytes))),
        _ => None,
    };
    parsed.ok_or(ParseNodeIdError::Identifier)
}

impl FromStr for NodeId {
    type Err = ParseNodeIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, rest) = match text.strip_prefix("ns=") {
            None => (0, text),
            Some(rest) => {
                let (index, rest) = rest.split_once(';').ok_or(ParseNodeIdError::Namespace)?;
                (number(index).ok_or(ParseNodeIdError::Namespace)?, rest)
            }
        };
        Ok(Self {
            namespace,
            identifier: identifier(rest)?,
        })
    }
}

impl fmt::Display for ExpandedNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.server_index != 0 {
            write!(f, "svr={};", self.server_index)?;
        }
        let mut id = self.node_id.as_node_id_ref();
        if let Some(uri) = self.namespace_uri.as_str().filter(|uri| !uri.is_empty()) {
            write!(f, "nsu={};", uri.replace('%', "%25").replace(';', "%3B"))?;
            id.namespace = 0;
        }
        write(&id, f)
    }
}

impl FromStr for ExpandedNodeId {
    type Err = ParseNodeIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut value = Self::NULL;
        let mut rest = text;
        if let Some(after) = rest.strip_prefix("svr=") {
            let (index, after) = after.split_once(';').ok_or(ParseNodeIdError::ServerIndex)?;
            value.server_index = number(index).ok_or(ParseNodeIdError::ServerIndex)?;
            rest = after;
        }
        if let Some(after) = rest.strip_prefix("nsu=") {
            let (uri, after) = after.split_once(';').ok_or(ParseNodeIdError::Namespace)?;
            if uri.is_empty() {
                return Err(ParseNodeIdError::Namespace);
            }
            value.namespace_uri = UaString::from(uri.replace("%3B", ";").replace("%3b", ";").replace("%25", "%"));
            value.node_id.identifier = identifier(after)?;
        } else {
            value.node_id = rest.parse()?;
        }
        Ok(value)
    }
}
