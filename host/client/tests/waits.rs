//! Who waits for a response: one outcome each, whatever happens first, against a server that does as it is told.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use backplane_channel::{ChannelIds, Closed, Event, Limits, ServerChannel, ServerConfig};
use backplane_client::{Client, ClientError, Options};
use backplane_crypto::{CertificateChain, SecurityPolicy, SystemRandom};
use backplane_types::{
    BinaryEncode, DateTime, Encoder, MessageSecurityMode, NodeId, Now, ReadRequest, ReadResponse, ResponseHeader,
    StatusCode, Structure,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

enum Order {
    Answer(u32, Vec<u8>),
    /// An Error message.
    Fail(StatusCode),
    /// Close the socket without a word.
    HangUp,
}

/// The server's end of one connection, in the hands of the test.
struct Script {
    requests: UnboundedReceiver<(u32, Vec<u8>)>,
    orders: UnboundedSender<Order>,
}

impl Script {
    /// The number of the request with this body. Older ones, whose callers have gone, are answered on the way: nobody may notice.
    async fn request(&mut self, body: &[u8]) -> u32 {
        loop {
            let (id, got) = self.requests.recv().await.expect("a request");
            if got == body {
                return id;
            }
            self.answer(id, b"late");
        }
    }

    fn answer(&self, id: u32, body: &[u8]) {
        self.orders.send(Order::Answer(id, body.to_vec())).unwrap();
    }
}

async fn connect(call_timeout: Duration) -> (Arc<Client>, Script) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = Options::new(format!("opc.tcp://{}", listener.local_addr().unwrap()));
    options.call_timeout = call_timeout;
    let (seen, requests) = unbounded_channel();
    let (orders, told) = unbounded_channel();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, seen, told).await;
    });
    let client = Client::connect(options).await.unwrap();
    (Arc::new(client), Script { requests, orders })
}

async fn serve(mut stream: TcpStream, seen: UnboundedSender<(u32, Vec<u8>)>, mut told: UnboundedReceiver<Order>) {
    let start = Instant::now();
    let now = || Now::new(start.elapsed(), DateTime::from_system_time(SystemTime::now()));
    let config = ServerConfig {
        limits: Limits::default(),
        allowed: vec![(SecurityPolicy::None, MessageSecurityMode::NONE)],
    };
    let mut channel = ServerChannel::new(Arc::new(config), Arc::new(ChannelIds::starting_at(1)), now());
    let (mut input, mut out) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            got = stream.read_buf(&mut input) => if got.unwrap_or(0) == 0 { return },
            order = told.recv() => match order {
                Some(Order::Answer(id, body)) => channel.send(now(), id, &body, &mut out).unwrap(),
                Some(Order::Fail(status)) => drop(channel.close(status, &mut out)),
                Some(Order::HangUp) | None => return,
            },
        }
        let mut at = 0;
        loop {
            let (consumed, event) = channel.handle_input(now(), &mut input[at..], &mut out);
            at += consumed;
            match event {
                Event::NeedMore { .. } | Event::Opening | Event::Closed(_) => break,
                Event::Open(work) => {
                    let trust = |_: &CertificateChain, _: SecurityPolicy, _: DateTime| Ok(());
                    let identity = nobody();
                    let outcome = work.run(&identity, &trust, &mut SystemRandom);
                    channel.handle_opened(now(), outcome, &mut out).unwrap();
                }
                // The test may be over.
                Event::Message { request_id, body } => drop(seen.send((request_id, body.to_vec()))),
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

/// An identity for a channel that needs none.
fn nobody() -> backplane_channel::OwnIdentity {
    use std::sync::OnceLock;
    static KEY: OnceLock<backplane_crypto::PrivateKey> = OnceLock::new();
    let key = KEY.get_or_init(|| backplane_crypto::PrivateKey::generate(2_048, &mut SystemRandom).unwrap());
    backplane_channel::OwnIdentity::new(key.clone(), &[], &[])
}

fn call(client: &Arc<Client>, body: &[u8]) -> JoinHandle<Result<Vec<u8>, ClientError>> {
    let (client, body) = (Arc::clone(client), body.to_vec());
    tokio::spawn(async move { client.call_raw(body).await })
}

const PATIENT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_find_their_requests_in_any_order_and_a_second_one_finds_nobody() {
    let (client, mut script) = connect(PATIENT).await;
    let (first, second) = (call(&client, b"first"), call(&client, b"second"));
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(script.requests.recv().await.unwrap());
    }
    for (id, body) in ids.iter().rev() {
        script.answer(*id, body);
        script.answer(*id, b"once more");
    }
    assert_eq!(first.await.unwrap().unwrap(), b"first");
    assert_eq!(second.await.unwrap().unwrap(), b"second");
    let third = call(&client, b"third");
    let id = script.request(b"third").await;
    script.answer(id, b"its own");
    assert_eq!(third.await.unwrap().unwrap(), b"its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waited_too_long_gets_no_answer_and_the_next_one_gets_no_old_one() {
    let (client, mut script) = connect(Duration::from_millis(50)).await;
    let slow = call(&client, b"slow").await.unwrap();
    assert!(matches!(slow, Err(ClientError::Timeout)), "{slow:?}");
    let late = script.request(b"slow").await;
    script.answer(late, b"too late");
    drop(client);

    let (client, mut script) = connect(PATIENT).await;
    let cancelled = call(&client, b"cancelled");
    let late = script.request(b"cancelled").await;
    cancelled.abort();
    assert!(cancelled.await.unwrap_err().is_cancelled());
    script.answer(late, b"too late");
    let next = call(&client, b"next");
    let id = script.request(b"next").await;
    assert_ne!(id, late);
    script.answer(id, b"in time");
    assert_eq!(next.await.unwrap().unwrap(), b"in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_of_the_channel_reaches_all_who_wait_and_all_who_come_later() {
    for hang_up in [false, true] {
        let (client, mut script) = connect(PATIENT).await;
        let calls: Vec<_> = (0..20_u8).map(|index| call(&client, &[index])).collect();
        for _ in 0..calls.len() {
            script.requests.recv().await.unwrap();
        }
        let order = if hang_up {
            Order::HangUp
        } else {
            Order::Fail(StatusCode::BAD_TCP_INTERNAL_ERROR)
        };
        script.orders.send(order).unwrap();
        for waiting in calls {
            fault(waiting.await.unwrap(), hang_up);
        }
        fault(client.call_raw(b"later".to_vec()).await, hang_up);
    }
}

fn fault(result: Result<Vec<u8>, ClientError>, hang_up: bool) {
    match result {
        Err(ClientError::Disconnected) => assert!(hang_up),
        Err(ClientError::Closed(Closed::PeerError { status, .. })) => {
            assert!(!hang_up);
            assert_eq!(status, StatusCode::BAD_TCP_INTERNAL_ERROR);
        }
        other => panic!("{other:?}"),
    }
}

/// A client that is closed leaves nobody waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_ends_what_was_not_awaited() {
    let (client, mut script) = connect(PATIENT).await;
    let waiting = call(&client, b"waiting");
    script.request(b"waiting").await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    Arc::into_inner(client).expect("nobody else").close().await;
    // The server saw the end of it.
    assert!(script.requests.recv().await.is_none());
}

#[derive(Default)]
struct Tally {
    completed: usize,
    cancelled: usize,
    timed_out: usize,
}

impl Tally {
    /// The one outcome of a call whose answer is its own body and a mark.
    async fn take(&mut self, call: JoinHandle<Result<Vec<u8>, ClientError>>, answer: &[u8]) {
        match call.await {
            Ok(Ok(body)) => {
                assert_eq!(body, answer, "somebody else's answer");
                self.completed += 1;
            }
            Ok(Err(ClientError::Timeout)) => self.timed_out += 1,
            Err(error) if error.is_cancelled() => self.cancelled += 1,
            other => panic!("{other:?}"),
        }
    }
}

/// Completion against cancellation against timeout, on two threads, in every order that two thousand rounds give.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completion_cancellation_and_timeout_race_and_one_of_them_wins() {
    const ROUNDS: u32 = 2_000;
    let (patient, mut patient_script) = connect(PATIENT).await;
    let (hasty, mut hasty_script) = connect(Duration::from_micros(400)).await;
    let mut tally = Tally::default();
    for round in 0..ROUNDS {
        let body = round.to_le_bytes();
        let answer = [&body[..], b"answer"].concat();
        let hurry = round % 5 == 4;
        let (client, script) = if hurry {
            (&hasty, &mut hasty_script)
        } else {
            (&patient, &mut patient_script)
        };
        let call = call(client, &body);
        let aborting = call.abort_handle();
        if round % 5 == 3 {
            // Before anybody knows whether it was sent; the next round's server skips it.
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            aborting.abort();
            tally.take(call, &answer).await;
            continue;
        }
        if hurry {
            // May never arrive: who comes too late is answered in a later round.
            while let Ok((id, got)) = script.requests.try_recv() {
                script.answer(id, &[&got[..], b"answer"].concat());
            }
            tally.take(call, &answer).await;
            continue;
        }
        let id = script.request(&body).await;
        let orders = script.orders.clone();
        let sent = answer.clone();
        let answering = tokio::spawn(async move { orders.send(Order::Answer(id, sent)).is_ok() });
        match round % 5 {
            0 => aborting.abort(),
            1 => {
                for _ in 0..round % 11 {
                    tokio::task::yield_now().await;
                }
                aborting.abort();
            }
            _ => {}
        }
        tally.take(call, &answer).await;
        assert!(answering.await.unwrap());
    }
    let seen = tally.completed + tally.cancelled + tally.timed_out;
    assert_eq!(seen, ROUNDS as usize);
    assert!(tally.completed > 0 && tally.cancelled > 0, "a race with one runner");
}

/// What is asked for is a Read, and the time since `since` when it comes.
async fn kept_alive(script: &mut Script, since: Instant) -> (u32, Duration) {
    let (id, body) = script.requests.recv().await.expect("a request");
    let mut type_id = Vec::new();
    NodeId::numeric(0, ReadRequest::ENCODING_ID).encode(&mut Encoder::new(&mut type_id));
    assert!(body.starts_with(&type_id), "a keep-alive is a Read");
    (id, since.elapsed())
}

#[tokio::test]
async fn a_keep_alive_comes_one_interval_after_the_last_response_and_not_before() {
    let interval = Duration::from_millis(400);
    let (client, mut script) = connect(Duration::from_secs(30)).await;
    let keeper = Arc::clone(&client);
    let keeping = tokio::spawn(async move { keeper.keep_alive(interval).await });
    let mut last = Instant::now();
    // Busy for longer than an interval: nothing but what it asks for is seen.
    let begun = Instant::now();
    let mut asked = 0;
    while begun.elapsed() < 2 * interval {
        let call = {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.call_raw(b"busy".to_vec()).await })
        };
        let (id, body) = script.requests.recv().await.unwrap();
        assert_eq!(body, b"busy", "no keep-alive while responses come");
        last = Instant::now();
        script.answer(id, b"yes");
        assert_eq!(call.await.unwrap().unwrap(), b"yes");
        asked += 1;
    }
    assert!(asked > 1);
    let mut response = Vec::new();
    let mut encoder = Encoder::new(&mut response);
    NodeId::numeric(0, ReadResponse::ENCODING_ID).encode(&mut encoder);
    ReadResponse {
        response_header: ResponseHeader::default(),
        ..ReadResponse::default()
    }
    .encode(&mut encoder);
    // Its own responses count too.
    for _ in 0..2 {
        let (id, waited) = kept_alive(&mut script, last).await;
        assert!(waited >= interval, "{waited:?}");
        last = Instant::now();
        script.answer(id, &response);
    }
    let (_, waited) = kept_alive(&mut script, last).await;
    assert!(waited >= interval, "{waited:?}");
    script.orders.send(Order::HangUp).unwrap();
    let error = tokio::time::timeout(Duration::from_secs(30), keeping)
        .await
        .unwrap()
        .unwrap();
    assert!(!matches!(error, ClientError::Timeout), "{error:?}");
}
