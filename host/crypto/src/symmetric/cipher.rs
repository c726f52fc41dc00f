//! AES in CBC mode (NIST SP 800-38A, 6.2) together with the signature, in one pass over a chunk.
//!
//! Owns the order of the two. Sealing, 64 bytes are hashed and then encrypted while the next 64 are already being hashed, because
//! neither waits for the other: a long chunk costs little more than the longer of the two. Opening, decryption needs no such help, since
//! its blocks do not depend on each other. Knows no padding and decides nothing: lengths were checked by the caller.

use aes::Block;
use aes::cipher::consts::U16;
use aes::cipher::{
    BlockCipherDecBackend, BlockCipherDecClosure, BlockCipherDecrypt, BlockCipherEncBackend, BlockCipherEncClosure,
    BlockCipherEncrypt, BlockSizeUser, ParBlocks,
};
use zeroize::Zeroize;

use super::mac::{BLOCK, Mac, SIGNATURE};

/// Key schedule, initialization vector and keyed MAC of one token and direction. Erased when dropped.
pub(super) struct Cbc<C> {
    mac: Mac,
    cipher: C,
    initial: Block,
}

impl<C> Cbc<C> {
    pub(super) fn new(mac: Mac, cipher: C, initial: Block) -> Self {
        Self { mac, cipher, initial }
    }
}

impl<C> Drop for Cbc<C> {
    fn drop(&mut self) {
        // The cipher erases itself.
        self.initial.as_mut_slice().zeroize();
    }
}

impl<C: BlockCipherEncrypt<BlockSize = U16>> Cbc<C> {
    /// Signs `chunk` in front of its last 32 bytes, puts the signature there and encrypts from `from` on. Behind `from` there are whole
    /// blocks, no fewer than the signature takes.
    #[inline]
    pub(super) fn seal(&self, chunk: &mut [u8], from: usize) {
        self.cipher.encrypt_with_backend(Seal {
            mac: &self.mac,
            chain: self.initial,
            chunk,
            from,
        });
    }
}

impl<C: BlockCipherDecrypt<BlockSize = U16>> Cbc<C> {
    /// Decrypts `chunk` from `from` on and returns what its signature, the last 32 bytes, should be. Behind `from` there are whole blocks,
    /// no fewer than the signature takes.
    #[inline]
    pub(super) fn open(&self, chunk: &mut [u8], from: usize) -> [u8; SIGNATURE] {
        let end = chunk.len();
        let blocks = blocks_between(chunk, from, end);
        self.cipher.decrypt_with_backend(Decrypt {
            chain: self.initial,
            blocks,
        });
        let signed = chunk.len().saturating_sub(SIGNATURE);
        self.mac.sign(chunk.split_at(signed).0)
    }
}

/// The whole blocks of `chunk` that lie between two positions.
#[inline(always)]
fn blocks_between(chunk: &mut [u8], from: usize, to: usize) -> &mut [Block] {
    Block::slice_as_chunks_mut(chunk.get_mut(from..to).unwrap_or_default()).0
}

/// The 64 bytes of `chunk` from `at` on, if all of them lie in front of `end`.
#[inline(always)]
fn hash_block(chunk: &[u8], at: usize, end: usize) -> Option<&[u8; BLOCK]> {
    chunk.get(at..end).and_then(<[u8]>::first_chunk)
}

struct Seal<'a> {
    mac: &'a Mac,
    chain: Block,
    chunk: &'a mut [u8],
    from: usize,
}

impl BlockSizeUser for Seal<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Seal<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Self {
            mac,
            mut chain,
            chunk,
            from: mut done,
        } = self;
        let mut encrypt = |blocks: &mut [Block]| {
            for block in blocks.iter_mut() {
                chain = xor(&chain, block);
                backend.encrypt_block((&mut chain).into());
                *block = chain;
            }
            blocks.len().saturating_mul(16)
        };
        let signed = chunk.len().saturating_sub(SIGNATURE);
        let mut running = mac.begin();
        let mut hashed: usize = 0;
        while let Some(block) = hash_block(chunk, hashed, signed) {
            running.blocks(std::slice::from_ref(block));
            hashed = hashed.saturating_add(BLOCK);
            done = done.saturating_add(encrypt(blocks_between(chunk, done, hashed)));
        }
        let signature = running.finish(chunk.get(hashed..signed).unwrap_or_default(), signed);
        if let Some(place) = chunk.last_chunk_mut() {
            *place = signature;
        }
        let end = chunk.len();
        encrypt(blocks_between(chunk, done, end));
    }
}

struct Decrypt<'a> {
    chain: Block,
    blocks: &'a mut [Block],
}

impl BlockSizeUser for Decrypt<'_> {
    type BlockSize = U16;
}

impl BlockCipherDecClosure for Decrypt<'_> {
    #[inline(always)]
    fn call<B: BlockCipherDecBackend<BlockSize = U16>>(self, backend: &B) {
        let Self { mut chain, blocks } = self;
        let (many, few) = ParBlocks::<B>::slice_as_chunks_mut(blocks);
        for blocks in many {
            let mut plain = blocks.clone();
            backend.decrypt_par_blocks((&mut plain).into());
            for (place, plain) in blocks.iter_mut().zip(&plain) {
                let cipher = *place;
                *place = xor(plain, &chain);
                chain = cipher;
            }
        }
        for place in few {
            let cipher = *place;
            let mut plain = cipher;
            backend.decrypt_block((&mut plain).into());
            *place = xor(&plain, &chain);
            chain = cipher;
        }
    }
}

#[inline(always)]
fn xor(a: &Block, b: &Block) -> Block {
    (u128::from_ne_bytes(a.0) ^ u128::from_ne_bytes(b.0))
        .to_ne_bytes()
        .into()
}
