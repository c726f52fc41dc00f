//! ExtensionObject: a structure in its encoded form (Part 6, 5.2.2.15).
//!
//! Bodies are kept as they came and decoded only when someone asks for a type, so unknown types pass through unchanged and the limits on
//! nesting cannot be bypassed by decoding bodies eagerly.

use crate::Structure;
use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, DecodeLimits, Decoder, Encoder};

use super::{ByteString, NodeId, UaString, XmlElement};

/// The body of an [`ExtensionObject`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExtensionBody {
    /// No body.
    #[default]
    None,
    /// OPC UA Binary.
    Binary(ByteString),
    /// XML.
    Xml(XmlElement),
}

/// A structure, encoded, with the id of its encoding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionObject {
    /// Id of the DataTypeEncoding node (not of the DataType).
    pub type_id: NodeId,
    /// The encoded structure.
    pub body: ExtensionBody,
}

pub(crate) const NO_BODY: u8 = 0;
pub(crate) const BINARY_BODY: u8 = 1;
pub(crate) const XML_BODY: u8 = 2;

impl ExtensionObject {
    /// The null value: no type, no body.
    pub const NULL: Self = Self {
        type_id: NodeId::NULL,
        body: ExtensionBody::None,
    };

    /// Whether this is the null value.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.type_id.is_null() && self.body == ExtensionBody::None
    }

    /// A structure of namespace 0, encoded.
    pub fn from_structure<T: Structure>(value: &T) -> Self {
        let mut body = Vec::new();
        value.encode(&mut Encoder::new(&mut body));
        Self {
            type_id: NodeId::standard(T::ENCODING_ID),
            body: ExtensionBody::Binary(ByteString::from(body)),
        }
    }

    /// The binary body, if there is one.
    #[must_use]
    pub fn binary(&self) -> Option<&[u8]> {
        match &self.body {
            ExtensionBody::Binary(bytes) => Some(bytes.bytes()),
            _ => None,
        }
    }

    /// Whether it holds a structure of this type in OPC UA Binary.
    #[must_use]
    pub fn is<T: Structure>(&self) -> bool {
        self.type_id.as_standard() == Some(T::ENCODING_ID) && self.binary().is_some()
    }

    /// Decodes the body as a structure of namespace 0, with the default limits.
    ///
    /// # Errors
    /// [`DecodeError::UnexpectedType`] if the type is another or the body is not binary; [`DecodeError::Malformed`] if bytes are left over;
    /// those of the structure.
    pub fn decode_as<T: Structure>(&self) -> Result<T, DecodeError> {
        self.decode_with(DecodeLimits::DEFAULT, 0)
    }

    /// Decodes the body as a structure of namespace 0, with limits, as if `depth` levels deep.
    ///
    /// # Errors
    /// As [`ExtensionObject::decode_as`], and [`DecodeError::TooDeep`].
    pub fn decode_with<T: Structure>(&self, limits: DecodeLimits, depth: u32) -> Result<T, DecodeError> {
        if !self.is::<T>() {
            return Err(DecodeError::UnexpectedType);
        }
        let bytes = self.binary().unwrap_or(&[]);
        let mut d = Decoder::at_depth(bytes, limits, depth);
        let value = d.nested(T::decode)?;
        if d.is_empty() {
            Ok(value)
        } else {
            Err(DecodeError::Malformed("extension object length"))
        }
    }
}

impl Encoder<'_> {
    /// Appends a structure of namespace 0 as an ExtensionObject, without a buffer in between.
    pub fn extension_object<T: Structure>(&mut self, value: &T) {
        NodeId::standard(T::ENCODING_ID).encode(self);
        self.u8(BINARY_BODY);
        let place = self.position();
        self.u32(0);
        let start = self.position();
        value.encode(self);
        let length = u32::try_from(self.position() - start).unwrap_or(u32::MAX);
        self.patch_u32(place, length);
    }
}

impl BinaryEncode for ExtensionObject {
    fn encode(&self, e: &mut Encoder<'_>) {
        self.type_id.encode(e);
        match &self.body {
            ExtensionBody::None => e.u8(NO_BODY),
            // A body that is announced is never null: some clients drop the whole message for a length of -1.
            ExtensionBody::Binary(bytes) => {
                e.u8(BINARY_BODY);
                e.byte_string(Some(bytes.bytes()));
            }
            ExtensionBody::Xml(xml) => {
                e.u8(XML_BODY);
                e.string(Some(xml.0.text()));
            }
        }
    }
}

impl BinaryDecode for ExtensionObject {
    const MIN_SIZE: usize = 3;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let type_id = NodeId::decode(d)?;
        let body = match d.u8()? {
            NO_BODY => ExtensionBody::None,
            // A body that is announced is never null, as it is written.
            BINARY_BODY => ExtensionBody::Binary(ByteString::from(d.byte_string()?.unwrap_or(&[]))),
            XML_BODY => ExtensionBody::Xml(XmlElement(UaString::from(d.string()?.unwrap_or("")))),
            _ => return Err(DecodeError::Malformed("extension object encoding")),
        };
        Ok(Self { type_id, body })
    }
}
