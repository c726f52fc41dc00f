//! The tight half of the codec: reading fields from a slice and writing the fixed headers, without depth, limits or types.
//!
//! Only for what every request pays; everything rare is read and written with `backplane-types`.

/// Type, size, channel, token, sequence number and request id: what stands before the body of a chunk.
pub(crate) const CHUNK_HEADER: usize = 24;
/// Type and size.
pub(crate) const MESSAGE_HEADER: usize = 8;

/// Takes fields off the front of a slice; every method gives `None` if the bytes are not there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// The identifier of a NodeId, as far as a responder tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id<'a> {
    /// A number.
    Numeric(u32),
    /// A name, not checked to be UTF-8.
    String(&'a [u8]),
    /// A GUID or opaque bytes.
    Other,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `N` bytes.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*field)
    }

    /// A Byte.
    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// A UInt16.
    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A UInt32.
    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A String or ByteString; the inner `None` is null.
    #[inline]
    #[allow(clippy::option_option)]
    pub(crate) fn bytes(&mut self) -> Option<Option<&'a [u8]>> {
        let length = self.u32()?;
        if length == u32::MAX {
            return Some(None);
        }
        let (field, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(Some(field))
    }

    /// A NodeId (Part 6, 5.2.2.9): namespace index and identifier.
    #[inline]
    pub(crate) fn node_id(&mut self) -> Option<(u16, Id<'a>)> {
        Some(match self.u8()? {
            0 => (0, Id::Numeric(u32::from(self.u8()?))),
            1 => (u16::from(self.u8()?), Id::Numeric(u32::from(self.u16()?))),
            2 => (self.u16()?, Id::Numeric(self.u32()?)),
            3 => (self.u16()?, Id::String(self.bytes()?.unwrap_or_default())),
            4 => {
                let namespace = self.u16()?;
                self.array::<16>()?;
                (namespace, Id::Other)
            }
            5 => {
                let namespace = self.u16()?;
                self.bytes()?;
                (namespace, Id::Other)
            }
            _ => return None,
        })
    }

    /// The RequestHandle of a request header (Part 4, 7.32): behind authentication token and timestamp.
    #[inline]
    pub(crate) fn handle(&mut self) -> Option<u32> {
        self.node_id()?;
        self.array::<8>()?;
        self.u32()
    }

    /// A whole request header, of which only the RequestHandle is of use here.
    #[inline]
    pub(crate) fn request_header(&mut self) -> Option<u32> {
        let handle = self.handle()?;
        self.u32()?;
        self.bytes()?;
        self.u32()?;
        self.node_id()?;
        if self.u8()? != 0 {
            self.bytes()?;
        }
        Some(handle)
    }
}

/// The type id in front of a body, as the NodeId in namespace 0 that all stacks write.
pub(crate) const fn type_id(encoding_id: u32) -> [u8; 4] {
    let [low, high, ..] = encoding_id.to_le_bytes();
    [1, 0, low, high]
}

/// The header of a chunk: letters, size, channel, token, sequence number and request id.
#[inline]
pub(crate) fn chunk_header(letters: [u8; 4], size: usize, fields: [u32; 4]) -> [u8; CHUNK_HEADER] {
    let [channel, token, sequence, request] = fields;
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let mut header = [0; CHUNK_HEADER];
    let words = [u32::from_le_bytes(letters), size, channel, token, sequence, request];
    for (place, word) in header.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use backplane_types::{BinaryEncode, Encoder, Guid, NodeId, RequestHeader};

    use super::*;

    fn encoded(value: &impl BinaryEncode) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.encode(&mut Encoder::new(&mut bytes));
        bytes
    }

    #[test]
    fn every_form_of_a_node_id_is_read() {
        let ids = [
            (NodeId::numeric(0, 84), (0, Id::Numeric(84))),
            (NodeId::numeric(3, 2_255), (3, Id::Numeric(2_255))),
            (NodeId::numeric(700, 70_000), (700, Id::Numeric(70_000))),
            (NodeId::string(2, "v17"), (2, Id::String(b"v17"))),
            (NodeId::guid(2, Guid::default()), (2, Id::Other)),
            (NodeId::opaque(2, [1, 2, 3].as_slice()), (2, Id::Other)),
        ];
        for (id, expected) in ids {
            let bytes = encoded(&id);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.node_id(), Some(expected), "{id:?}");
            assert_eq!(reader.rest(), b"");
            for end in 0..bytes.len() {
                assert_eq!(Reader::new(&bytes[..end]).node_id(), None, "{id:?} cut at {end}");
            }
        }
    }

    #[test]
    fn the_request_header_is_read_to_its_end() {
        let header = RequestHeader {
            authentication_token: NodeId::opaque(0, [7; 32].as_slice()),
            request_handle: 77,
            audit_entry_id: "someone".into(),
            ..RequestHeader::default()
        };
        let bytes = encoded(&header);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.request_header(), Some(77));
        assert_eq!(reader.rest(), b"");
        assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).request_header(), None);
    }
}
