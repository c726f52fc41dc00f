//! Numeric ranges applied to values.
//!
//! Input: the range as text up to a line feed, then the value to read from and write into, then the value to write.

use backplane_types::{BinaryDecode, DecodeLimits, Decoder, NumericRange, StatusCode, Variant};

use crate::check::{FREE, encoded, within};
use crate::feedback::note;

/// What is read is of the type and rank of the value and no larger. Writing back what was read changes nothing. A write that fails changes
/// nothing, and one that works can be read back.
pub fn range(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (text, rest) = data.split_at(end);
    let Ok(Ok(Some(range))) = std::str::from_utf8(text).map(NumericRange::parse) else {
        return;
    };
    let mut decoder = Decoder::new(rest.get(1..).unwrap_or(&[]), DecodeLimits::DEFAULT);
    let Ok(value) = Variant::decode(&mut decoder) else {
        return;
    };
    let other = Variant::decode(&mut decoder).unwrap_or_default();
    // Elements are shared or copied, never more than the value has.
    let limit = FREE + 2 * 72 * (rest.len() as u64);
    let part = within(limit, || range.read(&value));
    note((
        part.as_ref().err(),
        range.dimensions().len(),
        value.rank(),
        value.built_in_type(),
    ));
    note((other.rank(), other.built_in_type(), decoder.position()));
    match &part {
        Ok(part) => {
            assert_eq!(part.built_in_type(), value.built_in_type());
            assert_eq!(part.rank(), value.rank());
            assert!(encoded(part).len() <= encoded(&value).len());
            let mut target = value.clone();
            if write(&range, &mut target, part, limit).is_ok() {
                assert!(target.is_same(&value), "{value:?} became {target:?}");
            }
        }
        Err(status) => assert_eq!(*status, StatusCode::BAD_INDEX_RANGE_NO_DATA),
    }
    let mut target = value.clone();
    if write(&range, &mut target, &other, limit).is_ok() {
        let back = range
            .read(&target)
            .unwrap_or_else(|error| panic!("{error} after a write to {target:?}"));
        let single = other.as_array().is_none() && back.as_array().is_some();
        assert!(
            single || encoded(&back) == encoded(&other),
            "{other:?} was read back as {back:?}"
        );
    } else {
        assert!(target.is_same(&value), "{value:?} became {target:?}");
    }
}

fn write(range: &NumericRange, target: &mut Variant, value: &Variant, limit: u64) -> Result<(), StatusCode> {
    let written = within(limit, || range.write(target, value));
    note(written);
    if let Err(status) = &written {
        let known = [
            StatusCode::BAD_INDEX_RANGE_NO_DATA,
            StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH,
            StatusCode::BAD_TYPE_MISMATCH,
        ];
        assert!(known.contains(status), "{status}");
    }
    written
}
