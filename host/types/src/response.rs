//! Responses that are written straight into a message: header, lists whose length is known at the end, scalars from their bits.
//!
//! This module owns the wire order of response headers. It must not know what a service answers.

use crate::builtin::{BuiltInType, DateTime, StatusCode, Variant};
use crate::codec::Encoder;
use crate::service::SERVICE_FAULT_ENCODING_ID;
use crate::view::NodeIdRef;

/// A list whose elements are being written.
#[derive(Debug)]
#[must_use = "a list has to be ended, or its length stays 0"]
pub struct OpenList {
    position: usize,
    count: u32,
}

impl OpenList {
    /// Counts one element more.
    #[inline]
    pub fn add(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Elements so far.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

impl Encoder<'_> {
    /// Appends the type id and the response header (Part 4, 7.33) of a response; the body follows.
    ///
    /// Without diagnostics, string table and additional header.
    pub fn response_header(
        &mut self,
        encoding_id: u32,
        timestamp: DateTime,
        request_handle: u32,
        service_result: StatusCode,
    ) {
        NodeIdRef::numeric(0, encoding_id).encode_with(0, self);
        self.i64(timestamp.ticks());
        self.u32(request_handle);
        self.u32(service_result.0);
        self.u8(0);
        self.i32(0);
        self.raw(&[0, 0, 0]);
    }

    /// Appends a whole ServiceFault.
    pub fn service_fault(&mut self, timestamp: DateTime, request_handle: u32, service_result: StatusCode) {
        self.response_header(SERVICE_FAULT_ENCODING_ID, timestamp, request_handle, service_result);
    }

    /// Starts a list whose length is not known yet.
    #[inline]
    pub fn open_list(&mut self) -> OpenList {
        let position = self.position();
        self.i32(0);
        OpenList { position, count: 0 }
    }

    /// Ends a list: writes its length where it started.
    #[inline]
    pub fn close_list(&mut self, list: OpenList) {
        self.patch_u32(list.position, list.count);
    }

    /// Appends an empty list, such as the diagnostics of a response that has none.
    #[inline]
    pub fn empty_list(&mut self) {
        self.i32(0);
    }
}

impl Variant {
    /// Type and bits of a scalar of at most 8 bytes: numbers, Boolean, DateTime and StatusCode. `None` for everything else.
    #[inline]
    #[must_use]
    pub fn to_bits(&self) -> Option<(BuiltInType, u64)> {
        Some(match self {
            Self::Boolean(value) => (BuiltInType::Boolean, u64::from(*value)),
            Self::SByte(value) => (BuiltInType::SByte, u64::from(value.cast_unsigned())),
            Self::Byte(value) => (BuiltInType::Byte, u64::from(*value)),
            Self::Int16(value) => (BuiltInType::Int16, u64::from(value.cast_unsigned())),
            Self::UInt16(value) => (BuiltInType::UInt16, u64::from(*value)),
            Self::Int32(value) => (BuiltInType::Int32, u64::from(value.cast_unsigned())),
            Self::UInt32(value) => (BuiltInType::UInt32, u64::from(*value)),
            Self::Int64(value) => (BuiltInType::Int64, value.cast_unsigned()),
            Self::UInt64(value) => (BuiltInType::UInt64, *value),
            Self::Float(value) => (BuiltInType::Float, u64::from(value.to_bits())),
            Self::Double(value) => (BuiltInType::Double, value.to_bits()),
            Self::DateTime(value) => (BuiltInType::DateTime, value.ticks().cast_unsigned()),
            Self::StatusCode(value) => (BuiltInType::StatusCode, u64::from(value.0)),
            _ => return None,
        })
    }

    /// The scalar that [`Variant::to_bits`] took apart; `None` for types it does not give. Surplus bits are ignored.
    #[inline]
    #[must_use]
    pub fn from_bits(built_in_type: BuiltInType, bits: u64) -> Option<Self> {
        let [a, b, c, d, ..] = bits.to_le_bytes();
        let half = [a, b, c, d];
        Some(match built_in_type {
            BuiltInType::Boolean => Self::Boolean(a != 0),
            BuiltInType::SByte => Self::SByte(a.cast_signed()),
            BuiltInType::Byte => Self::Byte(a),
            BuiltInType::Int16 => Self::Int16(i16::from_le_bytes([a, b])),
            BuiltInType::UInt16 => Self::UInt16(u16::from_le_bytes([a, b])),
            BuiltInType::Int32 => Self::Int32(i32::from_le_bytes(half)),
            BuiltInType::UInt32 => Self::UInt32(u32::from_le_bytes(half)),
            BuiltInType::Int64 => Self::Int64(bits.cast_signed()),
            BuiltInType::UInt64 => Self::UInt64(bits),
            BuiltInType::Float => Self::Float(f32::from_le_bytes(half)),
            BuiltInType::Double => Self::Double(f64::from_bits(bits)),
            BuiltInType::DateTime => Self::DateTime(DateTime::from_ticks(bits.cast_signed())),
            BuiltInType::StatusCode => Self::StatusCode(StatusCode(u32::from_le_bytes(half))),
            _ => return None,
        })
    }
}
