//! Classifiers: whose work is whose, as a component says, and what becomes of live sessions when it says something else or nothing any more.

use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use backplane_types::{CreateSubscriptionRequest, PublishRequest, RequestHeader, StatusCode};

use crate::support::{
    Answer, Flood, Latency, PATIENCE, Peer, Raw, Server, activate_session, alone, body, cached_read, hello, latency,
    well_behaved, with_guests,
};

/// Everybody else is at 127.0.0.1.
const PLANT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const NETWORK: &str = "classifier-network";
/// Publish requests that the trusted owner may park, and anybody else.
const TRUSTED_ROOM: usize = 6;
const ROOM: usize = 2;
const HANDLE: u32 = 9;
/// Floods of other tests take the processors of a small machine from a classifier as well; its deadline is the matter of one test only.
const UNHURRIED: &str = "classify = { cpu = \"2s\", wall = \"10s\" }";
/// Between two looks for something that takes a moment.
const LOOK: Duration = Duration::from_millis(50);

/// `[limits]` with a trusted owner, its floors and some more in the stages that these tests look at.
fn limits() -> String {
    let stage = "[[isolation.stage]]\nstage = \"ParkedRequest\"\nowner-hard-limit = 2\n";
    let reservation = |stage: &str, reserved: usize| {
        format!(
            "[[isolation.trusted-owner.reservation]]\nstage = \"{stage}\"\nreserved = {reserved}\nhard-limit = {reserved}\n"
        )
    };
    format!(
        "sessions = 8\nconnections = 20\nreassembly-bytes = 300000000\n[isolation]\nprofile = \"TrustedReservations\"\n{stage}[[isolation.trusted-owner]]\nkey = \"plant\"\n{}{}",
        reservation("ParkedRequest", TRUSTED_ROOM),
        reservation("Connection", 3),
    )
}

/// Settings of the classifier: networks with their keys and standings, and its limits.
fn settings(networks: &[(&str, &str, &str)], limits: &str) -> String {
    let entries = networks.iter().map(|(network, key, standing)| {
        format!("{{ network = \"{network}\", key = \"{key}\", standing = \"{standing}\" }}, ")
    });
    let entries: String = entries.collect();
    format!("kind = \"isolation-classifier\"\n[settings]\nnetworks = [ {entries}]\n[limits]\n{limits}\n")
}

/// Replaces a file beside the components in one step.
fn replace(server: &Server, name: &str, content: impl AsRef<[u8]>) {
    let made = server.folder().join("made");
    fs::write(&made, content).unwrap();
    fs::rename(&made, server.folder().join("plugins").join(name)).unwrap();
}

fn map(server: &Server, networks: &[(&str, &str, &str)]) {
    replace(server, "classifier-network.toml", settings(networks, UNHURRIED));
}

/// A peer with a subscription that says nothing for a long time.
async fn subscriber(server: &Server, source: Ipv4Addr) -> Peer {
    let mut peer = Peer::from(server, source).await;
    let subscription = CreateSubscriptionRequest {
        requested_publishing_interval: 60_000.0,
        requested_lifetime_count: 1_000,
        requested_max_keep_alive_count: 100,
        publishing_enabled: true,
        ..CreateSubscriptionRequest::default()
    };
    assert_eq!(peer.ask(subscription).await.status(), StatusCode::GOOD);
    peer
}

/// How many Publish requests the peer's owner may park: they are parked until one is refused, then taken back.
async fn room(peer: &mut Peer) -> usize {
    let mut parked = 0;
    loop {
        let publish = peer
            .send(PublishRequest {
                request_header: RequestHeader {
                    request_handle: HANDLE,
                    ..RequestHeader::default()
                },
                ..PublishRequest::default()
            })
            .await;
        // One that is refused is answered before the next request.
        let read = peer.send(cached_read()).await;
        let answer = peer.answer().await;
        if answer.request == publish {
            assert_eq!(answer.status(), StatusCode::BAD_SERVER_TOO_BUSY);
            assert_eq!(peer.answer().await.request, read);
            break;
        }
        assert_eq!(answer.request, read);
        parked += 1;
        assert!(parked <= 2 * TRUSTED_ROOM, "there is no limit");
    }
    let (count, mut ended) = peer.cancel(HANDLE).await;
    assert_eq!(count as usize, parked);
    while ended.len() < parked {
        ended.push(peer.answer().await);
    }
    let cancelled = |answer: &Answer| answer.status() == StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST;
    assert!(ended.iter().all(cancelled), "{ended:?}");
    parked
}

/// Looks until a peer's owner has that much room.
async fn until_room(peer: &mut Peer, wanted: usize) {
    let start = Instant::now();
    loop {
        let found = room(peer).await;
        if found == wanted {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "room for {found}, not for {wanted}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Looks with one new peer after the other until their owner has that much room.
async fn until_new_have_room(server: &Server, source: Ipv4Addr, wanted: usize) {
    let start = Instant::now();
    loop {
        let mut peer = subscriber(server, source).await;
        let found = room(&mut peer).await;
        peer.close().await;
        if found == wanted {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "room for {found}, not for {wanted}");
        tokio::time::sleep(LOOK).await;
    }
}

#[tokio::test]
async fn a_live_session_may_lose_at_once_and_gains_with_its_next_activation() {
    let trusted = [("127.0.0.2/32", "plant", "trusted")];
    let Some(server) = with_guests(&limits(), &[(NETWORK, &settings(&trusted, UNHURRIED))]) else {
        return;
    };
    let mut plant = subscriber(&server, PLANT).await;
    let mut other = subscriber(&server, Ipv4Addr::LOCALHOST).await;
    assert_eq!(room(&mut plant).await, TRUSTED_ROOM);
    assert_eq!(room(&mut other).await, ROOM);
    // Not trusted any more: at once, and so is whoever is new.
    map(&server, &[]);
    until_room(&mut plant, ROOM).await;
    until_new_have_room(&server, PLANT, ROOM).await;
    // Trusted again: whoever is new is, at once, but no session that is there already.
    map(&server, &trusted);
    until_new_have_room(&server, PLANT, TRUSTED_ROOM).await;
    assert_eq!(
        room(&mut plant).await,
        ROOM,
        "it gains nothing before its next activation"
    );
    let activated = plant.ask(activate_session(&plant.session)).await;
    assert_eq!(activated.status(), StatusCode::GOOD);
    assert_eq!(room(&mut plant).await, TRUSTED_ROOM);
    // Another owner without any floor: that is a loss too.
    map(&server, &[("127.0.0.0/8", "everybody", "established")]);
    until_room(&mut plant, ROOM).await;
    // Now both are one owner: what one has parked, the other cannot park.
    plant.send(PublishRequest::default()).await;
    plant.read_cached().await;
    until_room(&mut other, ROOM - 1).await;
}

#[tokio::test]
async fn what_is_kept_for_a_trusted_owner_is_taken_by_nobody_else() {
    let trusted = [("127.0.0.2/32", "plant", "trusted")];
    let Some(mut server) = with_guests(&limits(), &[(NETWORK, &settings(&trusted, UNHURRIED))]) else {
        return;
    };
    // Of twenty connections one each is kept for those that come first and those that come back, and three for the plant.
    let mut others = Vec::new();
    for _ in 0..15 {
        others.push(Raw::opened(&server).await);
    }
    let mut plant = Vec::new();
    for _ in 0..3 {
        plant.push(Raw::opened_from(&server, PLANT).await);
    }
    assert_eq!(server.usage().get("Connection"), 18);
    let mut fourth = Raw::connect_from(&server, PLANT).await;
    assert_eq!(fourth.receive().await, None, "three are its limit too");
    // One more of the others takes the place of the oldest of them, not of the plant.
    let late = Raw::opened(&server).await;
    assert_eq!(others[0].error().await, Some(StatusCode::BAD_TCP_SERVER_TOO_BUSY));
    others.push(late);
    for raw in others.iter_mut().skip(1).chain(&mut plant) {
        raw.request(5, &body(&cached_read())).await;
        assert_eq!(
            raw.fault(5).await,
            StatusCode::BAD_SESSION_ID_INVALID,
            "it is still there"
        );
    }
}

/// Looks until somebody new is served.
async fn until_served(server: &Server) {
    let start = Instant::now();
    loop {
        let mut raw = Raw::connect(server).await;
        raw.send(&hello(65_536, server.url().as_bytes())).await;
        if raw.receive().await.is_some() {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "nobody is served any more");
        tokio::time::sleep(LOOK).await;
    }
}

#[tokio::test]
async fn while_a_classifier_cannot_answer_nobody_gets_in() {
    let broken = "kind = \"isolation-classifier\"\n[settings]\nnetworks = \"none\"\n";
    let Some(mut server) = with_guests(&limits(), &[(NETWORK, broken)]) else {
        return;
    };
    for source in [Ipv4Addr::LOCALHOST, PLANT] {
        let mut refused = Raw::connect_from(&server, source).await;
        assert_eq!(refused.receive().await, None, "closed before anything was said");
    }
    server.log.ever("connection refused: classifier: ");
    map(&server, &[("127.0.0.2", "plant", "trusted")]);
    until_served(&server).await;
    well_behaved(&server).await;
    let mut live = Peer::from(&server, PLANT).await;
    live.read_cached().await;
    // It has no time for an answer from now on. Who is there cannot be judged either, and nobody runs who is not accounted for.
    replace(
        &server,
        "classifier-network.toml",
        settings(&[], "classify = { wall = \"0ms\" }"),
    );
    assert_eq!(live.raw.error().await, Some(StatusCode::BAD_TCP_SERVER_TOO_BUSY));
    let mut refused = Raw::connect(&server).await;
    assert_eq!(refused.receive().await, None);
    server.log.ever("did not answer in time");
    map(&server, &[("127.0.0.2", "plant", "trusted")]);
    until_served(&server).await;
    let mut live = subscriber(&server, PLANT).await;
    assert_eq!(room(&mut live).await, TRUSTED_ROOM);
    // What is no component at all is not taken: the one that serves goes on.
    replace(&server, "classifier-network.wasm", "this is no component");
    server.log.wait_for("rejected");
    assert_eq!(room(&mut live).await, TRUSTED_ROOM);
    well_behaved(&server).await;
}

#[tokio::test]
async fn an_owner_that_is_not_configured_does_not_run() {
    // This one gives open channels keys that nobody has configured.
    let settings = format!("[limits]\n{UNHURRIED}\n");
    let Some(mut server) = with_guests(&limits(), &[("classifies-badly", &settings)]) else {
        return;
    };
    for _ in 0..3 {
        // The answer to OpenSecureChannel leaves first.
        let mut raw = Raw::opened(&server).await;
        assert_eq!(raw.error().await, Some(StatusCode::BAD_TCP_SERVER_TOO_BUSY));
    }
    let line = server.log.ever("nobody to charge its work to");
    assert!(!line.contains("policy="), "a key is in the log: {line}");
    server
        .usage_until("channels that were closed", |usage| usage.is_nothing())
        .await;
    // Without it everybody is who they are.
    fs::remove_file(server.folder().join("plugins/classifies-badly.wasm")).unwrap();
    let start = Instant::now();
    loop {
        let mut raw = Raw::opened(&server).await;
        raw.request(5, &body(&cached_read())).await;
        if raw.receive().await.is_some_and(|(letters, _)| &letters == b"MSGF") {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "nobody is served any more");
        tokio::time::sleep(LOOK).await;
    }
    well_behaved(&server).await;
}

/// Before the name of a plugin whose next generation serves.
const SERVING: &str = "serving plugin=\"classifier-network\"";

/// A server for floods, with the classifier for these networks.
fn flooded(networks: &[(&str, &str, &str)], isolation: &str) -> Option<Server> {
    let limits = format!(
        "sessions = 900\nconnections = 1000\nreassembly-bytes = 600000000\n[isolation.rate]\nper-second = 10000\nburst = 20000\n{isolation}"
    );
    let mut server = with_guests(&limits, &[(NETWORK, &settings(networks, UNHURRIED))])?;
    server.log.ever(SERVING);
    Some(server)
}

/// Maps networks anew and waits until that holds for whoever is new.
fn map_now(server: &mut Server, networks: &[(&str, &str, &str)]) {
    map(server, networks);
    server.log.wait_for(SERVING);
}

async fn beside(server: &Server, source: Ipv4Addr) -> Latency {
    latency(&server.place(), source, 400).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whom_the_classifier_tells_from_a_flood_does_not_wait_for_it() {
    let _machine = alone().await;
    let everybody = ("127.0.0.0/8", "everybody", "established");
    let quiet = ("127.0.0.2", "quiet", "established");
    let Some(mut server) = flooded(&[everybody], "") else {
        return;
    };
    let mut seen: Vec<(Latency, Latency)> = Vec::new();
    // Whatever else the machine does can hide the difference for a moment, or make one: the middle of several looks decides.
    let middle = |of: &dyn Fn(&(Latency, Latency)) -> Latency, seen: &[(Latency, Latency)]| {
        let mut medians: Vec<Duration> = seen.iter().map(|look| of(look).median).collect();
        medians.sort_unstable();
        medians[medians.len() / 2]
    };
    for _ in 0..7 {
        let flood = Flood::from(&server.place(), Ipv4Addr::LOCALHOST, 40).await;
        let together = beside(&server, PLANT).await;
        map_now(&mut server, &[everybody, quiet]);
        let before = flood.answered();
        let apart = beside(&server, PLANT).await;
        let poured = flood.answered() - before;
        flood.stop().await;
        assert!(poured > 1_000, "the flood goes on while the other Reads are measured");
        seen.push((together, apart));
        let (together, apart) = (middle(&|look| look.0, &seen), middle(&|look| look.1, &seen));
        if seen.len() >= 3 && 2 * apart < together {
            eprintln!("single Reads beside a flood of the same owner, then of another: {seen:?}");
            return;
        }
        map_now(&mut server, &[everybody]);
    }
    panic!("being another owner does not help: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn trusted_owners_have_turns_by_their_weights() {
    let _machine = alone().await;
    let isolation = "[isolation]\nprofile = \"TrustedReservations\"\n[[isolation.trusted-owner]]\nkey = \"light\"\nweight = 1\n[[isolation.trusted-owner]]\nkey = \"heavy\"\nweight = 4\n";
    let networks = [("127.0.0.2", "light", "trusted"), ("127.0.0.3", "heavy", "trusted")];
    let Some(server) = flooded(&networks, isolation) else {
        return;
    };
    let place = server.place();
    let light = Flood::from(&place, PLANT, 30).await;
    let heavy = Flood::from(&place, Ipv4Addr::new(127, 0, 0, 3), 30).await;
    let mut seen = Vec::new();
    for _ in 0..5 {
        let before = (light.answered(), heavy.answered());
        let start = Instant::now();
        while light.answered() < before.0 + 20_000 {
            assert!(start.elapsed() < PATIENCE, "the light owner is not served: {seen:?}");
            tokio::time::sleep(LOOK).await;
        }
        let reads = (light.answered() - before.0, heavy.answered() - before.1);
        seen.push(reads);
        let ratio = reads.1 as f64 / reads.0 as f64;
        if (2.5..=6.0).contains(&ratio) {
            eprintln!("Reads of a light and of a heavy owner: {seen:?}");
            light.stop().await;
            heavy.stop().await;
            return;
        }
    }
    panic!("weights 1 and 4 give {seen:?}");
}
