//! DiagnosticInfo (Part 4, 7.12; Part 6, 5.2.2.12).

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

use super::{StatusCode, UaString};

/// Vendor diagnostics of a result. Indexes point into the string table of the response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiagnosticInfo {
    /// Index of the symbolic name.
    pub symbolic_id: Option<i32>,
    /// Index of the namespace of the symbolic name.
    pub namespace_uri: Option<i32>,
    /// Index of the locale of the text.
    pub locale: Option<i32>,
    /// Index of the text.
    pub localized_text: Option<i32>,
    /// Vendor text.
    pub additional_info: Option<UaString>,
    /// Status of the operation below.
    pub inner_status_code: Option<StatusCode>,
    /// Diagnostics of the operation below.
    pub inner_diagnostic_info: Option<Box<DiagnosticInfo>>,
}

/// The mask before a DiagnosticInfo.
pub(crate) mod mask {
    pub(crate) const SYMBOLIC_ID: u8 = 0x01;
    pub(crate) const NAMESPACE_URI: u8 = 0x02;
    pub(crate) const LOCALIZED_TEXT: u8 = 0x04;
    pub(crate) const LOCALE: u8 = 0x08;
    pub(crate) const ADDITIONAL_INFO: u8 = 0x10;
    pub(crate) const INNER_STATUS_CODE: u8 = 0x20;
    pub(crate) const INNER_DIAGNOSTIC_INFO: u8 = 0x40;
}

impl DiagnosticInfo {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mask() == 0
    }

    fn mask(&self) -> u8 {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        bit(self.symbolic_id.is_some(), mask::SYMBOLIC_ID)
            | bit(self.namespace_uri.is_some(), mask::NAMESPACE_URI)
            | bit(self.locale.is_some(), mask::LOCALE)
            | bit(self.localized_text.is_some(), mask::LOCALIZED_TEXT)
            | bit(self.additional_info.is_some(), mask::ADDITIONAL_INFO)
            | bit(self.inner_status_code.is_some(), mask::INNER_STATUS_CODE)
            | bit(self.inner_diagnostic_info.is_some(), mask::INNER_DIAGNOSTIC_INFO)
    }
}

impl BinaryEncode for DiagnosticInfo {
    fn encode(&self, e: &mut Encoder<'_>) {
        e.u8(self.mask());
        for index in [self.symbolic_id, self.namespace_uri, self.locale, self.localized_text]
            .into_iter()
            .flatten()
        {
            e.i32(index);
        }
        if let Some(text) = &self.additional_info {
            text.encode(e);
        }
        if let Some(status) = self.inner_status_code {
            status.encode(e);
        }
        if let Some(inner) = &self.inner_diagnostic_info
            && !e.nested(|e| inner.encode(e))
        {
            e.u8(0);
        }
    }
}

impl BinaryDecode for DiagnosticInfo {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let bits = d.u8()?;
        let mut info = Self::default();
        if bits & mask::SYMBOLIC_ID != 0 {
            info.symbolic_id = Some(d.i32()?);
        }
        if bits & mask::NAMESPACE_URI != 0 {
            info.namespace_uri = Some(d.i32()?);
        }
        if bits & mask::LOCALE != 0 {
            info.locale = Some(d.i32()?);
        }
        if bits & mask::LOCALIZED_TEXT != 0 {
            info.localized_text = Some(d.i32()?);
        }
        if bits & mask::ADDITIONAL_INFO != 0 {
            info.additional_info = Some(UaString::decode(d)?);
        }
        if bits & mask::INNER_STATUS_CODE != 0 {
            info.inner_status_code = Some(StatusCode::decode(d)?);
        }
        if bits & mask::INNER_DIAGNOSTIC_INFO != 0 {
            info.inner_diagnostic_info = Some(d.nested(Box::<Self>::decode)?);
        }
        Ok(info)
    }
}
