//! Variants (Part 6, 5.2.2.16): what travels as `encoded`, and the plain cases when they are nested in an array of Variant.

use super::{DecodeError, Reader, Writer};
use crate::{DateTime, Guid, Scalar, StatusCode, Typed, Value};

/// Bit of the encoding byte: an array follows.
const ARRAY: u8 = 0x80;
/// Bit of the encoding byte: dimensions follow the array.
const DIMENSIONS: u8 = 0x40;
/// Nesting that is followed before a value is refused.
const MAXIMUM_DEPTH: u8 = 100;

pub(crate) fn encode_scalar<T: Scalar>(value: &T) -> Value {
    let mut writer = Writer::new();
    scalar(&mut writer, value);
    Value::Encoded(writer.into_bytes())
}

pub(crate) fn encode_array<T: Scalar>(values: &[T]) -> Value {
    let mut writer = Writer::new();
    array(&mut writer, values);
    Value::Encoded(writer.into_bytes())
}

pub(crate) fn encode_matrix<T: Scalar>(values: &[T], dimensions: &[u32]) -> Value {
    let mut writer = Writer::new();
    elements(&mut writer, T::BUILT_IN | ARRAY | DIMENSIONS, values);
    writer.length(dimensions.len());
    dimensions
        .iter()
        .for_each(|&n| writer.i32(i32::try_from(n).unwrap_or(i32::MAX)));
    Value::Encoded(writer.into_bytes())
}

pub(crate) fn decode_scalar<T: Scalar>(bytes: &[u8]) -> Option<T> {
    let mut reader = Reader::new(bytes);
    if reader.u8().ok()? != T::BUILT_IN {
        return None;
    }
    let value = T::decode(&mut reader).ok()?;
    reader.end().ok().map(|()| value)
}

pub(crate) fn decode_array<T: Scalar>(bytes: &[u8]) -> Option<Vec<T>> {
    let mut reader = Reader::new(bytes);
    if reader.u8().ok()? != T::BUILT_IN | ARRAY {
        return None;
    }
    let values = read_elements(&mut reader).ok()?;
    reader.end().ok().map(|()| values)
}

pub(crate) fn decode_matrix<T: Scalar>(bytes: &[u8]) -> Option<(Vec<T>, Vec<u32>)> {
    let mut reader = Reader::new(bytes);
    if reader.u8().ok()? != T::BUILT_IN | ARRAY | DIMENSIONS {
        return None;
    }
    let values = read_elements(&mut reader).ok()?;
    let dimensions = read_elements::<i32>(&mut reader)
        .ok()?
        .into_iter()
        .map(u32::try_from)
        .collect::<Result<_, _>>()
        .ok()?;
    reader.end().ok().map(|()| (values, dimensions))
}

fn scalar<T: Scalar>(writer: &mut Writer, value: &T) {
    writer.u8(T::BUILT_IN);
    value.encode(writer);
}

fn array<T: Scalar>(writer: &mut Writer, values: &[T]) {
    elements(writer, T::BUILT_IN | ARRAY, values);
}

fn elements<T: Scalar>(writer: &mut Writer, mask: u8, values: &[T]) {
    writer.u8(mask);
    writer.length(values.len());
    values.iter().for_each(|value| value.encode(writer));
}

fn read_elements<T: Scalar>(reader: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
    (0..reader.length()?).map(|_| T::decode(reader)).collect()
}

impl Writer {
    /// One Variant.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Empty => self.u8(0),
            Value::Boolean(v) => scalar(self, v),
            Value::Sbyte(v) => scalar(self, v),
            Value::Byte(v) => scalar(self, v),
            Value::Int16(v) => scalar(self, v),
            Value::Uint16(v) => scalar(self, v),
            Value::Int32(v) => scalar(self, v),
            Value::Uint32(v) => scalar(self, v),
            Value::Int64(v) => scalar(self, v),
            Value::Uint64(v) => scalar(self, v),
            Value::Float(v) => scalar(self, v),
            Value::Double(v) => scalar(self, v),
            Value::Text(v) => scalar(self, v),
            Value::Time(v) => scalar(self, &DateTime(*v)),
            Value::Guid(v) => scalar(self, &Guid::from_slice(v)),
            Value::Bytes(v) => {
                self.u8(15);
                self.bytes(v);
            }
            Value::Node(v) => scalar(self, v),
            Value::Status(v) => scalar(self, &StatusCode(*v)),
            Value::Qualified(v) => scalar(self, v),
            Value::Localized(v) => scalar(self, v),
            Value::Booleans(v) => array(self, v),
            Value::Int32s(v) => array(self, v),
            Value::Uint32s(v) => array(self, v),
            Value::Int64s(v) => array(self, v),
            Value::Uint64s(v) => array(self, v),
            Value::Floats(v) => array(self, v),
            Value::Doubles(v) => array(self, v),
            Value::Texts(v) => array(self, v),
            Value::Encoded(v) => self.raw(v),
        }
    }
}

impl Reader<'_> {
    /// One Variant. What has no case of its own stays encoded.
    ///
    /// # Errors
    /// The bytes end, are no Variant, or nest too deep.
    pub fn value(&mut self) -> Result<Value, DecodeError> {
        let all = self.rest();
        let mask = self.u8()?;
        if mask & ARRAY == 0
            && let Some(value) = self.plain(mask & 0x3F)?
        {
            return Ok(value);
        }
        self.skip_rest_of_variant(mask)?;
        let bytes = all[..all.len() - self.rest().len()].to_vec();
        Ok(if mask & DIMENSIONS == 0 {
            plain_array(&bytes).unwrap_or(Value::Encoded(bytes))
        } else {
            Value::Encoded(bytes)
        })
    }

    /// A scalar that has a case of its own.
    fn plain(&mut self, built_in: u8) -> Result<Option<Value>, DecodeError> {
        Ok(Some(match built_in {
            0 => Value::Empty,
            1 => Value::Boolean(self.bool()?),
            2 => Value::Sbyte(self.i8()?),
            3 => Value::Byte(self.u8()?),
            4 => Value::Int16(self.i16()?),
            5 => Value::Uint16(self.u16()?),
            6 => Value::Int32(self.i32()?),
            7 => Value::Uint32(self.u32()?),
            8 => Value::Int64(self.i64()?),
            9 => Value::Uint64(self.u64()?),
            10 => Value::Float(self.f32()?),
            11 => Value::Double(self.f64()?),
            12 => Value::Text(self.text()?),
            13 => Value::Time(self.i64()?),
            14 => Value::Guid(self.raw(16)?.to_vec()),
            15 => Value::Bytes(self.bytes()?.to_vec()),
            17 => Value::Node(self.node_id()?),
            19 => Value::Status(self.u32()?),
            20 => Value::Qualified(self.qualified_name()?),
            21 => Value::Localized(self.localized_text()?),
            _ => return Ok(None),
        }))
    }

    fn skip_rest_of_variant(&mut self, mask: u8) -> Result<(), DecodeError> {
        if self.depth >= MAXIMUM_DEPTH {
            return Err(DecodeError::Deep);
        }
        self.depth += 1;
        let count = if mask & ARRAY != 0 { self.length()? } else { 1 };
        for _ in 0..count {
            self.skip(mask & 0x3F)?;
        }
        if mask & DIMENSIONS != 0 {
            for _ in 0..self.length()? {
                self.i32()?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Steps over one value of a built-in type.
    fn skip(&mut self, built_in: u8) -> Result<(), DecodeError> {
        match built_in {
            1..=3 => self.raw(1).map(drop),
            4 | 5 => self.raw(2).map(drop),
            6 | 7 | 10 | 19 => self.raw(4).map(drop),
            8 | 9 | 11 | 13 => self.raw(8).map(drop),
            14 => self.raw(16).map(drop),
            12 | 15 | 16 => self.bytes().map(drop),
            17 => self.node_id().map(drop),
            18 => self.expanded_node_id().map(drop),
            20 => self.qualified_name().map(drop),
            21 => self.localized_text().map(drop),
            22 => self.extension_object().map(drop),
            23 => self.skip_data_value(),
            24 => {
                let mask = self.u8()?;
                if mask == 0 {
                    Ok(())
                } else {
                    self.skip_rest_of_variant(mask)
                }
            }
            25 => self.skip_diagnostic_info(),
            _ => Err(DecodeError::Invalid),
        }
    }

    fn skip_data_value(&mut self) -> Result<(), DecodeError> {
        let mask = self.u8()?;
        if mask & 1 != 0 {
            self.skip(24)?;
        }
        for (bit, size) in [(2, 4), (4, 8), (16, 2), (8, 8), (32, 2)] {
            if mask & bit != 0 {
                self.raw(size)?;
            }
        }
        Ok(())
    }

    fn skip_diagnostic_info(&mut self) -> Result<(), DecodeError> {
        for _ in 0..MAXIMUM_DEPTH {
            let mask = self.u8()?;
            for bit in [1, 2, 4, 8] {
                if mask & bit != 0 {
                    self.i32()?;
                }
            }
            if mask & 16 != 0 {
                self.bytes()?;
            }
            if mask & 32 != 0 {
                self.u32()?;
            }
            if mask & 64 == 0 {
                return Ok(());
            }
        }
        Err(DecodeError::Deep)
    }
}

/// The case of its own that an encoded array has.
fn plain_array(bytes: &[u8]) -> Option<Value> {
    fn of<T: Scalar>(bytes: &[u8]) -> Option<Value> {
        decode_array::<T>(bytes).map(Typed::into_value)
    }
    match bytes.first()? & 0x3F {
        1 => of::<bool>(bytes),
        6 => of::<i32>(bytes),
        7 => of::<u32>(bytes),
        8 => of::<i64>(bytes),
        9 => of::<u64>(bytes),
        10 => of::<f32>(bytes),
        11 => of::<f64>(bytes),
        12 => of::<String>(bytes),
        _ => None,
    }
}

/// The built-in type and the number of dimensions of a value, as a host sees it; `None` when it is not a value at all.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn shape(value: &Value) -> Option<(u8, usize)> {
    let mut writer = Writer::new();
    writer.value(value);
    let bytes = writer.into_bytes();
    let mut reader = Reader::new(&bytes);
    let mask = reader.u8().ok()?;
    if mask & ARRAY == 0 {
        return (mask & DIMENSIONS == 0).then_some((mask, 0));
    }
    for _ in 0..reader.length().ok()? {
        reader.skip(mask & 0x3F).ok()?;
    }
    let dimensions = if mask & DIMENSIONS != 0 {
        reader.length().ok()?
    } else {
        1
    };
    Some((mask & 0x3F, dimensions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteString, ExtensionObject, LocalizedText, Matrix, NodeId};

    fn bytes(value: impl Into<Value>) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.value(&value.into());
        writer.into_bytes()
    }

    #[test]
    fn scalars_and_arrays_have_the_bytes_of_the_standard() {
        assert_eq!(bytes(true), [1, 1]);
        assert_eq!(bytes(-2i16), [4, 0xFE, 0xFF]);
        assert_eq!(bytes("水Boy"), [12, 6, 0, 0, 0, 0xE6, 0xB0, 0xB4, b'B', b'o', b'y']);
        assert_eq!(bytes(vec![1u8, 2]), [0x83, 2, 0, 0, 0, 1, 2]);
        assert_eq!(
            bytes(NodeId::text(1, "Hot水")),
            [17, 3, 1, 0, 6, 0, 0, 0, b'H', b'o', b't', 0xE6, 0xB0, 0xB4]
        );
        assert_eq!(bytes(NodeId::standard(72)), [17, 0, 72]);
        assert_eq!(bytes(NodeId::numeric(5, 1025)), [17, 1, 5, 1, 4]);
        assert_eq!(bytes(NodeId::numeric(300, 70_000)), [17, 2, 0x2C, 1, 0x70, 0x11, 1, 0]);
        assert_eq!(bytes(ByteString(vec![9])), [15, 1, 0, 0, 0, 9]);
        assert_eq!(bytes(LocalizedText::from("a")), [21, 2, 1, 0, 0, 0, b'a']);
        let matrix = Matrix::new([1, 2], vec![1i16, 2]).expect("2 = 1 x 2");
        assert_eq!(
            bytes(matrix),
            [0xC4, 2, 0, 0, 0, 1, 0, 2, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]
        );
    }

    #[test]
    fn nested_variants_come_back_in_the_case_they_had() {
        let object = ExtensionObject {
            type_id: NodeId::numeric(1, 9),
            body: vec![1, 2, 3],
        };
        let values = vec![
            Value::Empty,
            1.5f64.into(),
            "x".into(),
            vec![1i32, 2].into(),
            vec![LocalizedText::from("t")].into(),
            vec![Value::from(1u8), Value::Empty].into(),
            object.clone().into(),
            vec![true].into(),
        ];
        let value = Value::from(values.clone());
        assert_eq!(value.get::<Vec<Value>>(), Some(values));
        assert_eq!(Value::from(object.clone()).get::<ExtensionObject>(), Some(object));
        assert_eq!(shape(&value), Some((24, 1)));
    }

    #[test]
    fn every_prefix_of_a_value_is_refused() {
        let all = bytes(vec![
            Value::from(vec![1i32]),
            "x".into(),
            Value::from(ExtensionObject {
                type_id: NodeId::NULL,
                body: vec![1],
            }),
        ]);
        assert!(Reader::new(&all).value().is_ok());
        for end in 0..all.len() {
            assert!(Reader::new(&all[..end]).value().is_err(), "{end}");
        }
    }

    #[test]
    fn nesting_ends() {
        let mut nested = Vec::new();
        for _ in 0..1000 {
            nested.extend([0x98, 1, 0, 0, 0]);
        }
        assert_eq!(Reader::new(&nested).value(), Err(DecodeError::Deep));
    }

    #[test]
    fn a_value_of_another_type_is_none() {
        assert_eq!(Value::from(1.0f64).get::<f32>(), None);
        assert_eq!(Value::from(vec![1i16]).get::<Vec<u16>>(), None);
        assert_eq!(Value::from(vec![1i16]).get::<Vec<i16>>(), Some(vec![1]));
    }
}
