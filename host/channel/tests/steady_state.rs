//! In steady state a message costs no allocation, at either end, in every policy.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use backplane_channel::{
    ChannelIds, ClientChannel, ClientConfig, ClientEvent, ClientSecurity, Event, Limits, Mark, OwnIdentity,
    ServerChannel, ServerConfig,
};
use backplane_crypto::{
    ApplicationCertificateRequest, CertificateChain, SecurityPolicy, SystemRandom, create_application_certificate,
};
use backplane_types::{DateTime, MessageSecurityMode, Now};

fn identity(name: &str) -> Arc<OwnIdentity> {
    let made = create_application_certificate(
        &ApplicationCertificateRequest {
            application_uri: format!("urn:backplane:test:{name}"),
            common_name: name.to_owned(),
            organization: String::new(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            key_bits: 2_048,
            not_before: DateTime::from_unix_nanos(1_790_000_000_000_000_000),
            validity: Duration::from_secs(86_400),
        },
        &mut SystemRandom,
    )
    .unwrap();
    Arc::new(OwnIdentity::new(made.private_key, made.certificate.der(), &[]))
}

struct Pair {
    now: Now,
    server: ServerChannel,
    client: ClientChannel,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Pair {
    fn open(
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        server: &Arc<OwnIdentity>,
        client: &Arc<OwnIdentity>,
    ) -> Self {
        let now = Now::default();
        let config = ServerConfig {
            limits: Limits::default(),
            allowed: vec![(policy, mode)],
        };
        let security = (!policy.is_none()).then(|| ClientSecurity {
            policy,
            mode,
            own: Arc::clone(client),
            server_certificate: server.certificate().clone(),
        });
        let client_config = ClientConfig {
            limits: Limits::default(),
            endpoint_url: "opc.tcp://localhost:4840".into(),
            security,
            requested_lifetime: Duration::from_secs(3_600),
        };
        let mut pair = Self {
            now,
            server: ServerChannel::new(Arc::new(config), Arc::new(ChannelIds::starting_at(1)), now),
            client: ClientChannel::new(client_config, Box::new(SystemRandom), now).unwrap(),
            to_server: Vec::with_capacity(1 << 20),
            to_client: Vec::with_capacity(1 << 20),
        };
        pair.client.connect(now, &mut pair.to_server);
        pair.server.handle_input(now, &mut pair.to_server, &mut pair.to_client);
        pair.to_server.clear();
        pair.receive();
        pair.client.open(now, &mut pair.to_server).unwrap();
        let (_, Event::Open(work)) = pair.server.handle_input(now, &mut pair.to_server, &mut pair.to_client) else {
            panic!("an open");
        };
        pair.to_server.clear();
        let trust = |_: &CertificateChain, _: SecurityPolicy, _: DateTime| Ok(());
        let outcome = work.run(server, &trust, &mut SystemRandom);
        pair.server.handle_opened(now, outcome, &mut pair.to_client).unwrap();
        pair.receive();
        assert!(pair.client.is_open() && pair.server.is_open());
        pair
    }

    /// `count` requests under way at once, each answered with its own bytes from where they lie.
    fn round(&mut self, body: &[u8], count: usize) {
        for _ in 0..count {
            self.client.send(self.now, body, &mut self.to_server).unwrap();
        }
        let mut at = 0;
        let mut answered = 0;
        while at < self.to_server.len() {
            let (consumed, event) = self
                .server
                .handle_input(self.now, &mut self.to_server[at..], &mut self.to_client);
            at += consumed;
            match event {
                Event::Message { request_id, body } => {
                    let mark = Mark::begin(&mut self.to_client);
                    self.to_client.extend_from_slice(&body);
                    self.server
                        .finish_message(self.now, mark, request_id, &mut self.to_client)
                        .unwrap();
                    self.server.recycle(body);
                    answered += 1;
                }
                Event::Progress => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(answered, count);
        self.to_server.clear();
        assert_eq!(self.receive(), count);
    }

    fn receive(&mut self) -> usize {
        let (mut at, mut messages) = (0, 0);
        while at < self.to_client.len() {
            let (consumed, event) = self
                .client
                .handle_input(self.now, &mut self.to_client[at..], &mut self.to_server);
            at += consumed;
            match event {
                ClientEvent::Message { body, .. } => {
                    self.client.recycle(body);
                    messages += 1;
                }
                ClientEvent::Progress | ClientEvent::Acknowledged | ClientEvent::Opened { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        self.to_client.clear();
        messages
    }
}

#[test]
fn a_message_costs_no_allocation() {
    let (server, client) = (identity("server"), identity("client"));
    let mut all = vec![(SecurityPolicy::None, MessageSecurityMode::NONE)];
    for policy in SecurityPolicy::ALL.into_iter().skip(1) {
        all.push((policy, MessageSecurityMode::SIGN));
        all.push((policy, MessageSecurityMode::SIGN_AND_ENCRYPT));
    }
    for (policy, mode) in all {
        let mut pair = Pair::open(policy, mode, &server, &client);
        // One chunk, and three: the reassembly buffer comes back and is used again.
        for (size, count) in [(200, 100), (150_000, 2)] {
            pair.server.set_limits_authenticated();
            let body = vec![1; size];
            pair.round(&body, count);
            pair.round(&body, count);
            let counted = allocation_counter::measure(|| {
                for _ in 0..10 {
                    pair.round(&body, count);
                }
            });
            assert_eq!(counted.count_total, 0, "{policy} {mode:?} {size} bytes: {counted:?}");
        }
    }
}
