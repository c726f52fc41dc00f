//! A channel that leaves its connection and goes on with another one.
//!
//! A client whose connection broke may ask on a new one for the channel it had: OpenSecureChannel with RequestType Renew and the id of that
//! channel as the first message behind the Hello (Part 6, 6.7.2.4 and 7.1 of version 1.04; since 1.05 clients are told to open a new
//! channel instead, so this serves clients of before). Only a channel with security can: with the policy None nothing proves that it is the
//! same client.
//!
//! Owns what of a channel outlives its connection and the order of the change, which is: verify, detach, activate the new token, number
//! the response, attach. What a step needs only the step before it can make. Knows no table of channels and no task: where channels are
//! looked up and who talks to whom is the caller's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backplane_crypto::Random;
use backplane_types::{Now, StatusCode};

use crate::error::ChannelError;
use crate::identity::{CertificateVerifier, ChannelEvidence, OwnIdentity};
use crate::opening::{Arrival, Checked, Established, Issued, OpenOutcome, OpenWork};
use crate::secure::Continuation;

/// A channel without a connection: ids, numbers, evidence and lifetime. Its keys are erased, since it comes back with new ones only. Dropped
/// without [`Reattachment::complete`], the channel is over.
///
/// How a channel moves, in this order. Nothing happens to it before the request is verified, so that nobody can cut somebody off by naming
/// an id.
///
/// | who | call |
/// |---|---|
/// | new connection | [`OpenWork::reattaches`] names the channel; the caller looks its evidence up |
/// | blocking thread | [`OpenWork::verify`] |
/// | old connection, if there is one | [`ServerChannel::admits`](crate::ServerChannel::admits), then [`ServerChannel::detach`](crate::ServerChannel::detach); nothing more is written to its socket |
/// | blocking thread | [`Reattachment::complete`] |
/// | new connection | [`ServerChannel::handle_opened`](crate::ServerChannel::handle_opened): the response is the first message on it |
pub struct DetachedChannel {
    pub(crate) established: Established,
    pub(crate) continuation: Continuation,
    /// When its last token is over.
    pub(crate) end: Duration,
    pub(crate) authenticated: bool,
}

impl DetachedChannel {
    /// What is known of the channel.
    #[must_use]
    pub fn evidence(&self) -> &Arc<ChannelEvidence> {
        &self.established.evidence
    }

    /// The monotonic time at which the channel is over because its token is: drop it then.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.end
    }

    /// Whether the verified request may bring this channel back. Changes nothing.
    ///
    /// # Errors
    /// BadTcpSecureChannelUnknown for another channel or one that is over, BadNonceInvalid for a nonce used before, BadSecurityChecksFailed
    /// (BadSequenceNumberInvalid in the log) for a request that is not newer than what the channel has seen: a replay.
    pub fn admits(&self, now: Now, reattachment: &Reattachment) -> Result<(), ChannelError> {
        reattachment.fits(now, &self.established, &self.continuation, self.end)
    }
}

impl fmt::Debug for DetachedChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedChannel")
            .field("channel_id", &self.continuation.channel_id)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// A request to bring a channel to a new connection that was verified: decrypted, its signature checked, made by the client whose channel
/// it is. What is left to check is what only the channel itself knows.
pub struct Reattachment {
    work: OpenWork,
    checked: Checked,
}

impl fmt::Debug for Reattachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reattachment")
            .field("channel_id", &self.channel_id())
            .finish_non_exhaustive()
    }
}

impl OpenWork {
    /// The id of the channel that this request wants to bring over from another connection; none if it opens or renews the channel of its
    /// own one.
    #[must_use]
    pub fn reattaches(&self) -> Option<u32> {
        self.elsewhere.then_some(self.channel_id)
    }

    /// Verifies a request that [`reattaches`](Self::reattaches), against the evidence of the channel it names: same policy and mode, same
    /// certificate byte for byte, still trusted, decrypted and its signature checked. One operation with the private key.
    ///
    /// # Errors
    /// The outcome to hand to the new connection, which refuses with it. The channel named is not touched.
    pub fn verify(
        self,
        evidence: &ChannelEvidence,
        own: &OwnIdentity,
        verifier: &dyn CertificateVerifier,
        random: &mut dyn Random,
    ) -> Result<Reattachment, OpenOutcome> {
        match self.check_elsewhere(evidence, own, verifier, random) {
            Ok(checked) => Ok(Reattachment { work: self, checked }),
            Err(error) => Err(OpenOutcome { result: Err(error) }),
        }
    }

    fn check_elsewhere(
        &self,
        evidence: &ChannelEvidence,
        own: &OwnIdentity,
        verifier: &dyn CertificateVerifier,
        random: &mut dyn Random,
    ) -> Result<Checked, ChannelError> {
        if self.reattaches() != Some(evidence.channel_id) || evidence.policy.is_none() {
            return Err(UNKNOWN);
        }
        if self.policy()? != evidence.policy {
            return Err(ChannelError::peer(
                StatusCode::BAD_SECURITY_POLICY_REJECTED,
                "renewal with another security policy",
            ));
        }
        self.check(Some(evidence), own, verifier, random)
    }
}

impl Reattachment {
    /// The channel it is about.
    #[must_use]
    pub fn channel_id(&self) -> u32 {
        self.work.channel_id
    }

    /// The refusal to hand to the new connection if the channel does not admit the request, or is gone.
    #[must_use]
    pub fn refuse(self, error: ChannelError) -> OpenOutcome {
        OpenOutcome { result: Err(error) }
    }

    /// The refusal if the channel is not known any more.
    #[must_use]
    pub fn refuse_unknown(self) -> OpenOutcome {
        self.refuse(UNKNOWN)
    }

    pub(crate) fn fits(
        &self,
        now: Now,
        established: &Established,
        continuation: &Continuation,
        end: Duration,
    ) -> Result<(), ChannelError> {
        if continuation.channel_id != self.channel_id() || end <= now.mono {
            return Err(UNKNOWN);
        }
        established.check_nonce(&self.checked)?;
        if continuation.incoming.is_behind(self.checked.sequence_number) {
            Ok(())
        } else {
            Err(ChannelError::security(
                StatusCode::BAD_SEQUENCE_NUMBER_INVALID,
                "sequence number of OpenSecureChannel is not newer than the channel",
            ))
        }
    }

    /// Goes on with the detached channel: takes the request's number, gives the response the next one and seals it. The outcome is for
    /// [`ServerChannel::handle_opened`](crate::ServerChannel::handle_opened) of the new connection. One operation with the private key.
    /// If it fails, the channel is over.
    pub fn complete(
        self,
        now: Now,
        detached: DetachedChannel,
        own: &OwnIdentity,
        random: &mut dyn Random,
    ) -> OpenOutcome {
        OpenOutcome {
            result: self.go_on(now, detached, own, random).map(Box::new),
        }
    }

    fn go_on(
        self,
        now: Now,
        detached: DetachedChannel,
        own: &OwnIdentity,
        random: &mut dyn Random,
    ) -> Result<Issued, ChannelError> {
        detached.admits(now, &self)?;
        let mut continuation = detached.continuation;
        if !continuation.incoming.accept_behind_gap(self.checked.sequence_number) {
            return Err(UNKNOWN);
        }
        let sequence_number = continuation.outgoing.next();
        let arrival = Arrival::Elsewhere {
            continuation,
            authenticated: detached.authenticated,
        };
        let evidence = detached.established.evidence;
        self.work
            .issue(self.checked, evidence, arrival, sequence_number, own, random)
    }
}

const UNKNOWN: ChannelError = ChannelError::peer(
    StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
    "the channel to be brought to this connection is not known",
);
