//! Clients that die at every step, ten thousand times: nothing of them is left in the server, and nobody else notices.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use backplane_types::{CreateSubscriptionRequest, NodeId, PublishRequest, StatusCode};
use tokio::task::JoinSet;

use crate::support::{
    Peer, Place, Raw, Server, Sleeper, activate_session, alone, body, cached_read, create_session, open, read_status,
    waiting_read, well_behaved,
};

/// Clients that die in all.
const KILLS: usize = 10_000;
/// After so many of them everything is looked at, and the sessions of the dead have ended: memory is compared for as many at a time.
const PART: usize = 1_000;
/// How much more there may be at the end, KiB.
const GROWTH: u64 = 8 * 1_024;
/// Clients at a time.
const TASKS: usize = 16;
/// Requests of a client that sends many and reads nothing.
const PIPELINED: u32 = 1_000;
/// The session timeout of those that die: long enough for their last step on a busy machine.
const SESSION: Duration = Duration::from_secs(2);

/// Room for all sessions that have not timed out yet; new connections as in load tests. With a user that has a password, looking at what is in use
/// is cheap: without, the configuration that is read for it makes a hash, which takes much memory for a moment.
const LIMITS: &str = "sessions = 9000\nconnections = 9100\nsession-timeout-min-ms = 100\n[isolation.rate]\nper-second = 10000\nburst = 20000\n[[users.user]]\nname = \"operator\"\npassword-hash = \"$argon2id$v=19$m=19456,t=2,p=1$D1ENhXSxrDizQSqMqCKQ1g$c5KRuPaGU4SWH+X1jSjz5272i/r5j0ZZa36mEnPv4zs\"";

/// Where in its life a client dies.
#[derive(Clone, Copy, Debug)]
enum Step {
    Connected,
    Greeted,
    /// OpenSecureChannel is sent, its answer not awaited.
    Opening,
    Opened,
    /// Half of a final chunk is sent.
    HalfChunk,
    /// A message has begun.
    Begun,
    /// CreateSession is sent.
    Creating,
    Created,
    /// ActivateSession is sent.
    Activating,
    Activated,
    /// A subscription has Publish requests that wait.
    Parked,
    /// Many Reads are sent, no answer is read.
    Pipelined,
    /// Reads wait for a component.
    Waiting,
}

impl Step {
    const ALL: [Self; 13] = [
        Self::Connected,
        Self::Greeted,
        Self::Opening,
        Self::Opened,
        Self::HalfChunk,
        Self::Begun,
        Self::Creating,
        Self::Created,
        Self::Activating,
        Self::Activated,
        Self::Parked,
        Self::Pipelined,
        Self::Waiting,
    ];

    /// Whether its session is activated when it dies.
    fn has_session(self) -> bool {
        matches!(self, Self::Activated | Self::Parked | Self::Pipelined | Self::Waiting)
    }
}

/// What all clients share.
struct Scene {
    place: Place,
    /// What has to be asked for, if there is a component.
    asked: Option<NodeId>,
    next: AtomicUsize,
    /// Sessions that were certainly activated, and those that may have been.
    activated: AtomicUsize,
    perhaps: AtomicUsize,
}

impl Scene {
    /// One client from its first step to its last.
    async fn live_and_die(&self, number: usize) {
        let step = Step::ALL[number % Step::ALL.len()];
        if matches!(step, Step::Waiting) && self.asked.is_none() {
            return;
        }
        // Of several owners.
        let source = Ipv4Addr::new(127, 0, 0, u8::try_from(1 + number / 7 % 5).unwrap());
        let raw = Raw::connect_from(&self.place, source).await;
        let mut raw = self.live(raw, step).await;
        if step.has_session() {
            self.activated.fetch_add(1, Ordering::Relaxed);
        } else if matches!(step, Step::Activating) {
            self.perhaps.fetch_add(1, Ordering::Relaxed);
        }
        // Every step is met by both ends.
        if (number / Step::ALL.len()).is_multiple_of(2) {
            raw.reset();
        } else {
            raw.finish_sending().await;
        }
    }

    async fn live(&self, mut raw: Raw, step: Step) -> Raw {
        if matches!(step, Step::Connected) {
            return raw;
        }
        raw.greet(&self.place).await;
        if matches!(step, Step::Greeted) {
            return raw;
        }
        if matches!(step, Step::Opening) {
            raw.send_open().await;
            return raw;
        }
        raw.open().await;
        match step {
            Step::Opened => return raw,
            Step::HalfChunk => {
                let chunk = raw.chunk(b"MSGF", 9, &[0; 2_000]);
                raw.send(&chunk[..1_000]).await;
                return raw;
            }
            Step::Begun => {
                for _ in 0..3 {
                    let chunk = raw.chunk(b"MSGC", 9, &[0; 8_000]);
                    raw.send(&chunk).await;
                }
                return raw;
            }
            Step::Creating => {
                raw.request(1, &body(&create_session(&self.place, SESSION))).await;
                return raw;
            }
            _ => {}
        }
        let token = raw.create_session(&self.place, SESSION).await;
        if matches!(step, Step::Created) {
            return raw;
        }
        if matches!(step, Step::Activating) {
            raw.request(2, &body(&activate_session(&token))).await;
            return raw;
        }
        raw.activate_session(&token).await;
        let mut peer = Peer::of(raw, token);
        self.work(&mut peer, step).await;
        peer.raw
    }

    /// What a client with a session begins before it dies.
    async fn work(&self, peer: &mut Peer, step: Step) {
        match step {
            Step::Parked => {
                let subscription = CreateSubscriptionRequest {
                    requested_publishing_interval: 100.0,
                    requested_lifetime_count: 10,
                    requested_max_keep_alive_count: 3,
                    publishing_enabled: true,
                    ..CreateSubscriptionRequest::default()
                };
                assert_eq!(peer.ask(subscription).await.status(), StatusCode::GOOD);
                for _ in 0..5 {
                    peer.send(PublishRequest::default()).await;
                }
                pass(peer).await;
            }
            Step::Pipelined => {
                let mut bytes = Vec::new();
                let mut request = cached_read();
                request.request_header = peer.header(1, 0);
                peer.raw.pipeline(10_000, PIPELINED, &body(&request), &mut bytes);
                peer.raw.send(&bytes).await;
            }
            Step::Waiting => {
                let Some(asked) = &self.asked else { return };
                for handle in 0..8 {
                    peer.send(waiting_read(asked, handle, 0)).await;
                }
                pass(peer).await;
            }
            _ => {}
        }
    }

    /// Clients up to `last`, several at a time.
    async fn kill_up_to(self: &Arc<Self>, last: usize) {
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let scene = Arc::clone(self);
            tasks.spawn(async move {
                loop {
                    let number = scene.next.fetch_add(1, Ordering::Relaxed);
                    if number >= last {
                        return;
                    }
                    scene.live_and_die(number).await;
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        self.next.store(last, Ordering::Relaxed);
    }
}

/// Everything that was sent before has been taken: a Read is answered. Publish responses may come first.
async fn pass(peer: &mut Peer) {
    let id = peer.send(cached_read()).await;
    while peer.answer().await.request != id {}
}

/// A client that behaves while others die: it reads all the time, and visits anew every now and then.
async fn behave(place: Place, stop: Arc<AtomicBool>) -> (usize, Duration) {
    let client = open(&place).await;
    let mut pace = tokio::time::interval(Duration::from_millis(5));
    let (mut reads, mut longest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let start = Instant::now();
        read_status(&client).await.unwrap();
        longest = longest.max(start.elapsed());
        reads += 1;
        if reads % 200 == 0 {
            well_behaved(&place).await;
        }
    }
    client.close_session(true).await.unwrap();
    client.close().await;
    (reads, longest)
}

/// Waits until nothing is left of those that died: no lease but those of `others` connections, and no session.
async fn settle(server: &mut Server, scene: &Scene, others: u64) {
    let activated = scene.activated.load(Ordering::Relaxed);
    let perhaps = scene.perhaps.load(Ordering::Relaxed);
    server
        .usage_until("what dead clients leave", |usage| {
            let idle = ["Handshake", "ReassemblyBytes", "SessionEstablishment", "RequestQueue"];
            let idle = idle
                .iter()
                .chain(&["RequestQueueBytes", "RequestExecution", "ParkedRequest"]);
            let idle = idle.chain(&["requests", "queued"]).all(|name| usage.get(name) == 0);
            idle && usage.get("Connection") == others && usage.get("owners") == others.min(1)
        })
        .await;
    server
        .log_until("sessions of dead clients", |lines| {
            let ended = lines.iter().filter(|line| line.contains("reason=TimedOut")).count();
            assert!(
                ended <= activated + perhaps,
                "{ended} sessions ended, {activated} were activated"
            );
            ended >= activated
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_dead_clients_leave_nothing() {
    let _machine = alone().await;
    let sleeper = Sleeper::start(LIMITS).await;
    let (mut server, asked) = match sleeper {
        Some(Sleeper { server, asked }) => (server, Some(asked)),
        None => (Server::with(LIMITS), None),
    };
    let scene = Arc::new(Scene {
        place: server.place(),
        asked,
        next: AtomicUsize::new(0),
        activated: AtomicUsize::new(0),
        perhaps: AtomicUsize::new(0),
    });
    server.usage_until("an idle server", |usage| usage.is_nothing()).await;
    let files = server.open_files();
    let stop = Arc::new(AtomicBool::new(false));
    let client = tokio::spawn(behave(server.place(), Arc::clone(&stop)));
    let start = Instant::now();
    let mut memory = Vec::new();
    let mut killing = Duration::ZERO;
    for part in 1..=KILLS / PART {
        let start = Instant::now();
        scene.kill_up_to(part * PART).await;
        killing += start.elapsed();
        settle(&mut server, &scene, 1).await;
        memory.push(server.resident_memory());
    }
    let (warm, end) = (memory[0], memory[memory.len() - 1]);
    assert!(end <= warm + GROWTH, "KiB after each {PART} dead clients: {memory:?}");
    stop.store(true, Ordering::Relaxed);
    let (reads, longest) = client.await.unwrap();
    assert!(reads > 100, "the client that behaves made {reads} reads");
    server
        .usage_until("everybody is gone", |usage| usage.is_nothing())
        .await;
    server.files_until(files).await;
    eprintln!(
        "{KILLS} clients died within {killing:?} of {:?}; KiB after each {PART}: {memory:?}; {reads} reads beside, the longest {longest:?}",
        start.elapsed()
    );
}
