//! The numeric built-in types (Part 6, 5.2.2.1 to 5.2.2.3), with block copies for arrays.

use super::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

macro_rules! number {
    ($($type:ident $size:literal),*) => {$(
        impl BinaryEncode for $type {
            #[inline]
            fn encode(&self, e: &mut Encoder<'_>) {
                e.$type(*self);
            }

            fn encode_slice(values: &[Self], e: &mut Encoder<'_>) {
                e.block(values, $type::to_le_bytes);
            }
        }

        impl BinaryDecode for $type {
            const MIN_SIZE: usize = $size;

            #[inline]
            fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                d.$type()
            }

            fn decode_vec(d: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, DecodeError> {
                d.block(count, $type::from_le_bytes)
            }
        }
    )*};
}

number!(i8 1, u16 2, i16 2, u32 4, i32 4, u64 8, i64 8, f32 4, f64 8);

impl BinaryEncode for u8 {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        e.u8(*self);
    }

    fn encode_slice(values: &[Self], e: &mut Encoder<'_>) {
        e.raw(values);
    }
}

impl BinaryDecode for u8 {
    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        d.u8()
    }

    fn decode_vec(d: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, DecodeError> {
        d.raw(count).map(<[u8]>::to_vec)
    }
}

impl BinaryEncode for bool {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        e.bool(*self);
    }
}

impl BinaryDecode for bool {
    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        d.bool()
    }

    fn decode_vec(d: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, DecodeError> {
        Ok(d.raw(count)?.iter().map(|byte| *byte != 0).collect())
    }
}
