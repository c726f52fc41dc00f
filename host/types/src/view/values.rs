//! Borrowed forms of the built-in types that stand in requests.

use crate::builtin::{
    BINARY_BODY, ByteString, DataValue, DataValueHead, ExtensionBody, ExtensionObject, NO_BODY, NodeIdRef,
    QualifiedName, StatusCode, UaString, Variant, XML_BODY, XmlElement, data_value_mask,
};
use crate::codec::{BinaryDecode, DecodeError, Decoder};

use super::list::DecodeRef;
use super::skip;

/// A String in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct StrRef<'a>(pub Option<&'a str>);

impl<'a> StrRef<'a> {
    /// Whether this is the null string.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }

    /// Whether this is null or empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.text().is_empty()
    }

    /// The text, or `None` for null.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        self.0
    }

    /// The text, "" for null.
    #[inline]
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0.unwrap_or("")
    }

    /// A copy that owns its text.
    #[must_use]
    pub fn to_owned(self) -> UaString {
        UaString::from(self.0)
    }
}

impl<'a> DecodeRef<'a> for StrRef<'a> {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        d.string().map(Self)
    }
}

/// A ByteString in a message; `None` is null.
impl<'a> DecodeRef<'a> for Option<&'a [u8]> {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        d.byte_string()
    }
}

impl<'a> DecodeRef<'a> for NodeIdRef<'a> {
    const MIN_SIZE: usize = 2;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Self::decode(d)
    }
}

/// A QualifiedName in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct QualifiedNameRef<'a> {
    /// Index into the NamespaceArray.
    pub namespace: u16,
    /// The name.
    pub name: StrRef<'a>,
}

impl QualifiedNameRef<'_> {
    /// Whether the name is null or empty and the namespace 0.
    #[inline]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.namespace == 0 && self.name.is_empty()
    }

    /// A copy that owns its text.
    #[must_use]
    pub fn to_owned(self) -> QualifiedName {
        QualifiedName {
            namespace: self.namespace,
            name: self.name.to_owned(),
        }
    }
}

/// Null and empty names are different, as in [`QualifiedName`].
impl PartialEq<QualifiedName> for QualifiedNameRef<'_> {
    fn eq(&self, other: &QualifiedName) -> bool {
        self.namespace == other.namespace && self.name.0 == other.name.as_str()
    }
}

impl<'a> DecodeRef<'a> for QualifiedNameRef<'a> {
    const MIN_SIZE: usize = 6;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            namespace: d.u16()?,
            name: StrRef::decode_ref(d)?,
        })
    }
}

/// An ExtensionObject in a message, its body unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionObjectRef<'a> {
    /// Id of the encoding.
    pub type_id: NodeIdRef<'a>,
    /// The body: `None` without one, else whether it is binary (otherwise XML) and its bytes.
    pub body: Option<(bool, &'a [u8])>,
}

impl<'a> ExtensionObjectRef<'a> {
    /// The null value.
    pub const NULL: Self = Self {
        type_id: NodeIdRef::NULL,
        body: None,
    };

    /// The binary body, if there is one.
    #[must_use]
    pub fn binary(&self) -> Option<&'a [u8]> {
        self.body.and_then(|(binary, bytes)| binary.then_some(bytes))
    }

    /// A copy that owns its body.
    #[must_use]
    pub fn to_owned(&self) -> ExtensionObject {
        ExtensionObject {
            type_id: self.type_id.to_owned(),
            body: match self.body {
                None => ExtensionBody::None,
                Some((true, bytes)) => ExtensionBody::Binary(ByteString::from(bytes)),
                // It was checked to be UTF-8 when it was read.
                Some((false, bytes)) => {
                    ExtensionBody::Xml(XmlElement(UaString::from(String::from_utf8_lossy(bytes).into_owned())))
                }
            },
        }
    }
}

impl<'a> DecodeRef<'a> for ExtensionObjectRef<'a> {
    const MIN_SIZE: usize = 3;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        // A null id and no body, as in nearly every header.
        if d.skip_if(&[0, 0, NO_BODY]) {
            return Ok(Self {
                type_id: NodeIdRef::NULL,
                body: None,
            });
        }
        Self::decode_set(d)
    }
}

impl<'a> ExtensionObjectRef<'a> {
    fn decode_set(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let type_id = NodeIdRef::decode(d)?;
        let body = match d.u8()? {
            NO_BODY => None,
            BINARY_BODY => Some((true, d.byte_string()?.unwrap_or(&[]))),
            XML_BODY => Some((false, d.string()?.unwrap_or("").as_bytes())),
            _ => return Err(DecodeError::Malformed("extension object encoding")),
        };
        Ok(Self { type_id, body })
    }
}

/// A Variant in a message: checked, decoded on demand.
#[derive(Debug, Clone)]
pub struct VariantRef<'a> {
    bytes: Decoder<'a>,
    length: usize,
}

impl<'a> VariantRef<'a> {
    /// Its bytes on the wire; one zero byte is the null Variant.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        let rest = self.bytes.rest();
        rest.get(..self.length).unwrap_or(rest)
    }

    /// The value. Scalars of fixed size are built without allocating.
    ///
    /// # Errors
    /// None for a value that was checked.
    pub fn decode(&self) -> Result<Variant, DecodeError> {
        Variant::decode(&mut self.bytes.clone())
    }
}

impl<'a> DecodeRef<'a> for VariantRef<'a> {
    const MIN_SIZE: usize = 1;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let bytes = d.clone();
        skip::variant(d)?;
        Ok(Self {
            length: bytes.remaining() - d.remaining(),
            bytes,
        })
    }
}

/// A DataValue in a message: status and timestamps decoded, the value on demand.
#[derive(Debug, Clone)]
pub struct DataValueRef<'a> {
    /// Status and timestamps. A status that stands in the message as Good is the same as none.
    pub head: DataValueHead,
    value: Option<VariantRef<'a>>,
}

impl<'a> DataValueRef<'a> {
    /// The Variant, if there is one.
    #[must_use]
    pub fn value_ref(&self) -> Option<&VariantRef<'a>> {
        self.value.as_ref()
    }

    /// The value, [`Variant::Empty`] if there is none.
    ///
    /// # Errors
    /// None for a value that was checked.
    pub fn value(&self) -> Result<Variant, DecodeError> {
        self.value.as_ref().map_or(Ok(Variant::Empty), VariantRef::decode)
    }

    /// A copy that owns everything.
    ///
    /// # Errors
    /// None for a value that was checked.
    pub fn to_owned(&self) -> Result<DataValue, DecodeError> {
        Ok(DataValue {
            value: self.value()?,
            status: (self.head.status != StatusCode::GOOD).then_some(self.head.status),
            source_timestamp: self.head.source_timestamp,
            source_picoseconds: self.head.source_picoseconds,
            server_timestamp: self.head.server_timestamp,
            server_picoseconds: self.head.server_picoseconds,
        })
    }
}

impl<'a> DecodeRef<'a> for DataValueRef<'a> {
    const MIN_SIZE: usize = 1;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let mask = d.u8()?;
        let value = if mask & data_value_mask::VALUE != 0 {
            Some(VariantRef::decode_ref(d)?)
        } else {
            None
        };
        let head = DataValueHead::decode(mask, d)?;
        Ok(Self { head, value })
    }
}
