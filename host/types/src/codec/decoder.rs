//! The bounded reader: a cursor over a borrowed message.

use super::{BinaryDecode, DecodeError, DecodeLimits};

/// Reads OPC UA Binary in place.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    total: usize,
    limits: DecodeLimits,
    depth: u32,
    expansion: u32,
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], limits: DecodeLimits) -> Self {
        Self::at_depth(bytes, limits, 0)
    }

    /// A decoder that starts `depth` levels deep: for the body of an ExtensionObject found at that depth.
    #[inline]
    #[must_use]
    pub fn at_depth(bytes: &'a [u8], limits: DecodeLimits, depth: u32) -> Self {
        Self {
            rest: bytes,
            total: bytes.len(),
            limits,
            depth,
            expansion: 0,
        }
    }

    /// The limits in force.
    #[inline]
    #[must_use]
    pub fn limits(&self) -> DecodeLimits {
        self.limits
    }

    /// Levels entered so far.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Bytes read so far.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Bytes that are left.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// What is left, unread.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next `count` bytes, borrowed.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads any value.
    ///
    /// # Errors
    /// Those of the value.
    #[inline]
    pub fn get<T: BinaryDecode>(&mut self) -> Result<T, DecodeError> {
        T::decode(self)
    }

    /// Reads a Byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        let (head, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Reads a Boolean: any value but 0 is true.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.u8()? != 0)
    }

    /// Reads a UInt16.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads a UInt32.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a UInt64.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads an SByte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.array().map(i8::from_le_bytes)
    }

    /// Reads an Int16.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.array().map(i16::from_le_bytes)
    }

    /// Reads an Int32.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_le_bytes)
    }

    /// Reads an Int64.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a Float; NaN payloads are kept.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn f32(&mut self) -> Result<f32, DecodeError> {
        self.array().map(f32::from_le_bytes)
    }

    /// Reads a Double; NaN payloads are kept.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.array().map(f64::from_le_bytes)
    }

    /// Reads a length: -1 is null.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] below -1, [`DecodeError::Truncated`].
    #[inline]
    pub fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        match self.i32()? {
            -1 => Ok(None),
            length => usize::try_from(length)
                .map(Some)
                .map_err(|_| DecodeError::Malformed("length")),
        }
    }

    /// Reads the length of an array whose elements take at least `min_size` bytes each; -1 is `None`.
    ///
    /// # Errors
    /// [`DecodeError::LimitExceeded`] above `max_array_length`; [`DecodeError::Truncated`] if the remaining bytes cannot hold it.
    #[inline]
    pub fn array_length(&mut self, min_size: usize) -> Result<Option<usize>, DecodeError> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        if length as u64 > u64::from(self.limits.max_array_length) {
            return Err(DecodeError::LimitExceeded("array length"));
        }
        match length.checked_mul(min_size) {
            Some(bytes) if bytes <= self.rest.len() => Ok(Some(length)),
            _ => Err(DecodeError::Truncated),
        }
    }

    /// Reads a ByteString in place; `None` is the null byte string.
    ///
    /// # Errors
    /// [`DecodeError::LimitExceeded`] above `max_byte_string_length`, [`DecodeError::Truncated`].
    #[inline]
    pub fn byte_string(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        self.counted(self.limits.max_byte_string_length, "byte string length")
    }

    /// Reads a String in place; `None` is the null string.
    ///
    /// # Errors
    /// [`DecodeError::LimitExceeded`] above `max_string_length`, [`DecodeError::Truncated`], [`DecodeError::InvalidUtf8`].
    #[inline]
    pub fn string(&mut self) -> Result<Option<&'a str>, DecodeError> {
        match self.counted(self.limits.max_string_length, "string length")? {
            None => Ok(None),
            Some(bytes) => std::str::from_utf8(bytes)
                .map(Some)
                .map_err(|_| DecodeError::InvalidUtf8),
        }
    }

    /// Reads a String in place that is not checked to be UTF-8; `None` is the null string.
    #[inline]
    pub(crate) fn unchecked_string(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        self.counted(self.limits.max_string_length, "string length")
    }

    /// Passes over `bytes` if they are what comes next.
    #[inline]
    pub(crate) fn skip_if<const N: usize>(&mut self, bytes: &[u8; N]) -> bool {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) if head == bytes => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Goes back to where [`rest`](Self::rest) was `before`.
    #[inline]
    pub(crate) fn back_to(&mut self, before: &'a [u8]) {
        self.rest = before;
    }

    /// Runs `read` one nesting level deeper.
    ///
    /// # Errors
    /// [`DecodeError::TooDeep`] at `max_depth` levels, otherwise those of `read`.
    #[inline]
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, DecodeError>) -> Result<T, DecodeError> {
        if self.depth >= self.limits.max_depth {
            return Err(DecodeError::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Accounts for `count` elements of an array that take `in_memory` bytes each, and at least `on_wire` of the message.
    #[inline]
    pub(crate) fn expand(&mut self, count: usize, in_memory: usize, on_wire: usize) -> Result<(), DecodeError> {
        let bytes = count.saturating_mul(in_memory.saturating_sub(on_wire));
        let expansion = u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(self.expansion);
        if expansion > self.limits.max_expansion {
            return Err(DecodeError::LimitExceeded("memory"));
        }
        self.expansion = expansion;
        Ok(())
    }

    /// Reads `count` fixed-size values as one block.
    pub(crate) fn block<T, const N: usize>(
        &mut self,
        count: usize,
        from_bytes: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, DecodeError> {
        let bytes = self.raw(count.checked_mul(N).ok_or(DecodeError::Truncated)?)?;
        let (chunks, _) = bytes.as_chunks::<N>();
        Ok(chunks.iter().map(|chunk| from_bytes(*chunk)).collect())
    }

    #[inline]
    fn counted(&mut self, limit: u32, what: &'static str) -> Result<Option<&'a [u8]>, DecodeError> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        if length as u64 > u64::from(limit) {
            return Err(DecodeError::LimitExceeded(what));
        }
        self.raw(length).map(Some)
    }
}
