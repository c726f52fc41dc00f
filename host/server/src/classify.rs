//! The classifiers: components that say whose a peer's work is, asked when what is known of a peer changes.
//!
//! Owns the translation between what the server knows and what a component is shown. A classifier that fails is an error,
//! never "no opinion".

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use backplane_channel::ChannelEvidence;
use backplane_crypto::Certificate;
use backplane_plugin::{
    Classifier, ClassifyError, ClientCertificate, PeerEvidence, PluginHost, SessionEvidence, Standing, Verdict,
};
use backplane_queue::isolation::Class;
use backplane_session::{IdentityKind, ValidatedSession};
use backplane_types::UserTokenType;
use tokio::sync::watch;

use crate::roles;

/// What a classifier answers.
#[derive(Debug)]
pub(crate) struct Opinion {
    /// The owner, without prefix.
    pub(crate) key: String,
    /// On what ground.
    pub(crate) class: Class,
}

impl From<Verdict> for Opinion {
    fn from(verdict: Verdict) -> Self {
        Self {
            key: verdict.key,
            class: match verdict.class {
                Standing::Bootstrap => Class::Bootstrap,
                Standing::Established => Class::Established,
                Standing::Reconnect => Class::Reconnect,
                Standing::Trusted => Class::Trusted,
                Standing::Control => Class::Control,
            },
        }
    }
}

/// All classifiers of a server; none before the plugins are there.
#[derive(Debug)]
pub(crate) struct Classifiers {
    chain: OnceLock<Classifier>,
    /// What is listened to before the plugins are there.
    nobody: watch::Sender<u64>,
}

impl Default for Classifiers {
    fn default() -> Self {
        Self {
            chain: OnceLock::new(),
            nobody: watch::Sender::new(0),
        }
    }
}

impl Classifiers {
    /// From now on the classifiers among these plugins are asked. To be called once, before connections are accepted.
    pub(crate) fn ask(&self, plugins: &PluginHost) {
        self.chain.get_or_init(|| plugins.classifier());
    }

    /// Changes when what a classifier says may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        match self.chain.get() {
            Some(chain) => chain.subscribe(),
            None => self.nobody.subscribe(),
        }
    }

    /// Counts those changes.
    pub(crate) fn generation(&self) -> u64 {
        self.chain.get().map_or(0, Classifier::generation)
    }

    fn configured(&self) -> Option<&Classifier> {
        self.chain.get().filter(|chain| chain.is_configured())
    }

    /// What is said of an address before anything else is known.
    ///
    /// # Errors
    /// When a classifier failed.
    pub(crate) async fn ingress(&self, peer: IpAddr) -> Result<Option<Opinion>, ClassifyError> {
        match self.configured() {
            Some(chain) => Ok(chain.ingress(Some(peer)).await?.map(Opinion::from)),
            None => Ok(None),
        }
    }

    /// What is said of an open channel, and a live session on it.
    ///
    /// # Errors
    /// When a classifier failed.
    pub(crate) async fn established(
        &self,
        peer: IpAddr,
        channel: &ChannelEvidence,
        session: Option<&ValidatedSession>,
    ) -> Result<Option<Opinion>, ClassifyError> {
        let Some(chain) = self.configured() else {
            return Ok(None);
        };
        let mut evidence = PeerEvidence::of_channel(
            Some(peer),
            channel.policy.uri().into(),
            channel.mode,
            certificate(channel),
        );
        if let Some(session) = session {
            evidence = evidence
                .with_endpoint_url(session.handle.parameters().endpoint_url.text().into())
                .with_session(shown(session));
        }
        Ok(chain.established(&Arc::new(evidence)).await?.map(Opinion::from))
    }
}

fn certificate(channel: &ChannelEvidence) -> Option<ClientCertificate> {
    let der = channel.client_certificate.bytes();
    let certificate = Certificate::parse(der).ok()?;
    let uri = certificate.application_uri().map(Arc::from);
    Some(ClientCertificate::new(der.into(), certificate.thumbprint(), uri))
}

fn shown(session: &ValidatedSession) -> SessionEvidence {
    let identity = &session.snapshot.identity;
    let user = identity.client_user_id.text();
    SessionEvidence {
        pseudonym: session.handle.number().to_string().into(),
        token_type: match identity.kind {
            IdentityKind::Anonymous => UserTokenType::ANONYMOUS,
            IdentityKind::UserName => UserTokenType::USER_NAME,
            IdentityKind::Certificate => UserTokenType::CERTIFICATE,
            IdentityKind::IssuedToken => UserTokenType::ISSUED_TOKEN,
        },
        user: (!user.is_empty()).then(|| user.into()),
        roles: session.snapshot.roles.iter().map(roles::name).collect(),
    }
}
