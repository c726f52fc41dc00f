//! Promises that hold for every decoder.
//!
//! Owns the round trip and the bound on memory. Must not know any particular type.

use std::fmt::Debug;

use backplane_types::{BinaryDecode, BinaryEncode, DecodeError, DecodeLimits, Decoder, Encoder, StatusCode};

use crate::feedback::note;

/// Bytes that any call may take, whatever its input.
pub(crate) const FREE: u64 = 4 * 1_024;
/// Bytes that decoding may take per byte of input: a DataValue of one byte takes 72, and a list that grows holds old and new for a moment.
const PER_BYTE: u64 = 3 * 72;

/// Limits low enough that inputs of some hundred bytes meet them.
pub(crate) const TIGHT: DecodeLimits = DecodeLimits {
    max_string_length: 40,
    max_byte_string_length: 64,
    max_array_length: 12,
    max_depth: 6,
    ..DecodeLimits::DEFAULT
};

/// Runs something and checks that at no time it held more memory than `input` bytes can justify.
pub(crate) fn bounded<T>(input: usize, run: impl FnOnce() -> T) -> T {
    within(FREE + PER_BYTE * input as u64, run)
}

/// Runs something and checks that at no time it held more than `limit` bytes of memory.
pub(crate) fn within<T>(limit: u64, run: impl FnOnce() -> T) -> T {
    let mut result = None;
    let cost = allocation_counter::measure(|| result = Some(run()));
    assert!(
        cost.bytes_max <= limit,
        "{} bytes held, {limit} justified",
        cost.bytes_max
    );
    result.expect("measure runs what it is given")
}

/// The value in bytes, which have to be all there: decoded values nest no deeper than can be encoded.
pub(crate) fn encoded<T: BinaryEncode>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes);
    value.encode(&mut encoder);
    assert_eq!(encoder.error(), None, "a decoded value cannot be encoded");
    bytes
}

/// Equal, or equal but for numbers that are not equal to themselves.
pub(crate) fn same<T: PartialEq + Debug>(one: &T, other: &T) -> bool {
    let equal = |one: &T, other: &T| one == other;
    equal(one, other) || (!equal(one, one) && format!("{one:?}") == format!("{other:?}"))
}

/// Decodes; what is accepted is identical after encoding and decoding once more, takes no more bytes than it came in, and is all of what was
/// encoded.
pub(crate) fn round_trip<T>(decoder: &mut Decoder<'_>) -> Result<T, DecodeError>
where
    T: BinaryDecode + BinaryEncode + PartialEq + Debug,
{
    let start = decoder.position();
    let first = bounded(decoder.remaining(), || T::decode(decoder));
    note((decoder.position(), first.as_ref().err().map(DecodeError::to_string)));
    let first = match first {
        Ok(value) => value,
        Err(error) => {
            let known = [StatusCode::BAD_DECODING_ERROR, StatusCode::BAD_ENCODING_LIMITS_EXCEEDED];
            assert!(known.contains(&error.status()));
            return Err(error);
        }
    };
    let consumed = decoder.position() - start;
    let bytes = encoded(&first);
    assert!(
        bytes.len() <= consumed,
        "{consumed} bytes became {}: {first:?}",
        bytes.len()
    );
    assert!(consumed >= T::MIN_SIZE, "accepted {consumed} bytes: {first:?}");
    let mut again = Decoder::new(&bytes, decoder.limits());
    let second = T::decode(&mut again).unwrap_or_else(|error| panic!("{error}: {first:?}"));
    assert!(again.is_empty(), "{} bytes left over: {first:?}", again.remaining());
    assert!(same(&first, &second), "{first:?} became {second:?}");
    assert_eq!(encoded(&second), bytes, "encoded differently: {first:?}");
    Ok(first)
}
