//! QualifiedName and LocalizedText (Part 6, 5.2.2.13 and 5.2.2.14).

use std::fmt;

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

use super::UaString;

/// A name with the namespace it is defined in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QualifiedName {
    /// Index into the NamespaceArray.
    pub namespace: u16,
    /// The name; at most 512 characters by the standard (not enforced here).
    pub name: UaString,
}

impl QualifiedName {
    /// The null name.
    pub const NULL: Self = Self {
        namespace: 0,
        name: UaString::NULL,
    };

    /// A name in a namespace.
    pub fn new(namespace: u16, name: impl Into<UaString>) -> Self {
        Self {
            namespace,
            name: name.into(),
        }
    }

    /// Whether the name is null or empty and the namespace 0.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.namespace == 0 && self.name.is_empty()
    }
}

/// `3:Name`, or `Name` in namespace 0.
impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace != 0 {
            write!(f, "{}:", self.namespace)?;
        }
        f.write_str(self.name.text())
    }
}

/// Namespace 0.
impl From<&str> for QualifiedName {
    fn from(name: &str) -> Self {
        Self::new(0, name)
    }
}

impl BinaryEncode for QualifiedName {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        e.u16(self.namespace);
        self.name.encode(e);
    }
}

impl BinaryDecode for QualifiedName {
    const MIN_SIZE: usize = 6;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            namespace: d.u16()?,
            name: UaString::decode(d)?,
        })
    }
}

/// Text with the locale it is written in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalizedText {
    /// LocaleId such as `en-US`; null or empty when unknown.
    pub locale: UaString,
    /// The text.
    pub text: UaString,
}

impl LocalizedText {
    /// The null text.
    pub const NULL: Self = Self {
        locale: UaString::NULL,
        text: UaString::NULL,
    };

    pub(crate) const LOCALE: u8 = 0x01;
    pub(crate) const TEXT: u8 = 0x02;

    /// Text in a locale.
    pub fn new(locale: impl Into<UaString>, text: impl Into<UaString>) -> Self {
        Self {
            locale: locale.into(),
            text: text.into(),
        }
    }

    /// Text without a locale.
    pub fn plain(text: impl Into<UaString>) -> Self {
        Self::new(UaString::NULL, text)
    }

    /// Whether locale and text are both null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.locale.is_null() && self.text.is_null()
    }
}

impl fmt::Display for LocalizedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.text())
    }
}

/// No locale.
impl From<&str> for LocalizedText {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl Encoder<'_> {
    /// Appends a LocalizedText without a locale; `None` is null.
    #[inline]
    pub fn plain_text(&mut self, text: Option<&str>) {
        match text {
            None => self.u8(0),
            Some(_) => {
                self.u8(LocalizedText::TEXT);
                self.string(text);
            }
        }
    }
}

impl BinaryEncode for LocalizedText {
    fn encode(&self, e: &mut Encoder<'_>) {
        let locale = if self.locale.is_null() { 0 } else { Self::LOCALE };
        let text = if self.text.is_null() { 0 } else { Self::TEXT };
        e.u8(locale | text);
        if locale != 0 {
            self.locale.encode(e);
        }
        if text != 0 {
            self.text.encode(e);
        }
    }
}

impl BinaryDecode for LocalizedText {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mask = d.u8()?;
        let mut value = Self::NULL;
        if mask & Self::LOCALE != 0 {
            value.locale = UaString::decode(d)?;
        }
        if mask & Self::TEXT != 0 {
            value.text = UaString::decode(d)?;
        }
        Ok(value)
    }
}
