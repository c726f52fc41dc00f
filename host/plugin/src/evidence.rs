//! What a classifier may know of a peer, and how it asks.
//!
//! Owns the evidence as a value that never changes, and the rule that a certificate nobody has proved to own is not in it. It must not know channels or sessions:
//! whoever has them says what they have established.

use std::net::IpAddr;
use std::sync::Arc;

use backplane_types::{MessageSecurityMode, UserTokenType};
use sha2::{Digest, Sha256};

use crate::bindings::host;
use crate::state::State;

/// The SecurityPolicy without any security, Part 7.
const POLICY_NONE: &str = "http://opcfoundation.org/UA/SecurityPolicy#None";

/// The certificate a client has opened its channel with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    der: Arc<[u8]>,
    sha256: [u8; 32],
    thumbprint: [u8; 20],
    application_uri: Option<Arc<str>>,
}

impl ClientCertificate {
    /// `der`: the leaf. `thumbprint`: its SHA-1. `application_uri`: as it stands in the certificate.
    #[must_use]
    pub fn new(der: Arc<[u8]>, thumbprint: [u8; 20], application_uri: Option<Arc<str>>) -> Self {
        Self {
            sha256: Sha256::digest(&der).into(),
            der,
            thumbprint,
            application_uri,
        }
    }
}

/// A live session: activated, not expired, and on the channel in question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvidence {
    /// A name for the session that is the same as long as it lives; never its id or a token.
    pub pseudonym: Arc<str>,
    /// How the user has proved who it is.
    pub token_type: UserTokenType,
    /// The user; none when anonymous.
    pub user: Option<Arc<str>>,
    /// Names of the user's roles.
    pub roles: Arc<[Arc<str>]>,
}

/// What transport and session have established about a peer. It does not change: new facts make new evidence. Equal evidence is equal in every fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerEvidence {
    address: Option<IpAddr>,
    endpoint_url: Option<Arc<str>>,
    security_policy: Option<Arc<str>>,
    security_mode: MessageSecurityMode,
    certificate: Option<ClientCertificate>,
    session: Option<SessionEvidence>,
}

impl PeerEvidence {
    /// A connection before anything was said on it. An IPv4 address that is mapped to IPv6 becomes IPv4.
    #[must_use]
    pub fn of_connection(address: Option<IpAddr>) -> Self {
        Self {
            address: address.map(|address| address.to_canonical()),
            endpoint_url: None,
            security_policy: None,
            security_mode: MessageSecurityMode::INVALID,
            certificate: None,
            session: None,
        }
    }

    /// An open channel. `policy`: the URI of its SecurityPolicy. The certificate is left out unless the channel is signed, with a policy other than None: without,
    /// anybody could have sent it.
    #[must_use]
    pub fn of_channel(
        address: Option<IpAddr>,
        policy: Arc<str>,
        mode: MessageSecurityMode,
        certificate: Option<ClientCertificate>,
    ) -> Self {
        let signed = mode == MessageSecurityMode::SIGN || mode == MessageSecurityMode::SIGN_AND_ENCRYPT;
        let proved = signed && !policy.is_empty() && &*policy != POLICY_NONE;
        Self {
            certificate: certificate.filter(|_| proved),
            security_policy: Some(policy),
            security_mode: mode,
            ..Self::of_connection(address)
        }
    }

    /// The same with the URL that the client has asked for.
    #[must_use]
    pub fn with_endpoint_url(mut self, url: Arc<str>) -> Self {
        self.endpoint_url = Some(url);
        self
    }

    /// The same with a live session.
    #[must_use]
    pub fn with_session(mut self, session: SessionEvidence) -> Self {
        self.session = Some(session);
        self
    }
}

// A number that is not the running question's is answered with nothing.
impl host::evidence::Host for State {
    fn address(&mut self, who: u32) -> Option<String> {
        Some(self.peer(who)?.address?.to_string())
    }

    fn endpoint_url(&mut self, who: u32) -> Option<String> {
        text(self.peer(who)?.endpoint_url.as_ref())
    }

    fn security_policy(&mut self, who: u32) -> Option<String> {
        text(self.peer(who)?.security_policy.as_ref())
    }

    fn security_mode(&mut self, who: u32) -> u32 {
        let mode = self.peer(who).map(|peer| peer.security_mode.0);
        mode.and_then(|mode| u32::try_from(mode).ok()).unwrap_or_default()
    }

    fn application_uri(&mut self, who: u32) -> Option<String> {
        text(self.certificate_of(who)?.application_uri.as_ref())
    }

    fn certificate_sha256(&mut self, who: u32) -> Option<Vec<u8>> {
        Some(self.certificate_of(who)?.sha256.to_vec())
    }

    fn certificate_sha1(&mut self, who: u32) -> Option<Vec<u8>> {
        Some(self.certificate_of(who)?.thumbprint.to_vec())
    }

    fn certificate(&mut self, who: u32) -> Option<Vec<u8>> {
        Some(self.certificate_of(who)?.der.to_vec())
    }

    fn session(&mut self, who: u32) -> Option<String> {
        text(Some(&self.session_of(who)?.pseudonym))
    }

    fn user_token_type(&mut self, who: u32) -> Option<u32> {
        u32::try_from(self.session_of(who)?.token_type.0).ok()
    }

    fn user(&mut self, who: u32) -> Option<String> {
        text(self.session_of(who)?.user.as_ref())
    }

    fn roles(&mut self, who: u32) -> Vec<String> {
        let session = self.session_of(who);
        session.map_or_else(Vec::new, |session| {
            session.roles.iter().map(|role| role.to_string()).collect()
        })
    }
}

fn text(text: Option<&Arc<str>>) -> Option<String> {
    text.map(|text| text.to_string())
}

impl State {
    fn peer(&self, who: u32) -> Option<&PeerEvidence> {
        self.peer
            .as_ref()
            .filter(|(number, _)| *number == who)
            .map(|(_, peer)| &**peer)
    }

    fn certificate_of(&self, who: u32) -> Option<&ClientCertificate> {
        self.peer(who)?.certificate.as_ref()
    }

    fn session_of(&self, who: u32) -> Option<&SessionEvidence> {
        self.peer(who)?.session.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: &str = "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";

    fn certificate() -> Option<ClientCertificate> {
        Some(ClientCertificate::new(
            b"der".as_slice().into(),
            [1; 20],
            Some("urn:client".into()),
        ))
    }

    #[test]
    fn a_certificate_counts_only_where_its_owner_had_to_prove_it() {
        let with = |policy: &str, mode| PeerEvidence::of_channel(None, policy.into(), mode, certificate());
        assert!(with(SIGNED, MessageSecurityMode::SIGN).certificate.is_some());
        assert!(
            with(SIGNED, MessageSecurityMode::SIGN_AND_ENCRYPT)
                .certificate
                .is_some()
        );
        assert!(with(SIGNED, MessageSecurityMode::NONE).certificate.is_none());
        assert!(with(SIGNED, MessageSecurityMode::INVALID).certificate.is_none());
        assert!(with(POLICY_NONE, MessageSecurityMode::NONE).certificate.is_none());
        assert!(with(POLICY_NONE, MessageSecurityMode::SIGN).certificate.is_none());
        assert!(with("", MessageSecurityMode::SIGN).certificate.is_none());
    }

    #[test]
    fn mapped_addresses_are_one_with_the_plain_ones() {
        let mapped = PeerEvidence::of_connection("::ffff:192.0.2.7".parse().ok());
        assert_eq!(mapped, PeerEvidence::of_connection("192.0.2.7".parse().ok()));
        assert_ne!(mapped, PeerEvidence::of_connection("2001:db8::1".parse().ok()));
    }

    #[test]
    fn the_digest_is_that_of_the_certificate() {
        let digest: [u8; 32] = Sha256::digest(b"der").into();
        assert_eq!(certificate().map(|certificate| certificate.sha256), Some(digest));
    }
}
