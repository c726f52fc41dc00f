//! HMAC-SHA256 (RFC 2104) over messages that lie in one piece, on the compression function itself.
//!
//! Owns the two keyed states, computed once per token, and the padding of the last block. A message is hashed where it lies: no buffer
//! is filled, cloned or wiped for it, and the caller decides what happens between two blocks of 64 bytes.

use sha2::block_api::compress256;
use zeroize::Zeroize;

/// Bytes of a signature.
pub(super) const SIGNATURE: usize = 32;
/// Bytes that are hashed at once.
pub(super) const BLOCK: usize = 64;

type State = [u32; 8];

/// FIPS 180-4, 5.3.3.
const INITIAL: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The states behind the padded key, inner and outer. Erased when dropped.
pub(super) struct Mac {
    inner: State,
    outer: State,
}

impl Mac {
    /// For a key of any length; those above 64 bytes are hashed first.
    pub(super) fn new(key: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        match block.get_mut(..key.len()) {
            Some(place) => place.copy_from_slice(key),
            None => block.split_at_mut(SIGNATURE).0.copy_from_slice(&crate::sha256(key)),
        }
        let keyed = |pad: u8| {
            let mut padded = block.map(|byte| byte ^ pad);
            let mut state = INITIAL;
            compress256(&mut state, &[padded]);
            padded.zeroize();
            state
        };
        let mac = Self {
            inner: keyed(0x36),
            outer: keyed(0x5c),
        };
        block.zeroize();
        mac
    }

    /// Begins a message.
    #[inline]
    pub(super) fn begin(&self) -> Running<'_> {
        Running {
            mac: self,
            state: self.inner,
        }
    }

    /// The signature of a message.
    #[inline]
    pub(super) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE] {
        let (blocks, tail) = message.as_chunks();
        let mut running = self.begin();
        running.blocks(blocks);
        running.finish(tail, message.len())
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

/// A message of which some whole blocks were hashed.
pub(super) struct Running<'a> {
    mac: &'a Mac,
    state: State,
}

impl Running<'_> {
    /// Hashes the next whole blocks.
    #[inline]
    pub(super) fn blocks(&mut self, blocks: &[[u8; BLOCK]]) {
        if !blocks.is_empty() {
            compress256(&mut self.state, blocks);
        }
    }

    /// Hashes what is behind the last whole block, fewer than 64 bytes, of a message of `length` bytes in all. Returns its signature.
    #[inline]
    pub(super) fn finish(mut self, tail: &[u8], length: usize) -> [u8; SIGNATURE] {
        // A byte of 0x80, zeros, and the number of bits, the block of the key included: in one block if the tail leaves nine bytes.
        let mut last = [[0; BLOCK]; 2];
        let in_one = tail.len() < BLOCK - 8;
        let bits = (length as u64).wrapping_add(BLOCK as u64).wrapping_mul(8).to_be_bytes();
        let [first, second] = &mut last;
        if let Some((place, rest)) = first.split_at_mut_checked(tail.len()) {
            place.copy_from_slice(tail);
            if let Some(end) = rest.first_mut() {
                *end = 0x80;
            }
        }
        if let Some(place) = if in_one { first } else { second }.last_chunk_mut() {
            *place = bits;
        }
        let last = if in_one { last.split_at(1).0 } else { &last };
        compress256(&mut self.state, last);

        const OUTER_BITS: u64 = (BLOCK + SIGNATURE) as u64 * 8;
        let mut digest = [0; BLOCK];
        put(&mut digest, &self.state);
        digest[SIGNATURE] = 0x80;
        if let Some(place) = digest.last_chunk_mut() {
            *place = OUTER_BITS.to_be_bytes();
        }
        let mut state = self.mac.outer;
        compress256(&mut state, &[digest]);
        let mut signature = [0; SIGNATURE];
        put(&mut signature, &state);
        signature
    }
}

/// Writes a state as bytes to the start of `place`.
#[inline]
fn put(place: &mut [u8], state: &State) {
    let (words, _) = place.as_chunks_mut();
    for (place, word) in words.iter_mut().zip(state) {
        *place = word.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, KeyInit, Mac as _};
    use sha2::Sha256;

    use super::Mac;

    #[test]
    fn every_length_of_message_and_key_gives_what_the_hmac_crate_gives() {
        let bytes: Vec<u8> = (0..400_usize).map(|index| (index * 7 + index / 251) as u8).collect();
        for key in [0, 1, 31, 32, 33, 63, 64, 65, 200] {
            let (key, mac) = (&bytes[..key], Mac::new(&bytes[..key]));
            for length in 0..=bytes.len() {
                let message = &bytes[..length];
                let mut expected = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
                expected.update(message);
                assert_eq!(
                    mac.sign(message)[..],
                    expected.finalize().into_bytes()[..],
                    "{} {length}",
                    key.len()
                );
            }
        }
    }
}
