//! The keys of one token, and how a symmetric chunk is laid out for them (Part 6, 6.7.2.5 and 6.7.6).
//!
//! Owns sealer and opener of one token. Knows nothing of lifetimes, numbers or messages. Whatever is wrong with a chunk that is to be
//! opened ends in one and the same error.

use backplane_crypto::{ChannelKeys, Opener, Sealer, SecurityPolicy, SymmetricError};
use backplane_types::{MessageSecurityMode, StatusCode};

use crate::error::ChannelError;
use crate::header::{CHUNK_HEADER, SEQUENCE_HEADER, SYMMETRIC_HEADER};
use crate::token::Role;

/// Seals what this end sends and opens what it receives under one token.
#[derive(Debug)]
pub(crate) struct Protection {
    sealer: Sealer,
    opener: Opener,
}

impl Protection {
    /// The protection of a channel without security.
    pub(crate) fn none() -> Self {
        Self {
            sealer: Sealer::none(),
            opener: Opener::none(),
        }
    }

    /// Derives the keys of a token from the nonces of its OpenSecureChannel exchange (Part 6, 6.7.5).
    ///
    /// # Errors
    /// BadInternalError if the keys do not fit the policy.
    pub(crate) fn derive(
        role: Role,
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        client_nonce: &[u8],
        server_nonce: &[u8],
    ) -> Result<Self, ChannelError> {
        if policy.is_none() {
            return Ok(Self::none());
        }
        let keys = ChannelKeys::derive(policy, client_nonce, server_nonce);
        let (own, peer) = match role {
            Role::Server => (&keys.server, &keys.client),
            Role::Client => (&keys.client, &keys.server),
        };
        let encrypted = mode == MessageSecurityMode::SIGN_AND_ENCRYPT;
        let make = || -> Result<Self, SymmetricError> {
            Ok(Self {
                sealer: Sealer::new(policy, own, encrypted)?,
                opener: Opener::new(policy, peer, encrypted)?,
            })
        };
        make().map_err(|_| ChannelError::ours(StatusCode::BAD_INTERNAL_ERROR, "derived keys do not fit the policy"))
    }

    /// The largest body of a chunk of at most `chunk` bytes.
    #[inline]
    pub(crate) fn largest_body(&self, chunk: usize) -> usize {
        self.sealer
            .max_plain_length(chunk.saturating_sub(SYMMETRIC_HEADER))
            .saturating_sub(SEQUENCE_HEADER)
    }

    /// Bytes of a sealed chunk with `body` bytes of body.
    #[inline]
    pub(crate) fn chunk_size(&self, body: usize) -> usize {
        let footer = self.sealer.footer_length(body.saturating_add(SEQUENCE_HEADER));
        body.saturating_add(CHUNK_HEADER).saturating_add(footer)
    }

    /// Pads, signs and encrypts `chunk`, whose headers and `body` bytes of body are in place and whose length is that of [`Self::chunk_size`].
    ///
    /// # Errors
    /// BadInternalError if the chunk is not laid out that way; it must not be sent then.
    #[inline]
    pub(crate) fn seal(&mut self, chunk: &mut [u8], body: usize) -> Result<(), SymmetricError> {
        let plain = body.saturating_add(SEQUENCE_HEADER);
        let padding = self.sealer.padding_length(plain);
        if padding == 0 {
            return self.sealer.seal_in_place(chunk, SYMMETRIC_HEADER);
        }
        let from = SYMMETRIC_HEADER.saturating_add(plain);
        // PaddingSize and every padding byte hold the number of padding bytes behind PaddingSize.
        let value = u8::try_from(padding.saturating_sub(1)).unwrap_or(u8::MAX);
        if let Some(place) = chunk.get_mut(from..from.saturating_add(padding)) {
            place.fill(value);
        }
        self.sealer.seal_in_place(chunk, SYMMETRIC_HEADER)
    }

    /// Signs and encrypts `chunk` with whatever stands where its padding belongs.
    #[cfg(test)]
    pub(crate) fn seal_as_it_is(&mut self, chunk: &mut [u8]) {
        self.sealer.seal_in_place(chunk, SYMMETRIC_HEADER).unwrap();
    }

    /// Decrypts and verifies `chunk` in place. Returns where the body ends; it begins behind the 24 header bytes.
    ///
    /// # Errors
    /// BadSecurityChecksFailed, whatever is wrong.
    #[inline]
    pub(crate) fn open(&mut self, chunk: &mut [u8]) -> Result<usize, ChannelError> {
        match self.opener.open_in_place(chunk, SYMMETRIC_HEADER) {
            Ok(end) if end >= CHUNK_HEADER => Ok(end),
            _ => Err(ChannelError::security(
                StatusCode::BAD_SECURITY_CHECKS_FAILED,
                "chunk does not open",
            )),
        }
    }
}
