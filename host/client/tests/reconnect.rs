//! A client whose connection breaks goes on with its channel over a new one, against a server that keeps channels beside connections.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use backplane_channel::{
    ChannelEvidence, ChannelIds, ClientSecurity, Closed, DetachedChannel, Event, Limits, OpenOutcome, OpenWork,
    OwnIdentity, Reattachment, ServerChannel, ServerConfig,
};
use backplane_client::{Client, ClientError, OldConnection, Options};
use backplane_crypto::{
    ApplicationCertificateRequest, CertificateChain, SecurityPolicy, SystemRandom, create_application_certificate,
};
use backplane_types::{DateTime, MessageSecurityMode, Now, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

fn identity(cell: &'static OnceLock<Arc<OwnIdentity>>, name: &str) -> Arc<OwnIdentity> {
    Arc::clone(cell.get_or_init(|| {
        let made = create_application_certificate(
            &ApplicationCertificateRequest {
                application_uri: format!("urn:backplane:test:{name}"),
                common_name: name.to_owned(),
                organization: String::new(),
                dns_names: vec!["localhost".to_owned()],
                ip_addresses: Vec::new(),
                key_bits: 2_048,
                not_before: DateTime::from_unix_nanos(1_790_000_000_000_000_000),
                validity: Duration::from_secs(365 * 86_400),
            },
            &mut SystemRandom,
        )
        .unwrap();
        Arc::new(OwnIdentity::new(made.private_key, made.certificate.der(), &[]))
    }))
}

fn server_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "server")
}

fn client_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "client")
}

fn trust(_: &CertificateChain, _: SecurityPolicy, _: DateTime) -> Result<(), backplane_crypto::CertificateError> {
    Ok(())
}

/// Asks a connection to let its channel go.
type Leave = (
    Reattachment,
    oneshot::Sender<Result<(Reattachment, DetachedChannel), OpenOutcome>>,
);

enum Place {
    Connected(Arc<ChannelEvidence>, UnboundedSender<Leave>),
    Detached(DetachedChannel),
}

/// Every channel and where it is.
struct Directory {
    start: Instant,
    ids: Arc<ChannelIds>,
    places: Mutex<HashMap<u32, Place>>,
}

impl Directory {
    fn now(&self) -> Now {
        Now::new(self.start.elapsed(), DateTime::from_system_time(SystemTime::now()))
    }

    /// Lets a request for a channel of another connection through, or refuses it.
    async fn reattach(&self, id: u32, work: OpenWork) -> OpenOutcome {
        let found = match self.places.lock().unwrap().get(&id) {
            Some(Place::Connected(evidence, leave)) => Some((Arc::clone(evidence), Some(leave.clone()))),
            Some(Place::Detached(detached)) => Some((Arc::clone(detached.evidence()), None)),
            None => None,
        };
        let own = server_identity();
        let Some((evidence, leave)) = found else {
            return work.run(&own, &trust, &mut SystemRandom);
        };
        let mut reattachment = match work.verify(&evidence, &own, &trust, &mut SystemRandom) {
            Ok(verified) => verified,
            Err(refusal) => return refusal,
        };
        if let Some(leave) = leave {
            let (reply, answer) = oneshot::channel();
            match leave.send((reattachment, reply)) {
                Ok(()) => match answer.await.unwrap() {
                    Ok((reattachment, detached)) => {
                        return reattachment.complete(self.now(), detached, &own, &mut SystemRandom);
                    }
                    Err(refusal) => return refusal,
                },
                // It has left its channel behind in the meantime.
                Err(unsent) => reattachment = unsent.0.0,
            }
        }
        let mut places = self.places.lock().unwrap();
        match places.remove(&id) {
            Some(Place::Detached(detached)) => match detached.admits(self.now(), &reattachment) {
                Ok(()) => reattachment.complete(self.now(), detached, &own, &mut SystemRandom),
                Err(error) => {
                    places.insert(id, Place::Detached(detached));
                    reattachment.refuse(error)
                }
            },
            _ => reattachment.refuse_unknown(),
        }
    }
}

async fn serve() -> (String, Arc<Directory>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("opc.tcp://{}", listener.local_addr().unwrap());
    let directory = Arc::new(Directory {
        start: Instant::now(),
        ids: Arc::new(ChannelIds::starting_at(1)),
        places: Mutex::default(),
    });
    let shared = Arc::clone(&directory);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&shared)));
        }
    });
    (url, directory)
}

async fn connection(stream: TcpStream, directory: Arc<Directory>) {
    let mut allowed = vec![(SecurityPolicy::None, MessageSecurityMode::NONE)];
    for policy in SecurityPolicy::ALL.into_iter().skip(1) {
        allowed.push((policy, MessageSecurityMode::SIGN));
        allowed.push((policy, MessageSecurityMode::SIGN_AND_ENCRYPT));
    }
    let config = Arc::new(ServerConfig {
        limits: Limits::default(),
        allowed,
    });
    let mut channel = ServerChannel::new(config, Arc::clone(&directory.ids), directory.now());
    let (leave, mut leaving) = unbounded_channel();
    turns(stream, &mut channel, &directory, &leave, &mut leaving).await;
    // Nobody is asked any more before the channel is where it will be looked for.
    let mut places = directory.places.lock().unwrap();
    drop(leave);
    leaving.close();
    let mut detached = channel.detach();
    while let Ok((reattachment, reply)) = leaving.try_recv() {
        let admitted = detached.take_if(|detached| detached.admits(directory.now(), &reattachment).is_ok());
        drop(reply.send(match admitted {
            Some(detached) => Ok((reattachment, detached)),
            None => Err(reattachment.refuse_unknown()),
        }));
    }
    if let Some(detached) = detached {
        places.insert(detached.evidence().channel_id, Place::Detached(detached));
    }
}

async fn turns(
    mut stream: TcpStream,
    channel: &mut ServerChannel,
    directory: &Arc<Directory>,
    leave: &UnboundedSender<Leave>,
    leaving: &mut UnboundedReceiver<Leave>,
) {
    let (mut input, mut out) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            got = stream.read_buf(&mut input) => if got.unwrap_or(0) == 0 { return },
            Some((reattachment, reply)) = leaving.recv() => {
                let answer = match channel.admits(directory.now(), &reattachment) {
                    Ok(()) => Ok((reattachment, channel.detach().unwrap())),
                    Err(error) => Err(reattachment.refuse(error)),
                };
                let left = answer.is_ok();
                drop(reply.send(answer));
                if left {
                    return;
                }
            }
        }
        let mut at = 0;
        loop {
            let (consumed, event) = channel.handle_input(directory.now(), &mut input[at..], &mut out);
            at += consumed;
            match event {
                Event::NeedMore { .. } | Event::Opening => break,
                Event::Open(work) => {
                    let outcome = match work.reattaches() {
                        Some(id) => directory.reattach(id, *work).await,
                        None => work.run(&server_identity(), &trust, &mut SystemRandom),
                    };
                    if channel.handle_opened(directory.now(), outcome, &mut out).is_ok() {
                        let evidence = Arc::clone(channel.evidence().unwrap());
                        let place = Place::Connected(Arc::clone(&evidence), leave.clone());
                        directory.places.lock().unwrap().insert(evidence.channel_id, place);
                    }
                }
                // What is to be held is never answered.
                Event::Message { body, .. } if *body == *b"hold" => {}
                Event::Message { request_id, body } => {
                    channel.send(directory.now(), request_id, &body, &mut out).unwrap();
                }
                Event::Closed(_) => {
                    drop(stream.write_all(&out).await);
                    return;
                }
                Event::Progress | Event::Aborted { .. } => {}
            }
        }
        input.drain(..at);
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out.clear();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_goes_on_over_one_connection_after_another() {
    for (policy, mode) in [
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN_AND_ENCRYPT),
        (SecurityPolicy::Aes128Sha256RsaOaep, MessageSecurityMode::SIGN),
        (
            SecurityPolicy::Aes256Sha256RsaPss,
            MessageSecurityMode::SIGN_AND_ENCRYPT,
        ),
    ] {
        let (url, directory) = serve().await;
        let options = Options::new(&url).secured(ClientSecurity {
            policy,
            mode,
            own: client_identity(),
            server_certificate: server_identity().certificate().clone(),
        });
        let client = Arc::new(Client::connect(options).await.unwrap());
        for old in [
            OldConnection::Unnoticed,
            OldConnection::Closed,
            OldConnection::Closed,
            OldConnection::Unnoticed,
        ] {
            let waiting = Arc::clone(&client);
            let held = tokio::spawn(async move { waiting.call_raw(b"hold".to_vec()).await });
            assert_eq!(client.call_raw(b"before".to_vec()).await.unwrap(), b"before");
            client.reconnect(old).await.unwrap();
            let lost = held.await.unwrap();
            // Sent before the connection was left, or never.
            assert!(
                matches!(lost, Err(ClientError::Disconnected | ClientError::Timeout)),
                "{lost:?}"
            );
            assert_eq!(client.call_raw(vec![7; 100_000]).await.unwrap(), vec![7; 100_000]);
            client.renew().await.unwrap();
            assert_eq!(client.call_raw(b"after".to_vec()).await.unwrap(), b"after");
        }
        assert_eq!(directory.places.lock().unwrap().len(), 1, "one channel all the time");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_security_the_server_wants_a_new_channel() {
    let (url, _) = serve().await;
    let client = Client::connect(Options::new(&url)).await.unwrap();
    let error = client.reconnect(OldConnection::Unnoticed).await.unwrap_err();
    let ClientError::Closed(Closed::PeerError { status, .. }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(status, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    assert!(client.call_raw(b"gone".to_vec()).await.is_err());
    let again = Client::connect(Options::new(&url)).await.unwrap();
    assert_eq!(again.call_raw(b"new".to_vec()).await.unwrap(), b"new");
}
