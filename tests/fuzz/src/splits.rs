//! Ways to cut a stream, and chunks whose numbers are put right. Must not know what is in them.

/// The pieces of a stream: single bytes for the number 0, otherwise pieces of pseudo-random sizes that the number chooses.
pub(crate) struct Splits<'a> {
    rest: &'a [u8],
    state: u32,
}

impl<'a> Splits<'a> {
    pub(crate) fn new(stream: &'a [u8], cut: u8) -> Self {
        Self {
            rest: stream,
            state: u32::from(cut).wrapping_mul(0x9E37_79B9),
        }
    }
}

impl<'a> Iterator for Splits<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        // Many short pieces, a few long ones.
        let size = match self.state & 7 {
            0 => 1,
            1..=4 => 1 + (self.state >> 8 & 15) as usize,
            5 | 6 => 1 + (self.state >> 8 & 127) as usize,
            _ => 1 + (self.state >> 8 & 2_047) as usize,
        };
        let (piece, rest) = self.rest.split_at(size.min(self.rest.len()));
        self.rest = rest;
        Some(piece)
    }
}

/// Walks over the chunks of a stream and gives MSG and CLO chunks a size that fits, the channel's ids and the next sequence number.
pub(crate) fn repair(stream: &mut [u8], id: u32, mut sequence: u32) {
    let mut rest = stream;
    while let Some((head, _)) = rest.split_first_chunk_mut::<24>() {
        let [a, b, c, _, s0, s1, s2, s3, ..] = *head;
        let mut size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
        if matches!(&[a, b, c], b"MSG" | b"CLO") {
            size = (size % 8_300).max(24);
            put(head, 4, u32::try_from(size).unwrap_or(24));
            put(head, 8, id);
            put(head, 12, id);
            put(head, 16, sequence);
            sequence = sequence.wrapping_add(1);
        }
        rest = rest.get_mut(size.max(8)..).unwrap_or_default();
    }
}

fn put(head: &mut [u8; 24], at: usize, value: u32) {
    for (place, byte) in head.iter_mut().skip(at).zip(value.to_le_bytes()) {
        *place = byte;
    }
}
