//! The writer: appends to a buffer that the caller owns and reuses.

use crate::StatusCode;

use super::{BinaryEncode, MAX_DEPTH};

/// Appends OPC UA Binary to a buffer. Writes cannot fail half way; see [`Encoder::error`].
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    depth: u32,
    error: Option<StatusCode>,
}

impl<'a> Encoder<'a> {
    /// An encoder that appends to `out`; what is already there stays.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            depth: 0,
            error: None,
        }
    }

    /// `BadEncodingLimitsExceeded` if something could not be carried (nested too deeply, or longer than an Int32 can count) and was
    /// replaced by its null form.
    #[must_use]
    pub fn error(&self) -> Option<StatusCode> {
        self.error
    }

    /// Bytes in the buffer so far, those that were there at the start included.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// What was written after `position` (see [`Encoder::position`]).
    #[must_use]
    pub fn written_from(&self, position: usize) -> &[u8] {
        self.out.get(position..).unwrap_or_default()
    }

    /// Forgets everything written after `position` (see [`Encoder::position`]).
    pub fn truncate(&mut self, position: usize) {
        self.out.truncate(position);
    }

    /// Makes room for `bytes` more.
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// Overwrites the UInt32 or Int32 at `position`, which must have been written before; otherwise nothing happens.
    ///
    /// This is how a list is written whose length is known at its end: write 0, remember the position, patch.
    pub fn patch_u32(&mut self, position: usize, value: u32) {
        let end = position.saturating_add(4);
        if let Some(place) = self.out.get_mut(position..end) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Appends bytes as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends the first `count` of a few bytes: the copy has a fixed size, which makes it cheap.
    #[inline]
    pub(crate) fn front<const N: usize>(&mut self, bytes: &[u8; N], count: usize) {
        let end = self.out.len().saturating_add(count);
        self.out.extend_from_slice(bytes);
        self.out.truncate(end);
    }

    /// Appends one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Appends a Boolean as one byte.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.out.push(u8::from(value));
    }

    /// Appends a UInt16.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends a UInt32.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends a UInt64.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends an SByte.
    #[inline]
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends an Int16.
    #[inline]
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends an Int32.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends an Int64.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends a Float; NaN payloads are kept.
    #[inline]
    pub fn f32(&mut self, value: f32) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends a Double; NaN payloads are kept.
    #[inline]
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends a length as Int32. False, with the null length -1 written and the error remembered, when an Int32 cannot count it.
    #[inline]
    pub fn length(&mut self, length: usize) -> bool {
        if let Ok(length) = i32::try_from(length) {
            self.i32(length);
            return true;
        }
        self.i32(-1);
        self.fail();
        false
    }

    /// Appends a String; `None` is the null string.
    #[inline]
    pub fn string(&mut self, value: Option<&str>) {
        self.byte_string(value.map(str::as_bytes));
    }

    /// Appends a ByteString; `None` is the null byte string.
    #[inline]
    pub fn byte_string(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.i32(-1),
            Some(bytes) => {
                if self.length(bytes.len()) {
                    self.raw(bytes);
                }
            }
        }
    }

    /// Appends any value.
    #[inline]
    pub fn put<T: BinaryEncode + ?Sized>(&mut self, value: &T) {
        value.encode(self);
    }

    /// Runs `write` one nesting level deeper. False, with nothing written and the error remembered, at [`MAX_DEPTH`] levels.
    pub fn nested(&mut self, write: impl FnOnce(&mut Self)) -> bool {
        if self.depth >= MAX_DEPTH {
            self.fail();
            return false;
        }
        self.depth += 1;
        write(self);
        self.depth -= 1;
        true
    }

    /// Appends fixed-size values as one block.
    pub(crate) fn block<T: Copy, const N: usize>(&mut self, values: &[T], to_bytes: impl Fn(T) -> [u8; N]) {
        let start = self.out.len();
        self.out.resize(start + values.len() * N, 0);
        if let Some(places) = self.out.get_mut(start..) {
            for (place, value) in places.chunks_exact_mut(N).zip(values) {
                place.copy_from_slice(&to_bytes(*value));
            }
        }
    }

    fn fail(&mut self) {
        self.error = Some(StatusCode(0x8008_0000));
    }
}
