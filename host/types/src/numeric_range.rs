//! NumericRange: a part of an array, matrix, String or ByteString (Part 4, 7.27).
//!
//! Owns the syntax, reading a part out of a value and writing a part into one. Must not know attributes or access rights.

use std::fmt;
use std::str::FromStr;

use crate::builtin::{Array, ArrayValues, ByteString, StatusCode, UaString, Variant};

mod block;

use block::Block;

/// Most dimensions that a range can have; a matrix with more cannot be read in parts (`BadIndexRangeNoData`).
pub const MAX_RANGE_DIMENSIONS: usize = 32;

/// First and last index in one dimension, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The first index.
    pub low: u32,
    /// The last index, never below `low`.
    pub high: u32,
}

/// A range: one or more [`Bounds`], the slowest dimension first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumericRange {
    dimensions: Vec<Bounds>,
}

/// Why a text is not a range, or a range does not fit a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumericRangeError {
    /// The syntax is wrong: `BadIndexRangeInvalid`.
    #[error("not a numeric range")]
    Syntax,
    /// The range selects nothing, or not what can be written: `BadIndexRangeNoData`.
    #[error("the range lies outside the value")]
    NoData,
    /// The value to write is not of the size of the range: `BadIndexRangeDataMismatch`.
    #[error("the value does not have the size of the range")]
    Size,
    /// The value to write is of another type than the one to write into: `BadTypeMismatch`.
    #[error("the value has another type")]
    Type,
}

impl From<NumericRangeError> for StatusCode {
    fn from(error: NumericRangeError) -> Self {
        match error {
            NumericRangeError::Syntax => Self::BAD_INDEX_RANGE_INVALID,
            NumericRangeError::NoData => Self::BAD_INDEX_RANGE_NO_DATA,
            NumericRangeError::Size => Self::BAD_INDEX_RANGE_DATA_MISMATCH,
            NumericRangeError::Type => Self::BAD_TYPE_MISMATCH,
        }
    }
}

/// An index. One that no array can have becomes the largest number, which lies outside every array.
fn index(text: &str) -> Result<u32, NumericRangeError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumericRangeError::Syntax);
    }
    Ok(text.parse().unwrap_or(u32::MAX))
}

/// Whether one number is below another; numbers of any length.
fn below(a: &str, b: &str) -> bool {
    let a = a.trim_start_matches('0');
    let b = b.trim_start_matches('0');
    (a.len(), a) < (b.len(), b)
}

impl FromStr for Bounds {
    type Err = NumericRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None => index(text).map(|low| Self { low, high: low }),
            Some((first, last)) => {
                let (low, high) = (index(first)?, index(last)?);
                if below(first, last) {
                    Ok(Self { low, high })
                } else {
                    Err(NumericRangeError::Syntax)
                }
            }
        }
    }
}

impl FromStr for NumericRange {
    type Err = NumericRangeError;

    /// `5`, `1:2` or, for matrices, `0:1,3`. More than [`MAX_RANGE_DIMENSIONS`] are [`NumericRangeError::NoData`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut dimensions = Vec::new();
        for bounds in text.split(',') {
            if dimensions.len() == MAX_RANGE_DIMENSIONS {
                return Err(NumericRangeError::NoData);
            }
            dimensions.push(bounds.parse()?);
        }
        Ok(Self { dimensions })
    }
}

impl fmt::Display for NumericRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, bounds) in self.dimensions.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", bounds.low)?;
            if bounds.high != bounds.low {
                write!(f, ":{}", bounds.high)?;
            }
        }
        Ok(())
    }
}

impl NumericRange {
    /// The range of an indexRange parameter; `None` if it is empty and the whole value is meant.
    ///
    /// # Errors
    /// `BadIndexRangeInvalid` for wrong syntax.
    pub fn parse(text: &str) -> Result<Option<Self>, StatusCode> {
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(StatusCode::from)
    }

    /// The bounds, by dimension.
    #[must_use]
    pub fn dimensions(&self) -> &[Bounds] {
        &self.dimensions
    }

    /// A copy of the part of a value that the range selects. It keeps the number of dimensions, so a single element of an array is an array
    /// of one. A range that reaches beyond the end gives what there is.
    ///
    /// For arrays of Strings and ByteStrings, one dimension more selects a part of each element.
    ///
    /// # Errors
    /// `BadIndexRangeNoData` if a dimension starts beyond its end, the number of dimensions is another, or the value is no array.
    pub fn read(&self, value: &Variant) -> Result<Variant, StatusCode> {
        self.read_part(value).map_err(StatusCode::from)
    }

    /// Overwrites the part of `target` that the range selects.
    ///
    /// Where the range selects one element of an array, `value` may be that element or an array of it.
    ///
    /// # Errors
    /// `BadIndexRangeNoData` if the range does not lie within `target`, `BadIndexRangeDataMismatch` if `value` has another size than the range,
    /// `BadTypeMismatch` if it has another type. Then `target` is unchanged.
    pub fn write(&self, target: &mut Variant, value: &Variant) -> Result<(), StatusCode> {
        self.write_part(target, value).map_err(StatusCode::from)
    }

    fn read_part(&self, value: &Variant) -> Result<Variant, NumericRangeError> {
        match (value, self.dimensions.as_slice()) {
            (Variant::String(text), [bounds]) => read_text(text, *bounds).map(Variant::from),
            (Variant::ByteString(bytes), [bounds]) => read_bytes(bytes, *bounds).map(Variant::from),
            (Variant::Array(array), dimensions) => {
                let (outer, inner) = split(array, dimensions)?;
                let block = Block::clamped(array, outer)?;
                let mut part = block.read(array)?;
                if let Some(bounds) = inner {
                    narrow(&mut part.values, bounds)?;
                }
                Ok(Variant::from(part))
            }
            _ => Err(NumericRangeError::NoData),
        }
    }

    fn write_part(&self, target: &mut Variant, value: &Variant) -> Result<(), NumericRangeError> {
        match (target, self.dimensions.as_slice()) {
            (Variant::String(text), [bounds]) => {
                let Variant::String(part) = value else {
                    return Err(NumericRangeError::Type);
                };
                *text = write_text(text, *bounds, part)?;
            }
            (Variant::ByteString(bytes), [bounds]) => {
                let Variant::ByteString(part) = value else {
                    return Err(NumericRangeError::Type);
                };
                *bytes = write_bytes(bytes, *bounds, part)?;
            }
            (Variant::Array(array), dimensions) => {
                let (outer, inner) = split(array, dimensions)?;
                let block = Block::exact(array, outer)?;
                let single;
                let part = match value {
                    Variant::Array(part) => part.as_ref(),
                    scalar if block.len() == 1 => {
                        single = element(scalar, array)?;
                        &single
                    }
                    _ => return Err(NumericRangeError::Size),
                };
                if part.values.built_in_type() != array.values.built_in_type() {
                    return Err(NumericRangeError::Type);
                }
                match inner {
                    None => block.write(array, part)?,
                    Some(bounds) => {
                        let mut whole = block.read(array)?;
                        replace_within(&mut whole.values, bounds, &part.values)?;
                        block.write(array, &whole)?;
                    }
                }
            }
            _ => return Err(NumericRangeError::NoData),
        }
        Ok(())
    }
}

/// Splits a range into the dimensions of the array and, if there is one more, the part of each String or ByteString.
fn split<'a>(array: &Array, dimensions: &'a [Bounds]) -> Result<(&'a [Bounds], Option<Bounds>), NumericRangeError> {
    let rank = array.dimensions.len().max(1);
    if dimensions.len() == rank {
        return Ok((dimensions, None));
    }
    match (dimensions.split_last(), &array.values) {
        (Some((inner, outer)), ArrayValues::String(_) | ArrayValues::ByteString(_)) if outer.len() == rank => {
            Ok((outer, Some(*inner)))
        }
        _ => Err(NumericRangeError::NoData),
    }
}

/// A scalar as an array of one, of the rank of `like`.
fn element(scalar: &Variant, like: &Array) -> Result<Array, NumericRangeError> {
    let values = match (&like.values, scalar) {
        (ArrayValues::Variant(_), scalar) => ArrayValues::Variant(vec![scalar.clone()]),
        (_, scalar) => ArrayValues::from_scalar(scalar.clone()).ok_or(NumericRangeError::Type)?,
    };
    Ok(Array {
        values,
        dimensions: vec![1; like.dimensions.len()],
    })
}

/// Start and end (not included) of the part of `length` units, cut at the end.
fn clamp(bounds: Bounds, length: usize) -> Result<(usize, usize), NumericRangeError> {
    let low = usize::try_from(bounds.low).map_err(|_| NumericRangeError::NoData)?;
    if low >= length {
        return Err(NumericRangeError::NoData);
    }
    let end = usize::try_from(bounds.high).map_or(length, |high| high.saturating_add(1).min(length));
    Ok((low, end))
}

/// As [`clamp`], but the part has to lie within.
fn exact(bounds: Bounds, length: usize) -> Result<(usize, usize), NumericRangeError> {
    let (low, end) = clamp(bounds, length)?;
    match usize::try_from(bounds.high) {
        Ok(high) if high < length => Ok((low, end)),
        _ => Err(NumericRangeError::NoData),
    }
}

/// The byte at which a character starts, or the end of the text.
fn offset(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(offset, _)| offset)
}

fn read_text(text: &UaString, bounds: Bounds) -> Result<UaString, NumericRangeError> {
    let text = text.text();
    let (low, end) = clamp(bounds, text.chars().count())?;
    let part = text.get(offset(text, low)..offset(text, end));
    part.map(UaString::from).ok_or(NumericRangeError::NoData)
}

fn read_bytes(bytes: &ByteString, bounds: Bounds) -> Result<ByteString, NumericRangeError> {
    let bytes = bytes.bytes();
    let (low, end) = clamp(bounds, bytes.len())?;
    let part = bytes.get(low..end);
    part.map(ByteString::from).ok_or(NumericRangeError::NoData)
}

fn write_text(text: &UaString, bounds: Bounds, part: &UaString) -> Result<UaString, NumericRangeError> {
    let text = text.text();
    let (low, end) = exact(bounds, text.chars().count())?;
    if part.text().chars().count() != end - low {
        return Err(NumericRangeError::Size);
    }
    let before = text.get(..offset(text, low)).unwrap_or("");
    let after = text.get(offset(text, end)..).unwrap_or("");
    Ok(UaString::from([before, part.text(), after].concat()))
}

fn write_bytes(bytes: &ByteString, bounds: Bounds, part: &ByteString) -> Result<ByteString, NumericRangeError> {
    let mut bytes = bytes.bytes().to_vec();
    let (low, end) = exact(bounds, bytes.len())?;
    if part.bytes().len() != end - low {
        return Err(NumericRangeError::Size);
    }
    if let Some(place) = bytes.get_mut(low..end) {
        place.copy_from_slice(part.bytes());
    }
    Ok(ByteString::from(bytes))
}

/// Cuts each String or ByteString; one that is too short becomes empty, and it is an error if all are.
fn narrow(values: &mut ArrayValues, bounds: Bounds) -> Result<(), NumericRangeError> {
    let mut found = false;
    match values {
        ArrayValues::String(texts) => {
            for text in texts {
                let part = read_text(text, bounds);
                found |= part.is_ok();
                *text = part.unwrap_or_else(|_| UaString::from(""));
            }
        }
        ArrayValues::ByteString(strings) => {
            for bytes in strings {
                let part = read_bytes(bytes, bounds);
                found |= part.is_ok();
                *bytes = part.unwrap_or_else(|_| ByteString::from(&[]));
            }
        }
        _ => return Err(NumericRangeError::NoData),
    }
    if found { Ok(()) } else { Err(NumericRangeError::NoData) }
}

/// Overwrites a part of each String or ByteString.
fn replace_within(values: &mut ArrayValues, bounds: Bounds, parts: &ArrayValues) -> Result<(), NumericRangeError> {
    if values.len() != parts.len() {
        return Err(NumericRangeError::Size);
    }
    match (values, parts) {
        (ArrayValues::String(texts), ArrayValues::String(parts)) => {
            for (text, part) in texts.iter_mut().zip(parts) {
                *text = write_text(text, bounds, part)?;
            }
            Ok(())
        }
        (ArrayValues::ByteString(strings), ArrayValues::ByteString(parts)) => {
            for (bytes, part) in strings.iter_mut().zip(parts) {
                *bytes = write_bytes(bytes, bounds, part)?;
            }
            Ok(())
        }
        _ => Err(NumericRangeError::Type),
    }
}

#[cfg(test)]
mod tests;
