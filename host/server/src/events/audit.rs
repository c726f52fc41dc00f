//! Audit events (Part 4, 6.5; Part 5, 6.4.3 to 6.4.28): who opened a channel, took a session, wrote a value, called a method.
//!
//! Owns which event tells of which service. Nothing is made unless auditing is on and somebody listens; only security administrators on encrypted
//! channels see it.

use std::sync::Arc;

use backplane_channel::ChannelEvidence;
use backplane_nodes::Caller;
use backplane_session::EventBuilder;
use backplane_types::service::RequestKind;
use backplane_types::{
    BinaryDecode, CallMethodRequest, CallMethodResult, Decoder, NodeId, StatusCode, UaString, Variant, WriteValue, ids,
};

use crate::shard::Audience;
use crate::shared::Shared;

/// Severity of what was allowed, and of what was refused.
const SEVERITY: (u16, u16) = (100, 500);

/// Who acted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actor {
    /// ClientUserId.
    pub(crate) user: UaString,
    /// ClientAuditEntryId: how the client's own log names the action.
    pub(crate) entry: UaString,
}

impl Actor {
    /// The user of a session.
    pub(crate) fn of(caller: &Caller, entry: Option<&str>) -> Self {
        Self {
            user: caller.user.as_deref().map_or(UaString::NULL, UaString::from),
            entry: UaString::from(entry),
        }
    }
}

/// A session service that is audited.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SessionAction {
    Create,
    Activate,
    Close,
}

impl Shared {
    /// Whether audit events are made. To be asked before anything is prepared for one.
    pub(crate) fn audits(&self) -> bool {
        self.events.auditing && self.shards.anybody_listens()
    }

    /// A channel was opened, or was not.
    pub(crate) fn audit_channel(&self, evidence: Option<&ChannelEvidence>, status: StatusCode) {
        let actor = Actor {
            user: "System/OpenSecureChannel".into(),
            entry: UaString::NULL,
        };
        let kind = ids::object_type::AUDIT_OPEN_SECURE_CHANNEL_EVENT_TYPE;
        self.audit(
            kind,
            server(),
            "SecureChannel/OpenSecureChannel",
            &actor,
            status,
            |event| {
                let event = event.field("StatusCodeId", status);
                let Some(evidence) = evidence else { return event };
                event
                    .field("SecureChannelId", evidence.channel_id.to_string())
                    .field("ClientCertificate", evidence.client_certificate.clone())
                    .field("SecurityPolicyUri", evidence.policy.uri())
                    .field("SecurityMode", evidence.mode.0)
            },
        );
    }

    /// A session was created, activated or closed, or was not.
    pub(crate) fn audit_session(
        &self,
        action: SessionAction,
        evidence: &ChannelEvidence,
        session: &NodeId,
        actor: &Actor,
        status: StatusCode,
    ) {
        let (kind, service) = match action {
            SessionAction::Create => (
                ids::object_type::AUDIT_CREATE_SESSION_EVENT_TYPE,
                "Session/CreateSession",
            ),
            SessionAction::Activate => (
                ids::object_type::AUDIT_ACTIVATE_SESSION_EVENT_TYPE,
                "Session/ActivateSession",
            ),
            SessionAction::Close => (ids::object_type::AUDIT_SESSION_EVENT_TYPE, "Session/CloseSession"),
        };
        self.audit(kind, server(), service, actor, status, |event| {
            let event = event.field("StatusCodeId", status).field("SessionId", session.clone());
            match action {
                SessionAction::Create => event
                    .field("SecureChannelId", evidence.channel_id.to_string())
                    .field("ClientCertificate", evidence.client_certificate.clone()),
                SessionAction::Activate => event.field("SecureChannelId", evidence.channel_id.to_string()),
                SessionAction::Close => event,
            }
        });
    }

    /// A Write or a Call was answered: one event for each operation. `body` and `answer` are what follows the headers; none is the answer of
    /// one that failed as a whole, with `status`.
    pub(crate) fn audit_operations(
        &self,
        kind: RequestKind,
        actor: &Actor,
        body: &[u8],
        answer: Option<&[u8]>,
        status: StatusCode,
    ) {
        match kind {
            RequestKind::Write => {
                let writes: Vec<WriteValue> = self.decoded(body);
                let results: Vec<StatusCode> = answer.map(|bytes| self.decoded(bytes)).unwrap_or_default();
                let results = results.into_iter().chain(std::iter::repeat(status));
                for (write, status) in writes.into_iter().zip(results) {
                    self.audit_write(actor, write, status);
                }
            }
            RequestKind::Call => {
                let calls: Vec<CallMethodRequest> = self.decoded(body);
                let results: Vec<CallMethodResult> = answer.map(|bytes| self.decoded(bytes)).unwrap_or_default();
                let results = results.into_iter().map(|result| result.status_code);
                for (call, status) in calls.into_iter().zip(results.chain(std::iter::repeat(status))) {
                    self.audit_call(actor, call, status);
                }
            }
            _ => {}
        }
    }

    fn audit_write(&self, actor: &Actor, write: WriteValue, status: StatusCode) {
        let kind = ids::object_type::AUDIT_WRITE_UPDATE_EVENT_TYPE;
        self.audit(kind, write.node_id, "Attribute/Write", actor, status, |event| {
            event
                .field("AttributeId", write.attribute_id)
                .field("IndexRange", write.index_range)
                .field("NewValue", write.value.value)
        });
    }

    fn audit_call(&self, actor: &Actor, call: CallMethodRequest, status: StatusCode) {
        let kind = ids::object_type::AUDIT_UPDATE_METHOD_EVENT_TYPE;
        self.audit(kind, call.object_id, "Attribute/Call", actor, status, |event| {
            event
                .field("MethodId", call.method_id)
                .field("InputArguments", Variant::from(call.input_arguments))
        });
    }

    fn decoded<T: BinaryDecode>(&self, bytes: &[u8]) -> Vec<T> {
        // What could not be decoded was answered with a fault; then there are no operations to tell of.
        Vec::<T>::decode(&mut Decoder::new(bytes, self.decode_limits)).unwrap_or_default()
    }

    fn audit(
        &self,
        kind: u32,
        source: NodeId,
        name: &str,
        actor: &Actor,
        status: StatusCode,
        fill: impl FnOnce(EventBuilder) -> EventBuilder,
    ) {
        let now = self.clock.now().utc;
        let uri = Arc::clone(&self.events.server_uri);
        self.raise(&NodeId::numeric(0, kind), &source, Audience::Auditors, |event| {
            let failed = status.is_bad();
            let event = event
                .message(format!("{name}: {status}"))
                .severity(if failed { SEVERITY.1 } else { SEVERITY.0 })
                .field("SourceName", name)
                .field("ActionTimeStamp", now)
                .field("Status", !failed)
                .field("ServerId", &*uri)
                .field("ClientAuditEntryId", actor.entry.clone())
                .field("ClientUserId", actor.user.clone());
            fill(event)
        });
    }
}

fn server() -> NodeId {
    NodeId::numeric(0, ids::object::SERVER)
}
