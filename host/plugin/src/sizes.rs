//! How much host memory the values of one plugin hold.
//!
//! A guest's own memory is bounded by its linear memory, but what it publishes lives in the host. Owns the sum; must not know cells.

use std::collections::HashMap;

use backplane_types::{Array, ArrayValues, DataValue, ExtensionBody, StatusCode, Variant};

/// Values below this are not counted: their node costs more.
const SMALL: usize = 256;

#[derive(Debug)]
pub(crate) struct Sizes {
    each: usize,
    total: usize,
    used: usize,
    by_tag: HashMap<u32, usize>,
}

impl Sizes {
    pub(crate) fn new(each: usize, total: usize) -> Self {
        Self {
            each,
            total,
            used: 0,
            by_tag: HashMap::new(),
        }
    }

    /// Whether no value is large enough to be counted.
    pub(crate) fn is_nothing(&self) -> bool {
        self.by_tag.is_empty()
    }

    /// Takes note of a new value for a tag.
    ///
    /// # Errors
    /// `BadEncodingLimitsExceeded` for one value that is too large, `BadOutOfMemory` when all together are.
    pub(crate) fn replace(&mut self, tag: u32, value: &Variant) -> Result<(), StatusCode> {
        let size = variant(value, 0);
        if size < SMALL && self.by_tag.is_empty() {
            return Ok(());
        }
        if size > self.each {
            return Err(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
        }
        let size = if size < SMALL { 0 } else { size };
        let old = self.by_tag.get(&tag).copied().unwrap_or(0);
        let used = self.used.saturating_sub(old).saturating_add(size);
        if used > self.total && size > old {
            return Err(StatusCode::BAD_OUT_OF_MEMORY);
        }
        self.used = used;
        if size == 0 {
            self.by_tag.remove(&tag);
        } else {
            self.by_tag.insert(tag, size);
        }
        Ok(())
    }
}

/// Bytes that a value takes, about.
pub(crate) fn bytes(value: &Variant) -> usize {
    variant(value, 0).saturating_add(size_of::<Variant>())
}

/// Bytes on the heap behind a value, about. Decoders bound the nesting; what is deeper than they allow counts as too large.
fn variant(value: &Variant, depth: u32) -> usize {
    if depth > 110 {
        return usize::MAX;
    }
    match value {
        Variant::String(text) => text.text().len(),
        Variant::ByteString(bytes) => bytes.bytes().len(),
        Variant::XmlElement(xml) => xml.0.text().len(),
        Variant::LocalizedText(text) => text.text.text().len().saturating_add(text.locale.text().len()),
        Variant::QualifiedName(name) => name.name.text().len(),
        Variant::ExtensionObject(object) => body(&object.body),
        Variant::DataValue(value) => data_value(value, depth),
        Variant::Array(array) => array_size(array, depth),
        // Identifiers, diagnostics: bounded by the name lengths of the decoder, and rare.
        _ => 0,
    }
}

fn body(body: &ExtensionBody) -> usize {
    match body {
        ExtensionBody::None => 0,
        ExtensionBody::Binary(bytes) => bytes.bytes().len(),
        ExtensionBody::Xml(xml) => xml.0.text().len(),
    }
}

fn data_value(value: &DataValue, depth: u32) -> usize {
    variant(&value.value, depth.saturating_add(1)).saturating_add(size_of::<DataValue>())
}

fn array_size(array: &Array, depth: u32) -> usize {
    fn flat<T>(values: &[T]) -> usize {
        size_of_val(values)
    }
    fn sum<T>(values: &[T], each: impl Fn(&T) -> usize) -> usize {
        values
            .iter()
            .fold(size_of_val(values), |sum, value| sum.saturating_add(each(value)))
    }
    match &array.values {
        ArrayValues::Boolean(v) => flat(v),
        ArrayValues::SByte(v) => flat(v),
        ArrayValues::Byte(v) => flat(v),
        ArrayValues::Int16(v) => flat(v),
        ArrayValues::UInt16(v) => flat(v),
        ArrayValues::Int32(v) => flat(v),
        ArrayValues::UInt32(v) => flat(v),
        ArrayValues::Int64(v) => flat(v),
        ArrayValues::UInt64(v) => flat(v),
        ArrayValues::Float(v) => flat(v),
        ArrayValues::Double(v) => flat(v),
        ArrayValues::DateTime(v) => flat(v),
        ArrayValues::StatusCode(v) => flat(v),
        ArrayValues::Guid(v) => flat(v),
        ArrayValues::String(v) => sum(v, |text| text.text().len()),
        ArrayValues::ByteString(v) => sum(v, |bytes| bytes.bytes().len()),
        ArrayValues::XmlElement(v) => sum(v, |xml| xml.0.text().len()),
        ArrayValues::NodeId(v) => flat(v),
        ArrayValues::ExpandedNodeId(v) => flat(v),
        ArrayValues::QualifiedName(v) => sum(v, |name| name.name.text().len()),
        ArrayValues::LocalizedText(v) => sum(v, |text| text.text.text().len()),
        ArrayValues::ExtensionObject(v) => sum(v, |object| body(&object.body)),
        ArrayValues::DataValue(v) => sum(v, |value| data_value(value, depth)),
        ArrayValues::Variant(v) => sum(v, |value| variant(value, depth.saturating_add(1))),
        ArrayValues::DiagnosticInfo(v) => flat(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_are_counted_and_released() {
        let mut sizes = Sizes::new(1_000, 1_500);
        let text = |length: usize| Variant::String("x".repeat(length).into());
        assert_eq!(
            sizes.replace(1, &text(1_001)),
            Err(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED)
        );
        sizes.replace(1, &text(900)).unwrap();
        assert_eq!(sizes.replace(2, &text(700)), Err(StatusCode::BAD_OUT_OF_MEMORY));
        sizes.replace(2, &text(600)).unwrap();
        sizes.replace(1, &Variant::Int32(5)).unwrap();
        sizes.replace(3, &text(800)).unwrap();
        assert_eq!(sizes.used, 1_400);
    }
}
