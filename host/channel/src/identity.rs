//! Who the two ends are: the own key and certificate, the check of the peer's, and what is known of the peer once a channel is open.
//!
//! Owns no trust decision: that is the [`CertificateVerifier`]'s, which the caller implements on its trust store.

use backplane_crypto::{CertificateChain, CertificateError, PrivateKey, SecurityPolicy, constant_time_eq, sha1};
use backplane_types::{ByteString, DateTime, MessageSecurityMode, UaString};

/// The own private key and certificate.
#[derive(Clone, Debug)]
pub struct OwnIdentity {
    private_key: PrivateKey,
    certificate: ByteString,
    chain: ByteString,
    thumbprint: [u8; 20],
}

impl OwnIdentity {
    /// An identity from its key, its certificate in DER, and the certificates of its issuers in DER, nearest first (may be empty). Issuers
    /// are sent along, so that a peer can build the chain.
    #[must_use]
    pub fn new(private_key: PrivateKey, certificate: &[u8], issuers: &[&[u8]]) -> Self {
        let mut chain = certificate.to_vec();
        for issuer in issuers {
            chain.extend_from_slice(issuer);
        }
        Self {
            private_key,
            certificate: ByteString::from(certificate),
            chain: ByteString::from(chain),
            thumbprint: sha1(certificate),
        }
    }

    /// The private key.
    #[must_use]
    pub fn private_key(&self) -> &PrivateKey {
        &self.private_key
    }

    /// The certificate in DER, without issuers.
    #[must_use]
    pub fn certificate(&self) -> &ByteString {
        &self.certificate
    }

    /// Certificate and issuers, as they are sent.
    #[must_use]
    pub fn chain(&self) -> &[u8] {
        self.chain.bytes()
    }

    /// SHA-1 of the certificate.
    #[must_use]
    pub fn thumbprint(&self) -> [u8; 20] {
        self.thumbprint
    }

    /// Whether a ReceiverCertificateThumbprint means this certificate.
    pub(crate) fn is_meant_by(&self, thumbprint: Option<&[u8]>) -> bool {
        thumbprint.is_some_and(|thumbprint| constant_time_eq(thumbprint, &self.thumbprint))
    }
}

/// Decides whether a peer's certificate is to be trusted. Called where slow work runs, never on a connection's own task.
pub trait CertificateVerifier: Send + Sync {
    /// Checks the chain a peer sent for `policy` at the time `now`.
    ///
    /// # Errors
    /// The reason, for the log; the peer learns its `peer_status`, which is BadSecurityChecksFailed unless the certificate is trusted
    /// (Part 4, 6.1.3).
    fn verify(&self, chain: &CertificateChain, policy: SecurityPolicy, now: DateTime) -> Result<(), CertificateError>;
}

impl<F> CertificateVerifier for F
where
    F: Fn(&CertificateChain, SecurityPolicy, DateTime) -> Result<(), CertificateError> + Send + Sync,
{
    fn verify(&self, chain: &CertificateChain, policy: SecurityPolicy, now: DateTime) -> Result<(), CertificateError> {
        self(chain, policy, now)
    }
}

/// What is known of an open channel, for those who ask later: sessions, classifiers, audit. Immutable; a null byte string says that there is
/// no such thing, which is not the same as an empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelEvidence {
    /// SecureChannelId.
    pub channel_id: u32,
    /// The policy of the channel.
    pub policy: SecurityPolicy,
    /// The mode of the channel.
    pub mode: MessageSecurityMode,
    /// The client's certificate in DER, without issuers; null with the policy None.
    pub client_certificate: ByteString,
    /// SenderCertificate as it came, issuers included; null with the policy None.
    pub client_certificate_chain: ByteString,
    /// The server's certificate in DER; null with the policy None.
    pub server_certificate: ByteString,
    /// ChannelThumbprint of policies with SecureChannelEnhancements; null with all others.
    pub channel_thumbprint: ByteString,
    /// The URL in the client's Hello.
    pub endpoint_url: UaString,
}
