//! Protection of messages on an open channel: key derivation (Part 6, 6.7.5) and, per token and
//! direction, a [`Sealer`] or an [`Opener`] that works in place.
//!
//! The AES key schedule and the keyed HMAC states are computed once per token and never change; a message
//! begins with copies of the states and of the initialization vector, nothing else. So nothing has to be
//! returned, rewound or discarded after an error: a message that fails leaves no trace for the next. Keys are
//! erased from memory when their owner is dropped.
//!
//! Where a chunk's header ends and what its padding is for is the channel's business.

use std::fmt;

use aes::cipher::KeyInit;
use aes::{Aes128Dec, Aes128Enc, Aes256Dec, Aes256Enc, Block};
use backplane_types::StatusCode;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq, ConstantTimeLess};
use zeroize::Zeroizing;

use crate::policy::{SecurityPolicy, SymmetricCipher, SymmetricSignature};
use crate::symmetric::cipher::Cbc;
use crate::symmetric::mac::{Mac, SIGNATURE};

mod cipher;
mod mac;

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
    // HMAC takes a key of any length.
    let Ok(keyed) = Hmac::<Sha256>::new_from_slice(secret) else {
        return;
    };
    let sign = |parts: &[&[u8]]| {
        let mut mac = keyed.clone();
        for part in parts {
            mac.update(part);
        }
        Zeroizing::new(<[u8; SIGNATURE]>::from(mac.finalize().into_bytes()))
    };
    let mut a = sign(&[seed]);
    for piece in out.chunks_mut(SIGNATURE) {
        let bytes = sign(&[a.as_slice(), seed]);
        if let Some(bytes) = bytes.get(..piece.len()) {
            piece.copy_from_slice(bytes);
        }
        a = sign(&[a.as_slice()]);
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

/// What is done to a message: nothing, signed, or signed and encrypted. No policy encrypts what it does not sign.
enum Protection<Aes128, Aes256> {
    Off,
    Sign(Box<Mac>),
    Aes128(Box<Cbc<Aes128>>),
    Aes256(Box<Cbc<Aes256>>),
}

impl<Aes128: KeyInit, Aes256: KeyInit> Protection<Aes128, Aes256> {
    fn new(policy: SecurityPolicy, keys: &SymmetricKeys, encrypt: bool) -> Result<Self, SymmetricError> {
        let mac = match policy.parameters().symmetric_signature {
            SymmetricSignature::None => return Ok(Self::Off),
            SymmetricSignature::HmacSha256 => Mac::new(&keys.signing),
        };
        let wrong = |_| SymmetricError::Layout("encryption key of another policy");
        Ok(match policy.parameters().symmetric_cipher {
            SymmetricCipher::Aes128Cbc if encrypt => {
                let key = Aes128::new_from_slice(&keys.encrypting).map_err(wrong)?;
                Self::Aes128(Box::new(Cbc::new(mac, key, initial_vector(keys)?)))
            }
            SymmetricCipher::Aes256Cbc if encrypt => {
                let key = Aes256::new_from_slice(&keys.encrypting).map_err(wrong)?;
                Self::Aes256(Box::new(Cbc::new(mac, key, initial_vector(keys)?)))
            }
            _ => Self::Sign(Box::new(mac)),
        })
    }
}

/// What a message must look like for a sealer or an opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    signature: usize,
    /// Block size of the cipher less one: ones below a power of two. 0 when nothing is encrypted.
    mask: usize,
}

impl Shape {
    fn new(policy: SecurityPolicy, encrypt: bool) -> Self {
        let parameters = policy.parameters();
        let encrypted = encrypt && parameters.symmetric_cipher != SymmetricCipher::None;
        Shape {
            signature: parameters.signature_length,
            mask: if encrypted { size_of::<Block>() - 1 } else { 0 },
        }
    }

    /// PaddingSize byte and padding for so many plain bytes; 0 when nothing is encrypted.
    #[inline]
    fn padding(self, plain_length: usize) -> usize {
        if self.mask == 0 {
            return 0;
        }
        let used = plain_length.wrapping_add(1).wrapping_add(self.signature);
        1 + (used.wrapping_neg() & self.mask)
    }

    /// The most plain bytes that fit in `encrypted_room` bytes together with padding and signature.
    #[inline]
    fn max_plain(self, encrypted_room: usize) -> usize {
        let whole = encrypted_room & !self.mask;
        let fixed = self.signature + usize::from(self.mask > 0);
        whole.saturating_sub(fixed)
    }
}

fn initial_vector(keys: &SymmetricKeys) -> Result<Block, SymmetricError> {
    Block::try_from(keys.initialization_vector.as_slice())
        .map_err(|_| SymmetricError::Layout("no initialization vector"))
}

/// Seals the messages of one token in one direction: signs, then encrypts in place.
pub struct Sealer {
    shape: Shape,
    protection: Protection<Aes128Enc, Aes256Enc>,
}

impl Sealer {
    /// A sealer that does nothing: SecurityMode None.
    #[must_use]
    pub fn none() -> Self {
        Self {
            shape: Shape::new(SecurityPolicy::None, false),
            protection: Protection::Off,
        }
    }

    /// A sealer for `keys`: with `encrypt` for SecurityMode SignAndEncrypt, without for Sign.
    ///
    /// # Errors
    /// [`SymmetricError::Layout`] when `keys` were derived for another policy.
    pub fn new(policy: SecurityPolicy, keys: &SymmetricKeys, encrypt: bool) -> Result<Self, SymmetricError> {
        Ok(Self {
            shape: Shape::new(policy, encrypt),
            protection: Protection::new(policy, keys, encrypt)?,
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
    #[inline]
    pub fn padding_length(&self, plain_length: usize) -> usize {
        self.shape.padding(plain_length)
    }

    /// Padding and signature together: what a message grows by behind its body.
    #[must_use]
    #[inline]
    pub fn footer_length(&self, plain_length: usize) -> usize {
        self.shape.padding(plain_length) + self.shape.signature
    }

    /// The most bytes of sequence header and body that fit into a chunk of which `encrypted_room` bytes
    /// are left behind its unencrypted headers.
    #[must_use]
    #[inline]
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
    #[inline]
    pub fn seal_in_place(&mut self, chunk: &mut [u8], encrypted_from: usize) -> Result<(), SymmetricError> {
        match &self.protection {
            Protection::Off => {}
            Protection::Sign(mac) => {
                let Some((signed, signature)) = chunk.split_last_chunk_mut::<SIGNATURE>() else {
                    return Err(SymmetricError::Layout("no room for the signature"));
                };
                if signed.len() < encrypted_from {
                    return Err(SymmetricError::Layout("the signature overlaps the header"));
                }
                *signature = mac.sign(signed);
            }
            Protection::Aes128(cbc) => {
                check_layout(chunk, encrypted_from)?;
                cbc.seal(chunk, encrypted_from);
            }
            Protection::Aes256(cbc) => {
                check_layout(chunk, encrypted_from)?;
                cbc.seal(chunk, encrypted_from);
            }
        }
        Ok(())
    }
}

fn check_layout(chunk: &[u8], encrypted_from: usize) -> Result<(), SymmetricError> {
    if is_whole_blocks(chunk, encrypted_from) {
        Ok(())
    } else {
        Err(SymmetricError::Layout(
            "the encrypted part is not a whole number of blocks with room for the signature",
        ))
    }
}

/// Whether what is encrypted is whole blocks, and holds the signature.
fn is_whole_blocks(chunk: &[u8], encrypted_from: usize) -> bool {
    let encrypted = chunk.len().saturating_sub(encrypted_from);
    encrypted >= SIGNATURE && encrypted.is_multiple_of(size_of::<Block>())
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// Opens the messages of one token in one direction: decrypts in place, verifies, strips the padding.
pub struct Opener {
    shape: Shape,
    protection: Protection<Aes128Dec, Aes256Dec>,
}

impl Opener {
    /// An opener that does nothing: SecurityMode None.
    #[must_use]
    pub fn none() -> Self {
        Self {
            shape: Shape::new(SecurityPolicy::None, false),
            protection: Protection::Off,
        }
    }

    /// An opener for `keys`: with `encrypted` for SecurityMode SignAndEncrypt, without for Sign.
    ///
    /// # Errors
    /// [`SymmetricError::Layout`] when `keys` were derived for another policy.
    pub fn new(policy: SecurityPolicy, keys: &SymmetricKeys, encrypted: bool) -> Result<Self, SymmetricError> {
        Ok(Self {
            shape: Shape::new(policy, encrypted),
            protection: Protection::new(policy, keys, encrypted)?,
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
    #[inline]
    pub fn open_in_place(&mut self, chunk: &mut [u8], encrypted_from: usize) -> Result<usize, SymmetricError> {
        let encrypted = match &self.protection {
            Protection::Off if encrypted_from <= chunk.len() => return Ok(chunk.len()),
            Protection::Off => return Err(SymmetricError::Rejected),
            Protection::Sign(_) => None,
            Protection::Aes128(_) | Protection::Aes256(_) if !is_whole_blocks(chunk, encrypted_from) => {
                return Err(SymmetricError::Rejected);
            }
            Protection::Aes128(cbc) => Some(cbc.open(chunk, encrypted_from)),
            Protection::Aes256(cbc) => Some(cbc.open(chunk, encrypted_from)),
        };
        let (signed, signature) = chunk.split_last_chunk::<SIGNATURE>().ok_or(SymmetricError::Rejected)?;
        let plain = signed.get(encrypted_from..).ok_or(SymmetricError::Rejected)?;
        let (good, padding) = match (&self.protection, encrypted) {
            (_, Some(expected)) => {
                let (padding, valid) = check_padding(plain);
                (same_signature(&expected, signature) & valid, padding)
            }
            (Protection::Sign(mac), None) => (same_signature(&mac.sign(signed), signature), 0),
            _ => (Choice::from(0), 0),
        };
        if bool::from(good) {
            Ok(signed.len().saturating_sub(padding))
        } else {
            Err(SymmetricError::Rejected)
        }
    }
}

/// Compares eight bytes at a time, all of them.
fn same_signature(a: &[u8; SIGNATURE], b: &[u8; SIGNATURE]) -> Choice {
    let (a, _) = a.as_chunks();
    let (b, _) = b.as_chunks();
    let mut difference = 0;
    for (a, b) in a.iter().zip(b) {
        difference |= u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b);
    }
    difference.ct_eq(&0)
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
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
