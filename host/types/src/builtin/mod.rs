//! The built-in types (Part 6, 5.1.2) and their binary form (Part 6, 5.2.2).
//!
//! Owns the values, their equality, their text forms and their encoding. Must not know services, nodes or clocks.

mod array;
mod base64;
mod built_in_type;
mod data_value;
mod date_time;
mod decimal;
mod diagnostic_info;
mod extension_object;
mod guid;
mod names;
mod node_id;
mod node_id_bytes;
mod node_id_ref;
mod node_id_text;
mod plain_value;
mod status_code;
mod strings;
mod variant;
mod variant_codec;
mod variant_from;

pub use array::{Array, ArrayError, ArrayValues};
pub use built_in_type::BuiltInType;
pub use data_value::{DataValue, DataValueHead};
pub use date_time::DateTime;
pub use decimal::Decimal;
pub use diagnostic_info::DiagnosticInfo;
pub use extension_object::{ExtensionBody, ExtensionObject};
pub use guid::{Guid, ParseGuidError};
pub use names::{LocalizedText, QualifiedName};
pub use node_id::{ExpandedNodeId, Identifier, NodeId};
pub use node_id_bytes::NodeIdBytes;
pub use node_id_ref::{IdentifierRef, NodeIdRef};
pub use node_id_text::ParseNodeIdError;
pub use plain_value::PlainValue;
pub use status_code::StatusCode;
pub use strings::{ByteString, UaString, XmlElement};
pub use variant::Variant;
pub use variant_from::WrongType;

pub(crate) use data_value::mask as data_value_mask;
pub(crate) use diagnostic_info::mask as diagnostic_info_mask;
pub(crate) use extension_object::{BINARY_BODY, NO_BODY, XML_BODY};
pub(crate) use node_id_bytes::FOUR_BYTE;
pub(crate) use variant_codec::{ARRAY_BIT, DIMENSIONS_BIT, RESERVED_TYPES, TYPE_BITS, check_dimensions, element_type};
