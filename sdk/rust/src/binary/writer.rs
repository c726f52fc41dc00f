//! Appending OPC UA Binary to a buffer. Writing cannot fail.

use crate::{ExpandedNodeId, ExtensionObject, Guid, Identifier, LocalizedText, NodeId, QualifiedName};

/// Appends values in OPC UA Binary, little-endian (Part 6, 5.2.2).
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

macro_rules! numbers {
    ($($name:ident),*) => {$(
        #[doc = concat!("Appends one ", stringify!($name), ".")]
        pub fn $name(&mut self, value: $name) {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    )*};
}

impl Writer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

    /// A Boolean.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Bytes as they are, without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The Int32 length of an array. A plugin cannot hold more than 4 GiB, so a length beyond Int32 is a bug and is written as null.
    pub fn length(&mut self, length: usize) {
        self.i32(i32::try_from(length).unwrap_or(-1));
    }

    /// A ByteString.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.raw(bytes);
    }

    /// A String.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A null String or ByteString.
    pub fn null(&mut self) {
        self.i32(-1);
    }

    /// A Guid.
    pub fn guid(&mut self, guid: &Guid) {
        self.raw(&guid.0);
    }

    /// A NodeId in its shortest form (5.2.2.9).
    pub fn node_id(&mut self, id: &NodeId) {
        self.flagged_node_id(id, 0);
    }

    fn flagged_node_id(&mut self, id: &NodeId, flags: u8) {
        let namespace = id.namespace;
        match &id.identifier {
            Identifier::Numeric(number) => match (u8::try_from(namespace), u16::try_from(*number)) {
                (Ok(0), Ok(short)) if short <= 0xFF => {
                    self.u8(flags);
                    self.raw(&short.to_le_bytes()[..1]);
                }
                (Ok(namespace), Ok(number)) => {
                    self.u8(flags | 1);
                    self.u8(namespace);
                    self.u16(number);
                }
                _ => {
                    self.u8(flags | 2);
                    self.u16(namespace);
                    self.u32(*number);
                }
            },
            Identifier::Text(text) => {
                self.u8(flags | 3);
                self.u16(namespace);
                self.text(text);
            }
            Identifier::Guid(bytes) => {
                self.u8(flags | 4);
                self.u16(namespace);
                let mut guid = [0; 16];
                guid.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                self.raw(&guid);
            }
            Identifier::Opaque(bytes) => {
                self.u8(flags | 5);
                self.u16(namespace);
                self.bytes(bytes);
            }
        }
    }

    /// An ExpandedNodeId (5.2.2.10).
    pub fn expanded_node_id(&mut self, id: &ExpandedNodeId) {
        let uri = !id.namespace_uri.is_empty();
        let flags = if uri { 0x80 } else { 0 } | if id.server_index != 0 { 0x40 } else { 0 };
        self.flagged_node_id(&id.node_id, flags);
        if uri {
            self.text(&id.namespace_uri);
        }
        if id.server_index != 0 {
            self.u32(id.server_index);
        }
    }

    /// A QualifiedName.
    pub fn qualified_name(&mut self, name: &QualifiedName) {
        self.u16(name.namespace);
        self.text(&name.name);
    }

    /// A LocalizedText (5.2.2.14); an empty locale or text is left out.
    pub fn localized_text(&mut self, text: &LocalizedText) {
        self.u8(u8::from(!text.locale.is_empty()) | if text.text.is_empty() { 0 } else { 2 });
        if !text.locale.is_empty() {
            self.text(&text.locale);
        }
        if !text.text.is_empty() {
            self.text(&text.text);
        }
    }

    /// An ExtensionObject with a binary body (5.2.2.15).
    pub fn extension_object(&mut self, object: &ExtensionObject) {
        self.node_id(&object.type_id);
        self.u8(1);
        self.bytes(&object.body);
    }
}
