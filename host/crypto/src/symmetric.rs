//! Protection of messages on an open channel: key derivation (Part 6, 6.7.5) and, per token and
//! direction, a [`Sealer`] or an [`Opener`] that works in place.
//!
//! The AES key schedule and the keyed HMAC state are computed once per token; a message costs a copy
//! of the HMAC state and a reset of the chaining value, nothing else. A sealer or opener is owned by
//! one channel and used through `&mut`: two users cannot share it, and nothing has to be returned
//! or discarded after an error. Keys are erased from memory when their owner is dropped.
//!
//! Where a chunk's header ends and what its padding is for is the channel's business.

use std::fmt;

use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit};
use aes::{Aes128Dec, Aes128Enc, Aes256Dec, Aes256Enc};
use backplane_types::StatusCode;
use cbc::cipher::SetIvState;
use hmac::{Hmac, Mac};
use rsa::sha2::Sha256;
use subtle::{Choice, ConstantTimeEq, ConstantTimeLess};
use zeroize::{Zeroize, Zeroizing};

use crate::policy::{SecurityPolicy, SymmetricCipher, SymmetricSignature};

type HmacSha256 = Hmac<Sha256>;
type Block = aes::Block;

/// Length in bytes of an HMAC-SHA256 signature.
const SIGNATURE: usize = 32;

/// Why a message could not be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymmetricError {
    /// Length, signature or padding of a received message is wrong: BadSecurityChecksFailed. Which of
    /// them it was is not told, to nobody.
    #[error("security checks failed")]
    Rejected,
    /// The caller laid a message out wrongly: BadInternalError.
    #[error("the message is not laid out for its policy: {0}")]
    Layout(&'static str),
}

impl SymmetricError {
    /// The status code for the wire.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            SymmetricError::Rejected => StatusCode::BAD_SECURITY_CHECKS_FAILED,
            SymmetricError::Layout(_) => StatusCode::BAD_INTERNAL_ERROR,
        }
    }
}

/// Fills `out` with P_SHA256(secret, seed) (RFC 5246, section 5; Part 6, 6.7.5).
pub fn p_sha256(secret: &[u8], seed: &[u8], out: &mut [u8]) {
    // HMAC takes keys of any length: this cannot fail.
    let Ok(keyed) = <HmacSha256 as hmac::KeyInit>::new_from_slice(secret) else {
        return;
    };
    let mut a = Zeroizing::new([0u8; SIGNATURE]);
    let mut mac = keyed.clone();
    mac.update(seed);
    a.copy_from_slice(&mac.finalize().into_bytes());
    for piece in out.chunks_mut(SIGNATURE) {
        let mut mac = keyed.clone();
        mac.update(a.as_ref());
        mac.update(seed);
        let mut bytes = mac.finalize().into_bytes();
        if let Some(bytes) = bytes.get(..piece.len()) {
            piece.copy_from_slice(bytes);
        }
        bytes.as_mut_slice().zeroize();
        let mut mac = keyed.clone();
        mac.update(a.as_ref());
        a.copy_from_slice(&mac.finalize().into_bytes());
    }
}

/// The keys of one direction of one token.
#[derive(Clone)]
pub struct SymmetricKeys {
    signing: Zeroizing<Vec<u8>>,
    encrypting: Zeroizing<Vec<u8>>,
    initialization_vector: Zeroizing<Vec<u8>>,
}

impl SymmetricKeys {
    /// Derives the keys of one direction: `secret` is the nonce of the receiver, `seed` that of the sender
    /// (Part 6, 6.7.5). Empty keys for [`SecurityPolicy::None`].
    #[must_use]
    pub fn derive(policy: SecurityPolicy, secret: &[u8], seed: &[u8]) -> Self {
        let parameters = policy.parameters();
        let iv = if parameters.symmetric_cipher == SymmetricCipher::None {
            0
        } else {
            parameters.block_length
        };
        let signing = parameters.signing_key_length;
        let encrypting = parameters.encrypting_key_length;
        let mut bytes = Zeroizing::new(vec![0; signing + encrypting + iv]);
        p_sha256(secret, seed, &mut bytes);
        let (signing, rest) = bytes.split_at(signing);
        let (encrypting, iv) = rest.split_at(encrypting);
        let keep = |part: &[u8]| Zeroizing::new(part.to_vec());
        Self {
            signing: keep(signing),
            encrypting: keep(encrypting),
            initialization_vector: keep(iv),
        }
    }
}

impl fmt::Debug for SymmetricKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SymmetricKeys(..)")
    }
}

/// The keys of both directions of one token.
#[derive(Clone, Debug)]
pub struct ChannelKeys {
    /// What the client seals with and the server opens with.
    pub client: SymmetricKeys,
    /// What the server seals with and the client opens with.
    pub server: SymmetricKeys,
}

impl ChannelKeys {
    /// Derives both directions from the nonces of OpenSecureChannel (Part 6, 6.7.5, table 66).
    #[must_use]
    pub fn derive(policy: SecurityPolicy, client_nonce: &[u8], server_nonce: &[u8]) -> Self {
        Self {
            client: SymmetricKeys::derive(policy, server_nonce, client_nonce),
            server: SymmetricKeys::derive(policy, client_nonce, server_nonce),
        }
    }
}

enum Encryptor {
    Off,
    Aes128(Box<cbc::Encryptor<Aes128Enc>>),
    Aes256(Box<cbc::Encryptor<Aes256Enc>>),
}

enum Decryptor {
    Off,
    Aes128(Box<cbc::Decryptor<Aes128Dec>>),
    Aes256(Box<cbc::Decryptor<Aes256Dec>>),
}

/// What a message must look like for a sealer or an opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    signature: usize,
    block: usize,
}

impl Shape {
    fn new(policy: SecurityPolicy, encrypt: bool) -> Self {
        let parameters = policy.parameters();
        let encrypted = encrypt && parameters.symmetric_cipher != SymmetricCipher::None;
        Shape {
            signature: parameters.signature_length,
            block: if encrypted { parameters.block_length } else { 1 },
        }
    }

    /// PaddingSize byte and padding for so many plain bytes; 0 when nothing is encrypted.
    fn padding(self, plain_length: usize) -> usize {
        if self.block == 1 {
            return 0;
        }
        let used = plain_length.saturating_add(1 + self.signature) % self.block;
        1 + (self.block - used) % self.block
    }

    /// The most plain bytes that fit in `encrypted_room` bytes together with padding and signature.
    fn max_plain(self, encrypted_room: usize) -> usize {
        let whole = encrypted_room - encrypted_room % self.block;
        let fixed = self.signature + usize::from(self.block > 1);
        whole.saturating_sub(fixed)
    }
}

fn initial_vector(keys: &SymmetricKeys) -> Result<Block, SymmetricError> {
    Block::try_from(keys.initialization_vector.as_slice())
        .map_err(|_| SymmetricError::Layout("no initialization vector"))
}

fn keyed_mac(policy: SecurityPolicy, keys: &SymmetricKeys) -> Result<Option<HmacSha256>, SymmetricError> {
    match policy.parameters().symmetric_signature {
        SymmetricSignature::None => Ok(None),
        SymmetricSignature::HmacSha256 => <HmacSha256 as hmac::KeyInit>::new_from_slice(&keys.signing)
            .map(Some)
            .map_err(|_| SymmetricError::Layout("no signing key")),
    }
}

/// Seals the messages of one token in one direction: signs, then encrypts in place.
pub struct Sealer {
    shape: Shape,
    mac: Option<HmacSha256>,
    cipher: Encryptor,
    iv: Block,
}

impl Sealer {
    /// A sealer that does nothing: SecurityMode None.
    #[must_use]
    pub fn none() -> Self {
        Self {
            shape: Shape::new(SecurityPolicy::None, false),
            mac: None,
            cipher: Encryptor::Off,
            iv: Block::default(),
        }
    }

    /// A sealer for `keys`: with `encrypt` for SecurityMode SignAndEncrypt, without for Sign.
    ///
    /// # Errors
    /// [`SymmetricError::Layout`] when `keys` were derived for another policy.
    pub fn new(policy: SecurityPolicy, keys: &SymmetricKeys, encrypt: bool) -> Result<Self, SymmetricError> {
        let wrong = |_| SymmetricError::Layout("encryption key of another policy");
        let (cipher, iv) = match policy.parameters().symmetric_cipher {
            SymmetricCipher::Aes128Cbc if encrypt => {
                let iv = initial_vector(keys)?;
                let key = Aes128Enc::new_from_slice(&keys.encrypting).map_err(wrong)?;
                (Encryptor::Aes128(Box::new(cbc::Encryptor::inner_iv_init(key, &iv))), iv)
            }
            SymmetricCipher::Aes256Cbc if encrypt => {
                let iv = initial_vector(keys)?;
                let key = Aes256Enc::new_from_slice(&keys.encrypting).map_err(wrong)?;
                (Encryptor::Aes256(Box::new(cbc::Encryptor::inner_iv_init(key, &iv))), iv)
            }
            _ => (Encryptor::Off, Block::default()),
        };
        Ok(Self {
            shape: Shape::new(policy, encrypt),
            mac: keyed_mac(policy, keys)?,
            cipher,
            iv,
        })
    }

    /// Bytes of the signature at the end of a message.
    #[must_use]
    pub fn signature_length(&self) -> usize {
        self.shape.signature
    }

    /// Bytes that PaddingSize and Padding take after `plain_length` bytes of sequence header and body;
    /// 0 when messages are not encrypted (Part 6, 6.7.2.5).
    #[must_use]
    pub fn padding_length(&self, plain_length: usize) -> usize {
        self.shape.padding(plain_length)
    }

    /// Padding and signature together: what a message grows by behind its body.
    #[must_use]
    pub fn footer_length(&self, plain_length: usize) -> usize {
        self.shape.padding(plain_length) + self.shape.signature
    }

    /// The most bytes of sequence header and body that fit into a chunk of which `encrypted_room` bytes
    /// are left behind its unencrypted headers.
    #[must_use]
    pub fn max_plain_length(&self, encrypted_room: usize) -> usize {
        self.shape.max_plain(encrypted_room)
    }

    /// Appends padding and room for the signature to a chunk that begins at `buffer[start]`, whose
    /// encrypted part begins `header_length` bytes behind. The chunk is then ready for
    /// [`seal_in_place`](Self::seal_in_place), once its MessageSize is set: the signature covers it.
    pub fn append_footer(&self, buffer: &mut Vec<u8>, start: usize, header_length: usize) {
        let plain = buffer.len().saturating_sub(start.saturating_add(header_length));
        let padding = self.shape.padding(plain);
        // At most 16: the value of PaddingSize and of every padding byte is one less.
        let value = padding.saturating_sub(1) as u8;
        buffer.resize(buffer.len() + padding, value);
        buffer.resize(buffer.len() + self.shape.signature, 0);
    }

    /// Signs `chunk` and encrypts it from `encrypted_from` on. Padding is in place and the last
    /// [`signature_length`](Self::signature_length) bytes are room for the signature, as
    /// [`append_footer`](Self::append_footer) leaves it.
    ///
    /// # Errors
    /// [`SymmetricError::Layout`] when the encrypted part is no multiple of the block size, or shorter
    /// than a signature; `chunk` must not be sent then.
    pub fn seal_in_place(&mut self, chunk: &mut [u8], encrypted_from: usize) -> Result<(), SymmetricError> {
        if let Some(mac) = &self.mac {
            let Some((signed, signature)) = chunk.split_last_chunk_mut::<SIGNATURE>() else {
                return Err(SymmetricError::Layout("no room for the signature"));
            };
            if signed.len() < encrypted_from {
                return Err(SymmetricError::Layout("the signature overlaps the header"));
            }
            let mut mac = mac.clone();
            mac.update(signed);
            signature.copy_from_slice(&mac.finalize().into_bytes());
        }
        if matches!(self.cipher, Encryptor::Off) {
            return Ok(());
        }
        let secret = chunk
            .get_mut(encrypted_from..)
            .ok_or(SymmetricError::Layout("chunk shorter than its header"))?;
        let (blocks, rest) = Block::slice_as_chunks_mut(secret);
        if !rest.is_empty() || blocks.is_empty() {
            return Err(SymmetricError::Layout(
                "the encrypted part is not a whole number of blocks",
            ));
        }
        match &mut self.cipher {
            Encryptor::Off => {}
            Encryptor::Aes128(cipher) => {
                cipher.set_iv(&self.iv);
                cipher.encrypt_blocks(blocks);
            }
            Encryptor::Aes256(cipher) => {
                cipher.set_iv(&self.iv);
                cipher.encrypt_blocks(blocks);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        self.iv.as_mut_slice().zeroize();
    }
}

/// Opens the messages of one token in one direction: decrypts in place, verifies, strips the padding.
pub struct Opener {
    shape: Shape,
    mac: Option<HmacSha256>,
    cipher: Decryptor,
    iv: Block,
}

impl Opener {
    /// An opener that does nothing: SecurityMode None.
    #[must_use]
    pub fn none() -> Self {
        Self {
            shape: Shape::new(SecurityPolicy::None, false),
            mac: None,
            cipher: Decryptor::Off,
            iv: Block::default(),
        }
    }

    /// An opener for `keys`: with `encrypted` for SecurityMode SignAndEncrypt, without for Sign.
    ///
    /// # Errors
    /// [`SymmetricError::Layout`] when `keys` were derived for another policy.
    pub fn new(policy: SecurityPolicy, keys: &SymmetricKeys, encrypted: bool) -> Result<Self, SymmetricError> {
        let wrong = |_| SymmetricError::Layout("encryption key of another policy");
        let (cipher, iv) = match policy.parameters().symmetric_cipher {
            SymmetricCipher::Aes128Cbc if encrypted => {
                let iv = initial_vector(keys)?;
                let key = Aes128Dec::new_from_slice(&keys.encrypting).map_err(wrong)?;
                (Decryptor::Aes128(Box::new(cbc::Decryptor::inner_iv_init(key, &iv))), iv)
            }
            SymmetricCipher::Aes256Cbc if encrypted => {
                let iv = initial_vector(keys)?;
                let key = Aes256Dec::new_from_slice(&keys.encrypting).map_err(wrong)?;
                (Decryptor::Aes256(Box::new(cbc::Decryptor::inner_iv_init(key, &iv))), iv)
            }
            _ => (Decryptor::Off, Block::default()),
        };
        Ok(Self {
            shape: Shape::new(policy, encrypted),
            mac: keyed_mac(policy, keys)?,
            cipher,
            iv,
        })
    }

    /// Bytes of the signature at the end of a message.
    #[must_use]
    pub fn signature_length(&self) -> usize {
        self.shape.signature
    }

    /// Decrypts `chunk` from `encrypted_from` on, verifies its signature and checks its padding.
    /// Returns where the body ends: sequence header and body are `chunk[encrypted_from..end]`.
    ///
    /// # Errors
    /// [`SymmetricError::Rejected`], the same for a wrong length, signature or padding. The signature
    /// covers the padding and its input length does not depend on it; signature and padding are both
    /// evaluated without branches before the answer is given.
    pub fn open_in_place(&mut self, chunk: &mut [u8], encrypted_from: usize) -> Result<usize, SymmetricError> {
        let secret = chunk.get_mut(encrypted_from..).ok_or(SymmetricError::Rejected)?;
        let encrypted = !matches!(self.cipher, Decryptor::Off);
        if encrypted {
            let (blocks, rest) = Block::slice_as_chunks_mut(secret);
            if !rest.is_empty() || blocks.is_empty() {
                return Err(SymmetricError::Rejected);
            }
            match &mut self.cipher {
                Decryptor::Off => {}
                Decryptor::Aes128(cipher) => {
                    cipher.set_iv(&self.iv);
                    cipher.decrypt_blocks(blocks);
                }
                Decryptor::Aes256(cipher) => {
                    cipher.set_iv(&self.iv);
                    cipher.decrypt_blocks(blocks);
                }
            }
        }
        let Some(mac) = &self.mac else {
            return Ok(chunk.len());
        };
        let (signed, signature) = chunk.split_last_chunk::<SIGNATURE>().ok_or(SymmetricError::Rejected)?;
        let plain = signed.get(encrypted_from..).ok_or(SymmetricError::Rejected)?;
        let mut mac = mac.clone();
        mac.update(signed);
        let mut good = mac.finalize().into_bytes().as_slice().ct_eq(signature);
        let mut padding = 0;
        if encrypted {
            let (length, valid) = check_padding(plain);
            good &= valid;
            padding = length;
        }
        if bool::from(good) {
            Ok(signed.len() - padding)
        } else {
            Err(SymmetricError::Rejected)
        }
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.iv.as_mut_slice().zeroize();
    }
}

/// Checks PaddingSize and Padding at the end of `plain` (signature already off): every byte carries
/// PaddingSize. Returns how many bytes they take, PaddingSize included, and whether they are right;
/// the time depends on the length of `plain` only.
fn check_padding(plain: &[u8]) -> (usize, Choice) {
    let Some(&size) = plain.last() else {
        return (0, Choice::from(0));
    };
    let fits = (u64::from(size)).ct_lt(&(plain.len() as u64));
    // Bytes at most 256 from the end may be padding; those further away than PaddingSize are not. Plain
    // arithmetic on small numbers, forwards and without a branch, that the compiler can do many at a time.
    let window = plain.split_at(plain.len().saturating_sub(256)).1;
    let first = window.len() as i16 - 1 - i16::from(size);
    let mut wrong = 0;
    for (at, byte) in (0i16..256).zip(window) {
        let inside = ((first - 1 - at) >> 15) as u8;
        wrong |= (byte ^ size) & inside;
    }
    let good = fits & wrong.ct_eq(&0);
    let length = usize::from(size) + 1;
    (if bool::from(fits) { length } else { 0 }, good)
}

#[cfg(test)]
mod tests;
