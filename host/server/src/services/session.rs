//! The Session services (Part 4 5.7): CreateSession, ActivateSession, CloseSession and Cancel.
//!
//! Owns their checks against the channel and the signatures; the table itself is the session crate's. Signatures and
//! passwords are worked on by blocking threads, never by a connection's task.

use std::net::IpAddr;
use std::sync::Arc;

use backplane_channel::ChannelEvidence;
use backplane_crypto::{Certificate, SecurityPolicy, SystemRandom};
use backplane_session::{ActivationCheck, CreatedSession, SessionParameters, ValidatedSession, VerifiedUser};
use backplane_types::{
    ActivateSessionRequest, ActivateSessionResponse, ByteString, CancelRequest, CloseSessionRequest,
    CloseSessionResponse, CreateSessionRequest, CreateSessionResponse, NodeId, SignatureData, StatusCode, UaString,
};
use tokio::sync::Semaphore;

use super::establish::Turn;
use super::{Progress, Request, identity};
use crate::admission::Charge;
use crate::events::{Actor, SessionAction};
use crate::link::{Activated, Link};
use crate::respond::{self, Context};
use crate::shared::Shared;

/// CreateSession (5.7.2).
pub(super) fn create(
    shared: &Arc<Shared>,
    link: &Link,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    let asked: CreateSessionRequest = request.decode(shared)?;
    if !shared.endpoints().offers(link.evidence.policy, link.evidence.mode) {
        // A channel without security is there for discovery even when no session may use it.
        return Err(StatusCode::BAD_SECURITY_POLICY_REJECTED);
    }
    check_client(&link.evidence, &asked)?;
    let own = &shared.endpoints().application("").application_uri;
    if !asked.server_uri.text().is_empty() && asked.server_uri != *own {
        return Err(StatusCode::BAD_SERVER_URI_INVALID);
    }
    let parameters = SessionParameters {
        session_name: asked.session_name.clone(),
        client_application_uri: asked.client_description.application_uri.clone(),
        endpoint_url: asked.endpoint_url.clone(),
        client_nonce: asked.client_nonce.clone(),
        requested_timeout: asked.requested_session_timeout,
        max_response_message_size: asked.max_response_message_size,
    };
    let Some(turn) = Turn::take(shared, link, request, out) else {
        return Ok(Progress::Done);
    };
    let created = shared
        .sessions
        .lock()
        .create(request.context.now, &link.channel, parameters);
    shared.session_table_changed();
    let created = match created {
        Ok(created) => created,
        Err(status) => return turn.fail(status),
    };
    tracing::debug!(session = %created.session.session_id(), peer = %link.peer, "session created");
    let (shared, evidence, context) = (Arc::clone(shared), Arc::clone(&link.evidence), request.context);
    turn.run(None, async move {
        let signer = Arc::clone(&shared);
        let nonce = asked.client_nonce.clone();
        let channel = Arc::clone(&evidence);
        let signing = tokio::task::spawn_blocking(move || sign(&signer, &evidence, &nonce));
        let signed = signing.await.unwrap_or(Err(StatusCode::BAD_INTERNAL_ERROR));
        if shared.audits() {
            let status = signed.as_ref().err().copied().unwrap_or(StatusCode::GOOD);
            let actor = Actor {
                user: "System/CreateSession".into(),
                entry: asked.request_header.audit_entry_id.clone(),
            };
            let session = created.session.session_id();
            shared.audit_session(SessionAction::Create, &channel, session, &actor, status);
        }
        match signed {
            Ok(signature) => Ok((created_message(&shared, context, &asked, &created, signature), None)),
            Err(status) => Err(status),
        }
    })
}

/// On a secured channel the client must be who its certificate says, and the certificate that of the channel.
fn check_client(evidence: &ChannelEvidence, asked: &CreateSessionRequest) -> Result<(), StatusCode> {
    if evidence.policy.is_none() {
        return Ok(());
    }
    let sent = asked.client_certificate.bytes();
    if sent != evidence.client_certificate.bytes() && sent != evidence.client_certificate_chain.bytes() {
        return Err(StatusCode::BAD_SECURITY_CHECKS_FAILED);
    }
    let certificate = Certificate::parse(evidence.client_certificate.bytes()).map_err(|error| error.status())?;
    let uri = asked.client_description.application_uri.text();
    certificate.check_application_uri(uri).map_err(|error| {
        tracing::warn!(application_uri = uri, certificate_uris = ?certificate.uris(), "the client's application URI is not its certificate's");
        error.status()
    })
}

/// The proof that this server has its private key: a signature over the client's certificate and nonce.
fn sign(shared: &Shared, evidence: &ChannelEvidence, client_nonce: &ByteString) -> Result<SignatureData, StatusCode> {
    if evidence.policy.is_none() {
        return Ok(SignatureData::default());
    }
    let parameters = evidence.policy.parameters();
    let parts = [evidence.client_certificate.bytes(), client_nonce.bytes()];
    let signature = shared
        .identity
        .private_key()
        .sign(parameters.asymmetric_signature, &parts, &mut SystemRandom)
        .map_err(|error| error.status())?;
    Ok(SignatureData {
        algorithm: parameters.asymmetric_signature_uri.into(),
        signature: ByteString::from(signature),
    })
}

fn created_message(
    shared: &Shared,
    context: Context,
    asked: &CreateSessionRequest,
    created: &CreatedSession,
    server_signature: SignatureData,
) -> Vec<u8> {
    let response = CreateSessionResponse {
        response_header: context.header(),
        session_id: created.session.session_id().clone(),
        authentication_token: created.session.authentication_token().clone(),
        revised_session_timeout: created.session.timeout().as_secs_f64() * 1000.0,
        server_nonce: created.server_nonce.clone(),
        server_certificate: shared.endpoints().certificate().clone(),
        server_endpoints: shared.endpoints().describe(asked.endpoint_url.text()),
        server_software_certificates: Vec::new(),
        server_signature,
        max_request_message_size: shared.limits.message_size,
    };
    let mut message = Vec::new();
    respond::structure(&response, &mut message);
    message
}

/// ActivateSession (5.7.3).
pub(super) fn activate(
    shared: &Arc<Shared>,
    link: &Link,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    let asked: ActivateSessionRequest = request.decode(shared)?;
    let now = request.context.now;
    let Some(turn) = Turn::take(shared, link, request, out) else {
        return Ok(Progress::Done);
    };
    let begun = shared
        .sessions
        .lock()
        .begin_activate(now, &asked.request_header.authentication_token, &link.channel);
    let begun = begun.and_then(|check| {
        Ok((
            check,
            identity::read(shared, &link.evidence, &asked.user_identity_token)?,
        ))
    });
    let (check, token) = match begun {
        Ok(begun) => begun,
        Err(status) => return turn.fail(status),
    };
    let (shared, evidence, context) = (Arc::clone(shared), Arc::clone(&link.evidence), request.context);
    let address = link.peer.ip();
    let logins = Arc::clone(&link.logins);
    let guard = check.session.enter(now);
    turn.run(Some(guard), async move {
        let audited = Audited {
            shared: Arc::clone(&shared),
            evidence: Arc::clone(&evidence),
            session: check.session.session_id().clone(),
            entry: asked.request_header.audit_entry_id.clone(),
            name: token.name(),
        };
        let activated = activated(shared, (evidence, logins, address), asked, check, token, context).await;
        audited.tell(activated.as_ref().err().copied());
        activated
    })
}

/// An activation, for its audit event.
struct Audited {
    shared: Arc<Shared>,
    evidence: Arc<ChannelEvidence>,
    session: NodeId,
    entry: UaString,
    /// The user who wants the session; none is anonymous.
    name: UaString,
}

impl Audited {
    fn tell(&self, failed: Option<StatusCode>) {
        if self.shared.audits() {
            let actor = Actor {
                user: self.name.clone(),
                entry: self.entry.clone(),
            };
            let status = failed.unwrap_or(StatusCode::GOOD);
            let action = SessionAction::Activate;
            self.shared
                .audit_session(action, &self.evidence, &self.session, &actor, status);
        }
    }
}

/// The slow part of ActivateSession: its response, and the session it activated.
async fn activated(
    shared: Arc<Shared>,
    (evidence, logins, address): (Arc<ChannelEvidence>, Arc<Semaphore>, IpAddr),
    asked: ActivateSessionRequest,
    check: ActivationCheck,
    token: identity::Token,
    context: Context,
) -> Result<(Vec<u8>, Option<Activated>), StatusCode> {
    let turn = identity::turn(&shared, logins, address, &token).await?;
    let job = {
        let (shared, evidence) = (Arc::clone(&shared), Arc::clone(&evidence));
        let check = check.clone();
        let signature = asked.client_signature.clone();
        tokio::task::spawn_blocking(move || {
            // It ends with the check, not with the connection: a client that leaves must not make room for the next.
            let _turn = turn;
            verify_client(&shared, evidence.policy, &check, &signature)?;
            identity::verify(&shared, &evidence, address, &token, &check.server_nonce)
        })
    };
    let (identity, roles) = job.await.unwrap_or(Err(StatusCode::BAD_INTERNAL_ERROR))?;
    let user = VerifiedUser {
        identity,
        roles,
        locales: asked.locale_ids.clone(),
    };
    let (session, server_nonce) = complete(&shared, check, user)?;
    let charge = charge(&shared, address, &evidence, &session).await?;
    let response = ActivateSessionResponse {
        response_header: context.header(),
        server_nonce,
        ..ActivateSessionResponse::default()
    };
    let mut message = Vec::new();
    respond::structure(&response, &mut message);
    Ok((message, Some(Activated { session, charge })))
}

/// Whom an activated session is charged to. One that nobody can be charged for is closed: it never runs unaccounted.
async fn charge(
    shared: &Shared,
    peer: IpAddr,
    evidence: &ChannelEvidence,
    session: &ValidatedSession,
) -> Result<Arc<Charge>, StatusCode> {
    match shared.admission.classify(peer, evidence, Some(session)).await {
        Ok(charge) => {
            shared.charges.keep(session, &charge);
            Ok(charge)
        }
        Err(error) => {
            tracing::warn!(session = %session.handle.session_id(), %error, "session closed: nobody to charge its work to");
            let token = session.handle.authentication_token();
            // It may have ended meanwhile.
            let _ = shared.sessions.lock().close(token, session.snapshot.channel, true);
            shared.session_table_changed();
            Err(StatusCode::BAD_INTERNAL_ERROR)
        }
    }
}

/// The proof that the client has its private key: a signature over this server's certificate and the last nonce.
fn verify_client(
    shared: &Shared,
    policy: SecurityPolicy,
    check: &ActivationCheck,
    signature: &SignatureData,
) -> Result<(), StatusCode> {
    if policy.is_none() {
        return Ok(());
    }
    let invalid = StatusCode::BAD_APPLICATION_SIGNATURE_INVALID;
    let parameters = policy.parameters();
    if signature.algorithm.text() != parameters.asymmetric_signature_uri {
        return Err(invalid);
    }
    let certificate = Certificate::parse(check.client_certificate.bytes()).map_err(|error| error.status())?;
    let key = certificate.public_key().map_err(|_| invalid)?;
    // Some clients sign what they were sent, the whole chain; the standard wants the certificate alone.
    let signed = [shared.identity.certificate().bytes(), shared.identity.chain()];
    let matches = |own: &&[u8]| {
        key.verify(
            parameters.asymmetric_signature,
            &[own, check.server_nonce.bytes()],
            signature.signature.bytes(),
        )
        .is_ok()
    };
    if signed.iter().any(matches) {
        Ok(())
    } else {
        Err(invalid)
    }
}

fn complete(
    shared: &Shared,
    check: ActivationCheck,
    user: VerifiedUser,
) -> Result<(ValidatedSession, ByteString), StatusCode> {
    let activated = shared
        .sessions
        .lock()
        .complete_activate(shared.clock.now(), check, user);
    shared.session_table_changed();
    let activated = activated?;
    tracing::info!(session = %activated.session.session_id(), user = activated.snapshot.identity.client_user_id.text(), "session activated");
    Ok((
        ValidatedSession {
            handle: activated.session,
            snapshot: activated.snapshot,
        },
        activated.server_nonce,
    ))
}

/// CloseSession (5.7.4).
pub(super) fn close(
    shared: &Arc<Shared>,
    link: &Link,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    let asked: CloseSessionRequest = request.decode(shared)?;
    let token = &asked.request_header.authentication_token;
    let closed = shared
        .sessions
        .lock()
        .close(token, link.channel.id, asked.delete_subscriptions);
    shared.session_table_changed();
    closed?;
    if shared.audits()
        && let Some(bound) = link.bound()
    {
        let actor = Actor::of(&bound.caller, request.peek.header.audit_entry_id.0);
        let session = bound.session.handle.session_id();
        shared.audit_session(SessionAction::Close, &link.evidence, session, &actor, StatusCode::GOOD);
    }
    respond::structure(
        &CloseSessionResponse {
            response_header: request.context.header(),
        },
        out,
    );
    Ok(Progress::Done)
}

/// Cancel (5.7.5): ends what waits for managers, then asks the session's shard for its Publish requests.
pub(super) fn cancel(shared: &Arc<Shared>, link: &Link, request: &Request<'_>) -> Result<Progress, StatusCode> {
    let asked: CancelRequest = request.decode(shared)?;
    let bound = link.bound().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
    let session = bound.session.handle.number();
    let cancelled = shared
        .admission
        .cancel(request.context.now.mono, session, asked.request_handle);
    let reply = super::subscriptions::reply_to(link, request);
    shared.shards.cancel(bound, reply, asked.request_handle, cancelled)?;
    Ok(Progress::HandedOver)
}
