//! The types of OPC UA: built-in types, generated service structures and enumerations, status codes, and the bounded binary codec.
//!
//! This crate owns how values look in memory and on the wire. It must not know sockets, clocks, channels, sessions or nodes. Nothing in it
//! panics on input: every decoder is bounded by [`DecodeLimits`] and by the bytes that are there.

#[macro_use]
mod structure_macros;

pub mod attribute;
pub mod builtin;
pub mod codec;
pub mod generated;
pub mod now;
pub mod numeric_range;
pub mod response;
pub mod structure;
pub mod view;

pub use attribute::AttributeId;
pub use builtin::{
    Array, ArrayError, ArrayValues, BuiltInType, ByteString, DataValue, DataValueHead, DateTime, Decimal,
    DiagnosticInfo, ExpandedNodeId, ExtensionBody, ExtensionObject, Guid, Identifier, IdentifierRef, LocalizedText,
    NodeId, NodeIdRef, ParseGuidError, ParseNodeIdError, PlainValue, QualifiedName, StatusCode, UaString, Variant,
    WrongType, XmlElement,
};
pub use codec::{BinaryDecode, BinaryEncode, DecodeError, DecodeLimits, Decoder, Encoder, MAX_DEPTH};
pub use generated::enumerations::*;
pub use generated::option_sets::*;
pub use generated::structures::*;
pub use generated::{enumerations, ids, option_sets, service, structures};
pub use now::Now;
pub use numeric_range::{Bounds, MAX_RANGE_DIMENSIONS, NumericRange, NumericRangeError};
pub use structure::Structure;
