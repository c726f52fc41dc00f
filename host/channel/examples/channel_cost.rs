//! Measures what a message costs in the channel, at either end:
//! `cargo run --release -p backplane-channel --example channel_cost [policy]`.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backplane_channel::{
    ChannelIds, ClientChannel, ClientConfig, ClientEvent, ClientSecurity, Event, Limits, Mark, OwnIdentity,
    ServerChannel, ServerConfig,
};
use backplane_crypto::{
    ApplicationCertificateRequest, CertificateChain, SecurityPolicy, SystemRandom, create_application_certificate,
};
use backplane_types::{DateTime, MessageSecurityMode, Now};

/// Messages that are timed together, as many as one turn of a busy connection has, and how often that is repeated: the best
/// counts, so that a busy machine matters less.
const BATCH: usize = 64;
const REPEATS: usize = 20_000;
/// Bytes of the body of a Read of one value, and of its response.
const REQUEST: usize = 128;
const RESPONSE: usize = 90;

fn main() -> Result<(), Box<dyn Error>> {
    let server = identity("server")?;
    let client = identity("client")?;
    let only = std::env::args().nth(1);
    for (policy, mode) in [
        (SecurityPolicy::None, MessageSecurityMode::NONE),
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN),
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN_AND_ENCRYPT),
        (
            SecurityPolicy::Aes128Sha256RsaOaep,
            MessageSecurityMode::SIGN_AND_ENCRYPT,
        ),
    ] {
        if only.as_deref().is_some_and(|only| only != policy.name()) {
            continue;
        }
        let mut pair = Pair::open(policy, mode, &server, &client)?;
        for (request, response) in [(REQUEST, RESPONSE), (176, 176)] {
            let best = pair.measure(request, response)?;
            let [request_seal, request_open, response_seal, response_open] =
                best.map(|best| best.as_secs_f64() * 1e9 / BATCH as f64);
            println!(
                "{policy} {mode:?}, {request} bytes and {response}: client seals {request_seal:.0} ns, server opens \
                 {request_open:.0}, server seals {response_seal:.0}, client opens {response_open:.0}; server in all {:.0}",
                request_open + response_seal
            );
        }
    }
    Ok(())
}

fn identity(name: &str) -> Result<Arc<OwnIdentity>, Box<dyn Error>> {
    let made = create_application_certificate(
        &ApplicationCertificateRequest {
            application_uri: format!("urn:backplane:measure:{name}"),
            common_name: name.to_owned(),
            organization: String::new(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            key_bits: 2_048,
            not_before: DateTime::from_unix_nanos(1_790_000_000_000_000_000),
            validity: Duration::from_secs(86_400),
        },
        &mut SystemRandom,
    )?;
    Ok(Arc::new(OwnIdentity::new(
        made.private_key,
        made.certificate.der(),
        &[],
    )))
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
    ) -> Result<Self, Box<dyn Error>> {
        let now = Now::default();
        let config = ServerConfig {
            limits: Limits::default(),
            allowed: vec![(policy, mode)],
        };
        let client_config = ClientConfig {
            limits: Limits::default(),
            endpoint_url: "opc.tcp://localhost:4840".into(),
            security: (!policy.is_none()).then(|| ClientSecurity {
                policy,
                mode,
                own: Arc::clone(client),
                server_certificate: server.certificate().clone(),
            }),
            requested_lifetime: Duration::from_secs(3_600),
        };
        let mut pair = Self {
            now,
            server: ServerChannel::new(Arc::new(config), Arc::new(ChannelIds::starting_at(1)), now),
            client: ClientChannel::new(client_config, Box::new(SystemRandom), now)?,
            to_server: Vec::with_capacity(1 << 20),
            to_client: Vec::with_capacity(1 << 20),
        };
        pair.client.connect(now, &mut pair.to_server);
        pair.server.handle_input(now, &mut pair.to_server, &mut pair.to_client);
        pair.to_server.clear();
        pair.client.handle_input(now, &mut pair.to_client, &mut pair.to_server);
        pair.to_client.clear();
        pair.client.open(now, &mut pair.to_server)?;
        let (_, Event::Open(work)) = pair.server.handle_input(now, &mut pair.to_server, &mut pair.to_client) else {
            return Err("no OpenSecureChannel".into());
        };
        let trust = |_: &CertificateChain, _: SecurityPolicy, _: DateTime| Ok(());
        let outcome = work.run(server, &trust, &mut SystemRandom);
        pair.to_server.clear();
        pair.server
            .handle_opened(now, outcome, &mut pair.to_client)
            .map_err(|closed| format!("{closed:?}"))?;
        pair.client.handle_input(now, &mut pair.to_client, &mut pair.to_server);
        pair.to_client.clear();
        Ok(pair)
    }

    /// The best times of a batch: requests sealed, opened, responses sealed, opened.
    fn measure(&mut self, request: usize, response: usize) -> Result<[Duration; 4], Box<dyn Error>> {
        let (request, response) = (vec![7; request], vec![8; response]);
        let mut best = [Duration::MAX; 4];
        for _ in 0..REPEATS {
            let times = [
                self.seal_requests(&request)?,
                self.open_requests()?,
                self.seal_responses(&response)?,
                self.open_responses()?,
            ];
            for (best, time) in best.iter_mut().zip(times) {
                *best = time.min(*best);
            }
        }
        Ok(best)
    }

    fn seal_requests(&mut self, body: &[u8]) -> Result<Duration, Box<dyn Error>> {
        let started = Instant::now();
        for _ in 0..BATCH {
            let mark = Mark::begin(&mut self.to_server);
            self.to_server.extend_from_slice(body);
            self.client.finish_message(self.now, mark, &mut self.to_server)?;
        }
        Ok(started.elapsed())
    }

    fn open_requests(&mut self) -> Result<Duration, Box<dyn Error>> {
        let started = Instant::now();
        let mut rest = self.to_server.as_mut_slice();
        while !rest.is_empty() {
            let (consumed, event) = self.server.handle_input(self.now, rest, &mut self.to_client);
            let Event::Message { body, .. } = event else {
                return Err(format!("{event:?}").into());
            };
            black_box(&body);
            rest = rest.split_at_mut(consumed).1;
        }
        let time = started.elapsed();
        self.to_server.clear();
        Ok(time)
    }

    fn seal_responses(&mut self, body: &[u8]) -> Result<Duration, Box<dyn Error>> {
        let started = Instant::now();
        for _ in 0..BATCH {
            let mark = Mark::begin(&mut self.to_client);
            self.to_client.extend_from_slice(body);
            self.server.finish_message(self.now, mark, 7, &mut self.to_client)?;
        }
        Ok(started.elapsed())
    }

    fn open_responses(&mut self) -> Result<Duration, Box<dyn Error>> {
        let started = Instant::now();
        let mut rest = self.to_client.as_mut_slice();
        while !rest.is_empty() {
            let (consumed, event) = self.client.handle_input(self.now, rest, &mut self.to_server);
            let ClientEvent::Message { body, .. } = event else {
                return Err(format!("{event:?}").into());
            };
            black_box(&body);
            rest = rest.split_at_mut(consumed).1;
        }
        let time = started.elapsed();
        self.to_client.clear();
        Ok(time)
    }
}
