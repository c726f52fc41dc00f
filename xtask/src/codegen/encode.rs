//! OPC UA Binary (Part 6, 5.2) for the values that go into the node table.
//!
//! Deliberately not `backplane-types`: the generator must build when the sources it generates are missing or stale.

/// Builds one encoded value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// An array's or a string's length.
    pub(crate) fn length(&mut self, length: usize) {
        self.i32(i32::try_from(length).unwrap_or(i32::MAX));
    }

    /// A null string or array.
    pub(crate) fn null(&mut self) {
        self.i32(-1);
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.length(text.len());
        self.raw(text.as_bytes());
    }

    /// A numeric NodeId of namespace 0, in its shortest form.
    pub(crate) fn node_id(&mut self, id: u32) {
        if let Ok(id) = u8::try_from(id) {
            self.raw(&[0, id]);
        } else if let Ok(id) = u16::try_from(id) {
            self.raw(&[1, 0]);
            self.raw(&id.to_le_bytes());
        } else {
            self.raw(&[2, 0, 0]);
            self.u32(id);
        }
    }

    pub(crate) fn localized_text(&mut self, locale: Option<&str>, text: Option<&str>) {
        self.u8(u8::from(locale.is_some()) | (u8::from(text.is_some()) << 1));
        for part in [locale, text].into_iter().flatten() {
            self.string(part);
        }
    }

    /// An ExtensionObject with a binary body.
    pub(crate) fn extension_object(&mut self, encoding_id: u32, body: &[u8]) {
        self.node_id(encoding_id);
        self.u8(1);
        self.length(body.len());
        self.raw(body);
    }
}

#[cfg(test)]
mod tests {
    use super::Writer;

    #[test]
    fn node_ids_take_their_shortest_form() {
        let mut writer = Writer::default();
        writer.node_id(72);
        writer.node_id(1025);
        writer.node_id(70_000);
        assert_eq!(writer.finish(), [0, 72, 1, 0, 1, 4, 2, 0, 0, 0x70, 0x11, 1, 0]);
    }

    #[test]
    fn localized_text_has_only_what_is_there() {
        let mut writer = Writer::default();
        writer.localized_text(None, None);
        writer.localized_text(Some("e"), Some("t"));
        assert_eq!(writer.finish(), [0, 3, 1, 0, 0, 0, b'e', 1, 0, 0, 0, b't']);
    }
}
