//! Bytes that no encoder of ours would write. Owns small writers, and no seed.

use backplane_types::{BinaryEncode, Encoder, NodeId, Structure};

/// What a closure writes.
pub(super) fn bytes(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Encoder::new(&mut bytes));
    bytes
}

/// A value as it is encoded.
pub(super) fn encode(value: &impl BinaryEncode) -> Vec<u8> {
    bytes(|e| e.put(value))
}

/// A message: the id of the encoding, then the structure.
pub(super) fn message<T: Structure>(structure: &T) -> Vec<u8> {
    bytes(|e| {
        e.put(&NodeId::standard(T::ENCODING_ID));
        e.put(structure);
    })
}

/// Arrays of one Variant within each other, and a Boolean at the bottom.
pub(super) fn nested_variants(levels: usize) -> Vec<u8> {
    let mut bytes = [0x98, 1, 0, 0, 0].repeat(levels);
    bytes.extend([1, 1]);
    bytes
}

/// A Variant with a DataValue with a Variant, and so on.
pub(super) fn nested_data_values(levels: usize) -> Vec<u8> {
    let mut bytes = [23, 1].repeat(levels);
    bytes.extend([1, 1]);
    bytes
}

/// A DiagnosticInfo in a DiagnosticInfo, and so on.
pub(super) fn nested_diagnostics(levels: usize) -> Vec<u8> {
    let mut bytes = vec![0x40; levels];
    bytes.push(0);
    bytes
}

/// ExtensionObjects within the bodies of ExtensionObjects; each is the value of a LiteralOperand.
pub(super) fn nested_objects(levels: usize) -> Vec<u8> {
    // From the inside out, and turned around in the end: what comes first is written last.
    let mut reversed = vec![0, 0, 0];
    for _ in 0..levels {
        reversed.push(22);
        let length = u32::try_from(reversed.len()).unwrap_or(u32::MAX);
        reversed.extend(length.to_be_bytes());
        // Binary body, and the four-byte form of the id 597.
        reversed.extend([1, 0x02, 0x55, 0, 1]);
    }
    reversed.reverse();
    reversed
}

/// Every kind of nesting in turn.
pub(super) fn nested_mixture(levels: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for level in 0..levels / 2 {
        match level % 2 {
            0 => bytes.extend([0x98, 1, 0, 0, 0, 23, 1]),
            _ => bytes.extend([0x97, 1, 0, 0, 0, 1, 23, 1]),
        }
    }
    bytes.push(25);
    bytes.extend(nested_diagnostics(levels / 4));
    bytes
}
