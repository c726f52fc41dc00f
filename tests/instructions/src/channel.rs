//! Two ends of a secure channel without a socket between them.

use std::sync::Arc;
use std::time::Duration;

use backplane_channel::{
    ChannelIds, ClientChannel, ClientConfig, ClientEvent, ClientSecurity, Event, Limits, OwnIdentity, ServerChannel,
    ServerConfig,
};
use backplane_crypto::{CertificateChain, PrivateKey, SecurityPolicy, SystemRandom};
use backplane_types::{DateTime, MessageSecurityMode};

use crate::measure::{Key, Keys};
use crate::world::now;

/// A client and a server.
pub(crate) struct Pair {
    server: ServerChannel,
    client: ClientChannel,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

fn identity(key: &Key) -> Result<Arc<OwnIdentity>, String> {
    let private = PrivateKey::from_pem_or_der(&key.private).map_err(|error| error.to_string())?;
    Ok(Arc::new(OwnIdentity::new(private, &key.certificate, &[])))
}

impl Pair {
    /// An open channel. `policy` other than None signs and encrypts.
    pub(crate) fn open(policy: SecurityPolicy, keys: &Keys) -> Result<Self, String> {
        let (identity, own) = (identity(&keys.server)?, identity(&keys.client)?);
        let mode = if policy.is_none() {
            MessageSecurityMode::NONE
        } else {
            MessageSecurityMode::SIGN_AND_ENCRYPT
        };
        let config = ServerConfig {
            limits: Limits::default(),
            allowed: vec![(policy, mode)],
        };
        let security = (!policy.is_none()).then(|| ClientSecurity {
            policy,
            mode,
            own,
            server_certificate: identity.certificate().clone(),
        });
        let client = ClientConfig {
            limits: Limits::default(),
            endpoint_url: "opc.tcp://localhost:4840".into(),
            security,
            requested_lifetime: Duration::from_secs(3_600),
        };
        let mut pair = Self {
            server: ServerChannel::new(Arc::new(config), Arc::new(ChannelIds::starting_at(1)), now()),
            client: ClientChannel::new(client, Box::new(SystemRandom), now()).map_err(|error| error.to_string())?,
            to_server: Vec::with_capacity(1 << 16),
            to_client: Vec::with_capacity(1 << 16),
        };
        pair.shake_hands(&identity)?;
        pair.server.set_limits_authenticated();
        Ok(pair)
    }

    fn shake_hands(&mut self, identity: &OwnIdentity) -> Result<(), String> {
        self.client.connect(now(), &mut self.to_server);
        self.server
            .handle_input(now(), &mut self.to_server, &mut self.to_client);
        self.to_server.clear();
        self.receive();
        self.client
            .open(now(), &mut self.to_server)
            .map_err(|error| error.to_string())?;
        let (_, event) = self
            .server
            .handle_input(now(), &mut self.to_server, &mut self.to_client);
        let Event::Open(work) = event else {
            return Err("the channel did not open".to_owned());
        };
        self.to_server.clear();
        let trust = |_: &CertificateChain, _: SecurityPolicy, _: DateTime| Ok(());
        let outcome = work.run(identity, &trust, &mut SystemRandom);
        let opened = self.server.handle_opened(now(), outcome, &mut self.to_client);
        opened.map_err(|closed| format!("{closed:?}"))?;
        self.receive();
        if self.client.is_open() && self.server.is_open() {
            Ok(())
        } else {
            Err("the channel did not open".to_owned())
        }
    }

    fn receive(&mut self) {
        let mut rest = self.to_client.as_mut_slice();
        while !rest.is_empty() {
            let (consumed, event) = self.client.handle_input(now(), rest, &mut self.to_server);
            if let ClientEvent::Message { body, .. } = event {
                self.client.recycle(body);
            }
            let Some((_, after)) = std::mem::take(&mut rest).split_at_mut_checked(consumed.max(1)) else {
                break;
            };
            rest = after;
        }
        self.to_client.clear();
    }

    /// Seals a message at the client, and opens it at the server.
    ///
    /// # Panics
    /// If it does not arrive: a measure of something else would be worse.
    pub(crate) fn pass(&mut self, body: &[u8]) {
        self.to_server.clear();
        let sent = self.client.send(now(), body, &mut self.to_server);
        assert!(sent.is_ok(), "{sent:?}");
        let (_, event) = self
            .server
            .handle_input(now(), &mut self.to_server, &mut self.to_client);
        let Event::Message { body: received, .. } = event else {
            panic!("{event:?}");
        };
        assert_eq!(received.len(), body.len());
        self.server.recycle(received);
    }
}
