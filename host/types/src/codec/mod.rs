//! OPC UA Binary (Part 6, 5.2): the writer, the bounded reader and the two traits that every built-in and generated type implements.
//!
//! This module owns byte order, length prefixes, limits and nesting depth. It must not know any service, node or message: those are
//! layers of fields on top of it. Nothing in here panics on input, and nothing allocates more than the input can justify.

mod decoder;
mod encoder;
mod error;
mod limits;
mod scalars;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::DecodeError;
pub use limits::DecodeLimits;

/// Highest number of levels that Variants, DataValues, ExtensionObjects, DiagnosticInfos and filter operands may nest, together.
///
/// Part 6, 5.1.6 asks decoders to support at least 100 levels.
pub const MAX_DEPTH: u32 = 100;

/// A value that can be written as OPC UA Binary.
///
/// Writing never fails in the middle; a value that the encoding cannot carry is replaced by its null form and
/// [`Encoder::error`] says so at the end.
pub trait BinaryEncode {
    /// Appends the value.
    fn encode(&self, e: &mut Encoder<'_>);

    /// Appends all values one after the other, without a length. Scalars override this with one block copy.
    #[doc(hidden)]
    fn encode_slice(values: &[Self], e: &mut Encoder<'_>)
    where
        Self: Sized,
    {
        for value in values {
            value.encode(e);
        }
    }
}

/// A value that can be read from OPC UA Binary.
pub trait BinaryDecode: Sized {
    /// Fewest bytes one value takes on the wire; bounds what an array length can claim.
    const MIN_SIZE: usize = 1;

    /// Reads one value in place.
    ///
    /// # Errors
    /// [`DecodeError`]: truncated, malformed, or above a limit.
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Reads `count` values that follow one another; `count` was checked against the limits and the remaining bytes.
    #[doc(hidden)]
    fn decode_vec(d: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, DecodeError> {
        // The first allocation is no larger than what remains of the message: later growth follows values that were really there.
        let per_value = std::mem::size_of::<Self>();
        d.expand(count, per_value, Self::MIN_SIZE)?;
        let affordable = (d.remaining() / per_value.max(1)).max(4);
        let mut values = Vec::with_capacity(count.min(affordable));
        for _ in 0..count {
            values.push(Self::decode(d)?);
        }
        Ok(values)
    }
}

impl<T: BinaryEncode> BinaryEncode for Vec<T> {
    fn encode(&self, e: &mut Encoder<'_>) {
        self.as_slice().encode(e);
    }
}

impl<T: BinaryEncode> BinaryEncode for [T] {
    fn encode(&self, e: &mut Encoder<'_>) {
        if e.length(self.len()) {
            T::encode_slice(self, e);
        }
    }
}

/// A null array (length -1) reads as an empty one.
impl<T: BinaryDecode> BinaryDecode for Vec<T> {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match d.array_length(T::MIN_SIZE)? {
            Some(count) => T::decode_vec(d, count),
            None => Ok(Self::new()),
        }
    }
}

impl<T: BinaryEncode> BinaryEncode for Box<T> {
    fn encode(&self, e: &mut Encoder<'_>) {
        self.as_ref().encode(e);
    }
}

impl<T: BinaryDecode> BinaryDecode for Box<T> {
    const MIN_SIZE: usize = T::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        T::decode(d).map(Self::new)
    }
}

impl<T: BinaryEncode> BinaryEncode for std::sync::Arc<T> {
    fn encode(&self, e: &mut Encoder<'_>) {
        self.as_ref().encode(e);
    }
}
