//! OpenSecureChannel chunks: the asymmetric security header, and sealing and opening under RSA keys (Part 6, 6.7.2.3 and 6.7.6).
//!
//! Owns the layout of such a chunk. Whether its certificate is trusted, what its body means and whether its number fits is decided
//! elsewhere. Slow: every call with a policy other than None does RSA work.

use backplane_crypto::asymmetric::{encrypted_length, padding_size_bytes, plain_block_size};
use backplane_crypto::{AsymmetricError, CertificateChain, PublicKey, Random, SecurityPolicy, Zeroizing};
use backplane_types::StatusCode;

use crate::error::ChannelError;
use crate::header::{ChunkType, MessageType, SEQUENCE_HEADER};
use crate::hello::{Fields, put_bytes};
use crate::identity::OwnIdentity;
use crate::limits::MAX_SECURITY_POLICY_URI;

/// The security header of a chunk, still inside the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsymmetricHeader<'a> {
    pub(crate) channel_id: u32,
    pub(crate) policy: SecurityPolicy,
    /// `None` is null, which is not the same as empty.
    pub(crate) sender_certificate: Option<&'a [u8]>,
    pub(crate) receiver_thumbprint: Option<&'a [u8]>,
    /// Where the encrypted part of the chunk begins.
    pub(crate) length: usize,
}

impl<'a> AsymmetricHeader<'a> {
    /// Reads the header of `chunk`.
    ///
    /// # Errors
    /// BadSecurityPolicyRejected for a policy this end does not speak, BadCertificateInvalid (BadSecurityChecksFailed on the wire) for a
    /// certificate above `max_certificate` bytes, BadDecodingError for fields that do not fit the chunk.
    pub(crate) fn parse(chunk: &'a [u8], max_certificate: usize) -> Result<Self, ChannelError> {
        let mut fields = Fields::behind_header(chunk);
        let channel_id = fields.u32()?;
        let uri = fields.bytes()?.unwrap_or_default();
        let policy = if uri.is_empty() {
            // A missing uri is how None may be said (Part 6, 6.7.2.3).
            Some(SecurityPolicy::None)
        } else if uri.len() > MAX_SECURITY_POLICY_URI {
            None
        } else {
            std::str::from_utf8(uri).ok().and_then(SecurityPolicy::from_uri)
        };
        let Some(policy) = policy else {
            return Err(ChannelError::peer(
                StatusCode::BAD_SECURITY_POLICY_REJECTED,
                "security policy unknown",
            ));
        };
        let sender_certificate = fields.bytes()?;
        if sender_certificate.is_some_and(|certificate| certificate.len() > max_certificate) {
            return Err(ChannelError::security(
                StatusCode::BAD_CERTIFICATE_INVALID,
                "sender certificate too long",
            ));
        }
        let receiver_thumbprint = fields.bytes()?;
        let length = chunk.len().saturating_sub(fields.rest.len());
        Ok(Self {
            channel_id,
            policy,
            sender_certificate,
            receiver_thumbprint,
            length,
        })
    }
}

/// The other end, as an OpenSecureChannel chunk needs it.
#[derive(Clone, Copy)]
pub(crate) struct PeerKey<'a> {
    pub(crate) key: &'a PublicKey,
    /// SHA-1 of its certificate.
    pub(crate) thumbprint: [u8; 20],
}

impl<'a> PeerKey<'a> {
    /// The key of a chain's first certificate.
    ///
    /// # Errors
    /// BadSecurityChecksFailed on the wire if the key cannot be used.
    pub(crate) fn of(chain: &'a CertificateChain) -> Result<Self, ChannelError> {
        let leaf = chain.leaf();
        let key = leaf
            .public_key()
            .map_err(|error| ChannelError::security(error.status(), "key of the peer's certificate"))?;
        Ok(Self {
            key,
            thumbprint: leaf.thumbprint(),
        })
    }
}

/// Both ends of a secured exchange; absent with the policy None.
#[derive(Clone, Copy)]
pub(crate) struct Parties<'a> {
    pub(crate) own: &'a OwnIdentity,
    pub(crate) peer: PeerKey<'a>,
}

/// What goes into an OpenSecureChannel chunk.
#[derive(Clone, Copy)]
pub(crate) struct OpenChunk<'a> {
    pub(crate) policy: SecurityPolicy,
    pub(crate) channel_id: u32,
    pub(crate) sequence_number: u32,
    pub(crate) request_id: u32,
    pub(crate) body: &'a [u8],
}

impl OpenChunk<'_> {
    /// Makes the whole chunk, at most `largest` bytes long.
    ///
    /// # Errors
    /// BadInternalError when the own key or randomness fails or the chunk would be too long; BadSecurityChecksFailed when the peer's key
    /// cannot be used.
    pub(crate) fn seal(
        &self,
        parties: Option<Parties<'_>>,
        random: &mut dyn Random,
        largest: usize,
    ) -> Result<Vec<u8>, ChannelError> {
        let mut chunk = self.header(parties);
        let head = chunk.len();
        let mut plain = Zeroizing::new(Vec::with_capacity(self.body.len().saturating_add(1_024)));
        plain.extend_from_slice(&self.sequence_number.to_le_bytes());
        plain.extend_from_slice(&self.request_id.to_le_bytes());
        plain.extend_from_slice(self.body);
        match parties {
            None => {
                set_size(&mut chunk, head.saturating_add(plain.len()));
                chunk.extend_from_slice(&plain);
            }
            Some(parties) => self.protect(parties, random, &mut chunk, &mut plain)?,
        }
        if chunk.len() > largest {
            return Err(ours("OpenSecureChannel message longer than a chunk may be"));
        }
        Ok(chunk)
    }

    fn header(&self, parties: Option<Parties<'_>>) -> Vec<u8> {
        let mut chunk = Vec::with_capacity(4_096);
        chunk.extend_from_slice(&MessageType::Open.letters());
        chunk.extend_from_slice(&[ChunkType::Final.letter(), 0, 0, 0, 0]);
        chunk.extend_from_slice(&self.channel_id.to_le_bytes());
        put_bytes(&mut chunk, Some(self.policy.uri().as_bytes()));
        put_bytes(&mut chunk, parties.map(|parties| parties.own.chain()));
        put_bytes(
            &mut chunk,
            parties.as_ref().map(|parties| parties.peer.thumbprint.as_slice()),
        );
        chunk
    }

    /// Pads and signs `plain`, encrypts it and appends it to `chunk`, which holds the header.
    fn protect(
        &self,
        parties: Parties<'_>,
        random: &mut dyn Random,
        chunk: &mut Vec<u8>,
        plain: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let parameters = self.policy.parameters();
        let encryption = parameters.asymmetric_encryption;
        let key_size = parties.peer.key.size();
        let block = plain_block_size(encryption, key_size);
        if block == 0 {
            return Err(ChannelError::security(
                StatusCode::BAD_CERTIFICATE_INVALID,
                "the peer's key is too short for the policy",
            ));
        }
        let signature_size = parties.own.private_key().size();
        let size_bytes = padding_size_bytes(key_size);
        let unpadded = plain.len().saturating_add(size_bytes).saturating_add(signature_size);
        let padding = (block - unpadded % block) % block;
        // A key has at most 1,024 bytes, so the padding fits two bytes.
        let [low, high, ..] = padding.to_le_bytes();
        plain.resize(plain.len().saturating_add(padding).saturating_add(1), low);
        if size_bytes == 2 {
            plain.push(high);
        }
        let total = plain.len().saturating_add(signature_size);
        let cipher = encrypted_length(encryption, key_size, total).ok_or(ours("key too short"))?;
        let size = chunk.len().saturating_add(cipher);
        set_size(chunk, size);
        let signature = parties
            .own
            .private_key()
            .sign(parameters.asymmetric_signature, &[chunk, plain], random)
            .map_err(|error| failed(error, "signing OpenSecureChannel"))?;
        plain.extend_from_slice(&signature);
        parties
            .peer
            .key
            .encrypt(encryption, plain, random, chunk)
            .map_err(|error| failed(error, "encrypting OpenSecureChannel"))
    }
}

/// An opened OpenSecureChannel chunk.
pub(crate) struct Opened {
    pub(crate) sequence_number: u32,
    pub(crate) request_id: u32,
    /// Sequence header, body and what follows it.
    plain: Zeroizing<Vec<u8>>,
    end: usize,
}

impl Opened {
    pub(crate) fn body(&self) -> &[u8] {
        self.plain.get(SEQUENCE_HEADER..self.end).unwrap_or_default()
    }

    /// Decrypts and verifies `chunk`, whose header has been read.
    ///
    /// # Errors
    /// One and the same BadSecurityChecksFailed for whatever is wrong with the cipher text, the signature or the padding.
    pub(crate) fn open(
        chunk: &[u8],
        header: &AsymmetricHeader<'_>,
        parties: Option<Parties<'_>>,
        random: &mut dyn Random,
    ) -> Result<Self, ChannelError> {
        let (head, cipher) = chunk.split_at_checked(header.length).ok_or(CHECKS_FAILED)?;
        let (plain, end) = match parties {
            None => (Zeroizing::new(cipher.to_vec()), cipher.len()),
            Some(parties) => unprotect(header.policy, head, cipher, parties, random)?,
        };
        let Some((sequence, rest)) = plain.split_first_chunk::<4>() else {
            return Err(CHECKS_FAILED);
        };
        let Some(request) = rest.first_chunk::<4>() else {
            return Err(CHECKS_FAILED);
        };
        if end < SEQUENCE_HEADER {
            return Err(CHECKS_FAILED);
        }
        Ok(Self {
            sequence_number: u32::from_le_bytes(*sequence),
            request_id: u32::from_le_bytes(*request),
            plain,
            end,
        })
    }
}

fn unprotect(
    policy: SecurityPolicy,
    head: &[u8],
    cipher: &[u8],
    parties: Parties<'_>,
    random: &mut dyn Random,
) -> Result<(Zeroizing<Vec<u8>>, usize), ChannelError> {
    let parameters = policy.parameters();
    let plain = parties
        .own
        .private_key()
        .decrypt(parameters.asymmetric_encryption, cipher, random)
        .map_err(|error| failed(error, "decrypting OpenSecureChannel"))?;
    let signed = plain.len().checked_sub(parties.peer.key.size()).ok_or(CHECKS_FAILED)?;
    let (body, signature) = plain.split_at_checked(signed).ok_or(CHECKS_FAILED)?;
    parties
        .peer
        .key
        .verify(parameters.asymmetric_signature, &[head, body], signature)
        .map_err(|error| failed(error, "signature of OpenSecureChannel"))?;
    let end = strip_padding(body, padding_size_bytes(parties.own.private_key().size())).ok_or(CHECKS_FAILED)?;
    Ok((plain, end))
}

/// Where the body ends in front of its padding; `None` if the padding is not what it should be. Only called once the signature matched.
fn strip_padding(body: &[u8], size_bytes: usize) -> Option<usize> {
    let (body, high) = match size_bytes {
        2 => body.split_last().map(|(high, body)| (body, usize::from(*high)))?,
        _ => (body, 0),
    };
    let low = *body.last()?;
    let padding = high << 8 | usize::from(low);
    // PaddingSize itself holds the same byte as the padding behind it.
    let end = body.len().checked_sub(padding)?.checked_sub(1)?;
    body.get(end..)?.iter().all(|byte| *byte == low).then_some(end)
}

const CHECKS_FAILED: ChannelError = ChannelError::security(
    StatusCode::BAD_SECURITY_CHECKS_FAILED,
    "OpenSecureChannel does not open",
);

fn failed(error: AsymmetricError, context: &'static str) -> ChannelError {
    match error {
        AsymmetricError::Rejected => ChannelError::security(StatusCode::BAD_SECURITY_CHECKS_FAILED, context),
        AsymmetricError::Local(_) => ours(context),
    }
}

const fn ours(context: &'static str) -> ChannelError {
    ChannelError::ours(StatusCode::BAD_INTERNAL_ERROR, context)
}

fn set_size(chunk: &mut [u8], size: usize) {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    if let Some(place) = chunk.get_mut(4..).and_then(<[u8]>::first_chunk_mut::<4>) {
        *place = size.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::strip_padding;

    #[test]
    fn every_byte_of_the_padding_counts() {
        for size_bytes in [1, 2] {
            for padding in [0_usize, 1, 2, 100, 255, 256, 700] {
                if size_bytes == 1 && padding > 255 {
                    continue;
                }
                let [low, high, ..] = padding.to_le_bytes();
                let mut body = vec![0x77; 20];
                body.resize(20 + padding + 1, low);
                if size_bytes == 2 {
                    body.push(high);
                }
                assert_eq!(strip_padding(&body, size_bytes), Some(20), "{padding}");
                for place in 20..body.len() {
                    let mut changed = body.clone();
                    changed[place] ^= 0x01;
                    let end = strip_padding(&changed, size_bytes);
                    assert_ne!(end, Some(20), "{padding}: byte {place}");
                }
            }
        }
        // More than there is, and nothing at all.
        for (body, size_bytes) in [(&[9, 9, 9][..], 1), (&[2, 2, 2, 1], 2), (&[], 1), (&[], 2), (&[0], 2)] {
            assert_eq!(strip_padding(body, size_bytes), None, "{body:?}");
        }
    }
}
