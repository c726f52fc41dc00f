//! Opening and renewing a channel at the server: the slow part, taken out of the channel as an effect (Part 6, 6.7.4; Part 4, 5.6.2).
//!
//! Owns every check of an OpenSecureChannel request that needs its content, the keys that follow from it and the sealed response. Runs
//! without the channel, on any thread; what it needs was copied when the request came. The channel still checks the sequence number
//! when the outcome comes back.

use std::sync::Arc;
use std::time::Duration;

use backplane_crypto::random::nonce;
use backplane_crypto::{CertificateChain, Random, SecurityPolicy};
use backplane_types::{
    BinaryDecode, BinaryEncode, ByteString, ChannelSecurityToken, DecodeLimits, Decoder, Encoder, NodeId, Now,
    OpenSecureChannelRequest, OpenSecureChannelResponse, ResponseHeader, SecurityTokenRequestType, StatusCode,
    Structure, UaString,
};

use crate::asymmetric::{AsymmetricHeader, OpenChunk, Opened, Parties, PeerKey};
use crate::error::ChannelError;
use crate::identity::{CertificateVerifier, ChannelEvidence, OwnIdentity};
use crate::protection::Protection;
use crate::secure::Continuation;
use crate::server::ServerConfig;
use crate::token::{Role, Token};

/// What a renewal must not change, and the nonce it must not repeat.
#[derive(Clone, Debug)]
pub(crate) struct Established {
    pub(crate) evidence: Arc<ChannelEvidence>,
    pub(crate) client_nonce: ByteString,
}

impl Established {
    /// # Errors
    /// BadNonceInvalid if the request repeats the client's last nonce.
    pub(crate) fn check_nonce(&self, checked: &Checked) -> Result<(), ChannelError> {
        if !checked.policy.is_none() && self.client_nonce == checked.request.client_nonce {
            return Err(ChannelError::peer(
                StatusCode::BAD_NONCE_INVALID,
                "client nonce used before",
            ));
        }
        Ok(())
    }
}

/// An OpenSecureChannel request that waits for its RSA work. `run` it where slow work belongs and hand the outcome to
/// [`ServerChannel::handle_opened`](crate::ServerChannel::handle_opened).
pub struct OpenWork {
    pub(crate) config: Arc<ServerConfig>,
    /// The whole chunk.
    pub(crate) chunk: Vec<u8>,
    pub(crate) established: Option<Established>,
    /// The channel is one of another connection.
    pub(crate) elsewhere: bool,
    pub(crate) channel_id: u32,
    pub(crate) token_id: u32,
    /// Sequence number of the response: taken when the request came, so that what is sent meanwhile is numbered behind it.
    pub(crate) sequence_number: u32,
    pub(crate) send_chunk: usize,
    pub(crate) endpoint_url: UaString,
    pub(crate) now: Now,
}

/// What came of an [`OpenWork`].
pub struct OpenOutcome {
    pub(crate) result: Result<Box<Issued>, ChannelError>,
}

/// A token that can be put to use.
pub(crate) struct Issued {
    pub(crate) arrival: Arrival,
    pub(crate) token: Token,
    pub(crate) established: Established,
    /// The sealed response.
    pub(crate) response: Vec<u8>,
}

/// Where the channel of an OpenSecureChannel request lives.
pub(crate) enum Arrival {
    /// On the connection of the request, whose number has yet to be checked.
    Here { sequence_number: u32 },
    /// It left its own connection for this one; the number of the request is taken.
    Elsewhere {
        continuation: Continuation,
        authenticated: bool,
    },
}

/// A request that passed every check but that of its number, and the keys of its token.
pub(crate) struct Checked {
    pub(crate) sequence_number: u32,
    pub(crate) request_id: u32,
    pub(crate) policy: SecurityPolicy,
    pub(crate) client: Option<CertificateChain>,
    /// SenderCertificate as it came; null with the policy None.
    pub(crate) sender: ByteString,
    pub(crate) request: OpenSecureChannelRequest,
    pub(crate) lifetime: Duration,
    pub(crate) server_nonce: ByteString,
    protection: Protection,
}

impl OpenOutcome {
    /// The error that will close the channel, if there is one; for the log.
    #[must_use]
    pub fn error(&self) -> Option<&ChannelError> {
        self.result.as_ref().err()
    }
}

impl std::fmt::Debug for OpenWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenWork")
            .field("channel_id", &self.channel_id)
            .field("token_id", &self.token_id)
            .field("renewal", &self.established.is_some())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OpenOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOutcome")
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}

impl OpenWork {
    /// Whether this renews an open channel.
    #[must_use]
    pub fn is_renewal(&self) -> bool {
        self.established.is_some()
    }

    /// Checks the certificate, decrypts and verifies the request, derives the keys and seals the response. With a policy other than None
    /// this costs two operations with the private key: a few milliseconds. For a channel of another connection
    /// ([`reattaches`](Self::reattaches)) the outcome is a refusal, BadTcpSecureChannelUnknown, and costs nothing.
    pub fn run(self, own: &OwnIdentity, verifier: &dyn CertificateVerifier, random: &mut dyn Random) -> OpenOutcome {
        OpenOutcome {
            result: self.open(own, verifier, random).map(Box::new),
        }
    }

    fn open(
        &self,
        own: &OwnIdentity,
        verifier: &dyn CertificateVerifier,
        random: &mut dyn Random,
    ) -> Result<Issued, ChannelError> {
        if self.elsewhere {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
                "OpenSecureChannel for a channel that is not known",
            ));
        }
        let known = self.established.as_ref();
        let checked = self.check(known.map(|known| &*known.evidence), own, verifier, random)?;
        if let Some(known) = known {
            known.check_nonce(&checked)?;
        }
        let evidence = match known {
            Some(known) => Arc::clone(&known.evidence),
            None => self.evidence(&checked, own),
        };
        let arrival = Arrival::Here {
            sequence_number: checked.sequence_number,
        };
        self.issue(checked, evidence, arrival, self.sequence_number, own, random)
    }

    /// # Errors
    /// As [`AsymmetricHeader::parse`].
    pub(crate) fn policy(&self) -> Result<SecurityPolicy, ChannelError> {
        AsymmetricHeader::parse(&self.chunk, self.config.limits.max_sender_certificate).map(|header| header.policy)
    }

    /// Everything that can be checked without the channel itself; `known` is what is known of it, if it is open already.
    pub(crate) fn check(
        &self,
        known: Option<&ChannelEvidence>,
        own: &OwnIdentity,
        verifier: &dyn CertificateVerifier,
        random: &mut dyn Random,
    ) -> Result<Checked, ChannelError> {
        let header = AsymmetricHeader::parse(&self.chunk, self.config.limits.max_sender_certificate)?;
        let client = if header.policy.is_none() {
            None
        } else {
            Some(self.client(&header, known, own, verifier)?)
        };
        let parties = parties(own, client.as_ref())?;
        let opened = Opened::open(&self.chunk, &header, parties, random)?;
        let request = decode_request(opened.body())?;
        self.check_request(header.policy, &request, known)?;
        let (server_nonce, protection) = self.keys(header.policy, &request, random)?;
        Ok(Checked {
            sequence_number: opened.sequence_number,
            request_id: opened.request_id,
            policy: header.policy,
            sender: client.as_ref().and(header.sender_certificate).into(),
            client,
            lifetime: self.config.limits.revise_lifetime(request.requested_lifetime),
            request,
            server_nonce,
            protection,
        })
    }

    /// Seals the response under `sequence_number` and makes the token.
    pub(crate) fn issue(
        &self,
        checked: Checked,
        evidence: Arc<ChannelEvidence>,
        arrival: Arrival,
        sequence_number: u32,
        own: &OwnIdentity,
        random: &mut dyn Random,
    ) -> Result<Issued, ChannelError> {
        let response = OpenChunk {
            policy: checked.policy,
            channel_id: self.channel_id,
            sequence_number,
            request_id: checked.request_id,
            body: &self.response(&checked),
        }
        .seal(parties(own, checked.client.as_ref())?, random, self.send_chunk)?;
        Ok(Issued {
            arrival,
            token: Token {
                id: self.token_id,
                created: self.now.mono,
                lifetime: checked.lifetime,
                protection: checked.protection,
            },
            established: Established {
                evidence,
                client_nonce: checked.request.client_nonce,
            },
            response,
        })
    }

    /// Checks everything about the certificates that comes before the private key is used.
    fn client(
        &self,
        header: &AsymmetricHeader<'_>,
        known: Option<&ChannelEvidence>,
        own: &OwnIdentity,
        verifier: &dyn CertificateVerifier,
    ) -> Result<CertificateChain, ChannelError> {
        if !own.is_meant_by(header.receiver_thumbprint) {
            return Err(ChannelError::peer(
                StatusCode::BAD_CERTIFICATE_INVALID,
                "receiver thumbprint is not this server's",
            ));
        }
        let certificate = header.sender_certificate.unwrap_or_default();
        if let Some(known) = known
            && known.client_certificate_chain.as_slice() != Some(certificate)
        {
            return Err(ChannelError::security(
                StatusCode::BAD_CERTIFICATE_INVALID,
                "renewal with another certificate",
            ));
        }
        let chain = CertificateChain::parse(certificate)
            .map_err(|error| ChannelError::security(error.status(), "sender certificate cannot be read"))?;
        if chain.leaf().der() == own.certificate().bytes() {
            return Err(ChannelError::security(
                StatusCode::BAD_CERTIFICATE_INVALID,
                "the sender uses this server's own certificate",
            ));
        }
        if !header.policy.allows_key_bits(PeerKey::of(&chain)?.key.bits()) {
            return Err(ChannelError::security(
                StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED,
                "key length of the sender certificate",
            ));
        }
        verifier.verify(&chain, header.policy, self.now.utc).map_err(|error| {
            ChannelError::security(error.status(), "sender certificate refused").with_wire(error.peer_status())
        })?;
        Ok(chain)
    }

    fn check_request(
        &self,
        policy: SecurityPolicy,
        request: &OpenSecureChannelRequest,
        known: Option<&ChannelEvidence>,
    ) -> Result<(), ChannelError> {
        match (request.request_type, known) {
            (SecurityTokenRequestType::ISSUE, None) | (SecurityTokenRequestType::RENEW, Some(_)) => {}
            (SecurityTokenRequestType::RENEW, None) => {
                return Err(ChannelError::peer(
                    StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
                    "renewal of a channel that is not open",
                ));
            }
            _ => {
                return Err(ChannelError::peer(
                    StatusCode::BAD_REQUEST_TYPE_INVALID,
                    "second channel on one connection",
                ));
            }
        }
        if !self.config.allows(policy, request.security_mode) {
            return Err(ChannelError::peer(
                StatusCode::BAD_SECURITY_MODE_REJECTED,
                "security mode not allowed with this policy",
            ));
        }
        if policy.is_none() {
            return Ok(());
        }
        let nonce = request.client_nonce.bytes();
        if nonce.len() != policy.nonce_length() {
            return Err(ChannelError::peer(
                StatusCode::BAD_NONCE_INVALID,
                "length of the client's nonce",
            ));
        }
        if known.is_some_and(|known| known.mode != request.security_mode) {
            return Err(ChannelError::peer(
                StatusCode::BAD_SECURITY_MODE_REJECTED,
                "renewal with another security mode",
            ));
        }
        Ok(())
    }

    fn keys(
        &self,
        policy: SecurityPolicy,
        request: &OpenSecureChannelRequest,
        random: &mut dyn Random,
    ) -> Result<(ByteString, Protection), ChannelError> {
        if policy.is_none() {
            // No keys, so no nonce: a client may refuse one of any length.
            return Ok((ByteString::NULL, Protection::none()));
        }
        let server_nonce = nonce(random, policy.nonce_length())
            .map_err(|_| ChannelError::ours(StatusCode::BAD_INTERNAL_ERROR, "no randomness for a nonce"))?;
        let protection = Protection::derive(
            Role::Server,
            policy,
            request.security_mode,
            request.client_nonce.bytes(),
            &server_nonce,
        )?;
        Ok((ByteString::from(server_nonce), protection))
    }

    fn response(&self, checked: &Checked) -> Vec<u8> {
        let response = OpenSecureChannelResponse {
            response_header: ResponseHeader {
                timestamp: self.now.utc,
                request_handle: checked.request.request_header.request_handle,
                ..ResponseHeader::default()
            },
            server_protocol_version: 0,
            security_token: ChannelSecurityToken {
                channel_id: self.channel_id,
                token_id: self.token_id,
                created_at: self.now.utc,
                revised_lifetime: u32::try_from(checked.lifetime.as_millis()).unwrap_or(u32::MAX),
            },
            server_nonce: checked.server_nonce.clone(),
        };
        encode_body(&response)
    }

    fn evidence(&self, checked: &Checked, own: &OwnIdentity) -> Arc<ChannelEvidence> {
        let client = checked.client.as_ref();
        Arc::new(ChannelEvidence {
            channel_id: self.channel_id,
            policy: checked.policy,
            mode: checked.request.security_mode,
            client_certificate: client.map(|client| client.leaf().der()).into(),
            client_certificate_chain: checked.sender.clone(),
            server_certificate: if client.is_some() {
                own.certificate().clone()
            } else {
                ByteString::NULL
            },
            channel_thumbprint: ByteString::NULL,
            endpoint_url: self.endpoint_url.clone(),
        })
    }
}

/// Both ends of a secured exchange; nothing with the policy None.
fn parties<'a>(
    own: &'a OwnIdentity,
    client: Option<&'a CertificateChain>,
) -> Result<Option<Parties<'a>>, ChannelError> {
    client
        .map(|client| {
            Ok(Parties {
                own,
                peer: PeerKey::of(client)?,
            })
        })
        .transpose()
}

/// Type id and structure, as every message body begins.
pub(crate) fn encode_body<T: Structure>(message: &T) -> Vec<u8> {
    let mut body = Vec::with_capacity(256);
    let mut encoder = Encoder::new(&mut body);
    NodeId::numeric(0, T::ENCODING_ID).encode(&mut encoder);
    message.encode(&mut encoder);
    body
}

/// Reads a body that must be a `T`.
///
/// # Errors
/// BadDecodingError or BadEncodingLimitsExceeded.
pub(crate) fn decode_body<T: Structure>(body: &[u8], context: &'static str) -> Result<T, ChannelError> {
    let mut decoder = Decoder::new(body, DecodeLimits::default());
    let mut read = || {
        if NodeId::decode(&mut decoder)? == NodeId::numeric(0, T::ENCODING_ID) {
            T::decode(&mut decoder).map(Some)
        } else {
            Ok(None)
        }
    };
    match read() {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err(ChannelError::peer(StatusCode::BAD_DECODING_ERROR, context)),
        Err(error) => Err(ChannelError::peer(error.status(), context)),
    }
}

fn decode_request(body: &[u8]) -> Result<OpenSecureChannelRequest, ChannelError> {
    decode_body(body, "not an OpenSecureChannel request")
}
