//! String, ByteString and XmlElement: shared, immutable, and with a null that is not the empty value (Part 6, 5.2.2.4, 5.2.2.7, 5.2.2.8).

use std::fmt;
use std::sync::Arc;

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

/// A String: UTF-8 text or null. Cloning shares the text.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UaString(Option<Arc<str>>);

impl UaString {
    /// The null string.
    pub const NULL: Self = Self(None);

    /// Whether this is the null string (the empty string is not).
    #[inline]
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this is null or empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// The text, or `None` for null.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The text, "" for null.
    #[inline]
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or("")
    }

    /// The shared text, or `None` for null.
    #[must_use]
    pub fn into_inner(self) -> Option<Arc<str>> {
        self.0
    }
}

impl fmt::Debug for UaString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("null"),
            Some(text) => fmt::Debug::fmt(text, f),
        }
    }
}

impl fmt::Display for UaString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl From<&str> for UaString {
    fn from(text: &str) -> Self {
        Self(Some(Arc::from(text)))
    }
}

impl From<String> for UaString {
    fn from(text: String) -> Self {
        Self(Some(Arc::from(text)))
    }
}

impl From<&String> for UaString {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Arc<str>> for UaString {
    fn from(text: Arc<str>) -> Self {
        Self(Some(text))
    }
}

impl<T: Into<Self>> From<Option<T>> for UaString {
    fn from(text: Option<T>) -> Self {
        text.map_or(Self::NULL, Into::into)
    }
}

/// Null is not equal to "".
impl PartialEq<str> for UaString {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for UaString {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

impl BinaryEncode for UaString {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        e.string(self.as_str());
    }
}

impl BinaryDecode for UaString {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self(d.string()?.map(Arc::from)))
    }
}

/// A ByteString: octets or null. Cloning shares the octets.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString(Option<Arc<[u8]>>);

impl ByteString {
    /// The null byte string.
    pub const NULL: Self = Self(None);

    /// Whether this is the null byte string (the empty one is not).
    #[inline]
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this is null or empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// The octets, or `None` for null.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }

    /// The octets, none for null.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }

    /// The shared octets, or `None` for null.
    #[must_use]
    pub fn into_inner(self) -> Option<Arc<[u8]>> {
        self.0
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("null"),
            Some(bytes) => write!(
                f,
                "ByteString({} bytes: {:02x?})",
                bytes.len(),
                bytes.get(..16).unwrap_or(bytes)
            ),
        }
    }
}

impl From<&[u8]> for ByteString {
    fn from(bytes: &[u8]) -> Self {
        Self(Some(Arc::from(bytes)))
    }
}

impl<const N: usize> From<&[u8; N]> for ByteString {
    fn from(bytes: &[u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Some(Arc::from(bytes)))
    }
}

impl From<Arc<[u8]>> for ByteString {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Some(bytes))
    }
}

impl<T: Into<Self>> From<Option<T>> for ByteString {
    fn from(bytes: Option<T>) -> Self {
        bytes.map_or(Self::NULL, Into::into)
    }
}

impl BinaryEncode for ByteString {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        e.byte_string(self.as_slice());
    }
}

impl BinaryDecode for ByteString {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self(d.byte_string()?.map(Arc::from)))
    }
}

/// An XmlElement: an XML fragment kept as text, never parsed here.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XmlElement(pub UaString);

impl BinaryEncode for XmlElement {
    fn encode(&self, e: &mut Encoder<'_>) {
        self.0.encode(e);
    }
}

impl BinaryDecode for XmlElement {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        UaString::decode(d).map(Self)
    }
}
