//! A scripted client on the real client end of the channel: it connects, watches, acknowledges late, breaks off and comes back.
//!
//! Owns what a client knows (its session, its subscriptions, what it asked) and checks what only a client can see: each request answered
//! once with the right kind of response, sequence numbers that continue, messages equal to those that left the core.

mod book;
mod responses;
mod script;

use std::collections::BTreeMap;
use std::time::Duration;

use backplane_channel::{ClientChannel, ClientConfig, ClientEvent};
use backplane_types::service::RequestKind;
use backplane_types::{
    ActivateSessionRequest, AnonymousIdentityToken, CloseSessionRequest, CreateSessionRequest, ExtensionObject, NodeId,
    Now, RepublishRequest, RequestHeader, Structure,
};

pub(crate) use book::Stream;

use crate::log::{Log, Rule};
use crate::pipe::Pipe;
use crate::random::Dice;
use crate::server::encoded;
use book::Book;

/// A request without its response.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kind: RequestKind,
    pub(crate) handle: u32,
    pub(crate) at: Duration,
    /// The subscription it is about, and for Republish the number.
    pub(crate) about: (u32, u32),
    /// How many operations it has.
    pub(crate) count: usize,
    pub(crate) detail: Detail,
    /// In which of the client's sessions.
    pub(crate) session: u64,
}

/// What has to be remembered of a request until it is answered.
#[derive(Debug, Clone, Default)]
pub(crate) enum Detail {
    #[default]
    Nothing,
    /// Client handles of items to create.
    Handles(Vec<u32>),
    /// Items to delete.
    Items(Vec<u32>),
    /// Subscriptions to delete.
    Subscriptions(Vec<u32>),
}

/// How far the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not connected; tries at this time.
    Down(Duration),
    /// Waits for the Acknowledge.
    Hello,
    /// Waits for the channel.
    Opening,
    /// Waits for its session.
    Entering,
    Up,
    /// Closes its session and leaves for good.
    Leaving,
    Gone,
}

/// A connection as its client sees it.
struct Line {
    number: u64,
    channel: ClientChannel,
    up: Pipe,
    down: Pipe,
    inbox: Vec<u8>,
    out: Vec<u8>,
    tap: Tap,
    /// The server closed it; what is under way still arrives.
    ended: bool,
}

/// Looks at the chunks of a connection without security: their sequence numbers follow each other.
#[derive(Debug, Default)]
struct Tap {
    pending: Vec<u8>,
    last: Option<u32>,
}

impl Tap {
    fn see(&mut self, log: &mut Log, connection: u64, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let number_at = |bytes: &[u8], at: usize| -> Option<u32> {
            let field = bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes(field.try_into().ok()?))
        };
        while let Some(size) = number_at(&self.pending, 4) {
            let size = size as usize;
            if size < 8 || self.pending.len() < size {
                return;
            }
            let chunk: Vec<u8> = self.pending.drain(..size).collect();
            // Behind an asymmetric header the number is somewhere else; the channel itself checks that one.
            if chunk.starts_with(b"OPN") {
                self.last = None;
            }
            if chunk.starts_with(b"MSG")
                && let Some(number) = number_at(&chunk, 16)
            {
                let follows = self.last.is_none_or(|last| number == last.wrapping_add(1));
                log.check(
                    follows,
                    Rule::WireOrder,
                    format_args!("connection {connection}: chunk {number} follows {:?}", self.last),
                );
                self.last = Some(number);
            }
        }
    }
}

/// See the module text.
pub(crate) struct Client {
    pub(crate) number: u64,
    name: String,
    seed: u64,
    dice: Dice,
    phase: Phase,
    line: Option<Line>,
    lines: u64,
    outstanding: BTreeMap<u32, Asked>,
    next_handle: u32,
    token: Option<NodeId>,
    /// Counts its sessions.
    session: u64,
    pub(crate) book: Book,
    /// When the script goes on.
    next_act: Duration,
    /// Publish requests it keeps under way.
    window: usize,
    /// It does not publish before this time.
    silent_until: Duration,
    /// It keeps still: no more changes, no more breaks.
    calm: bool,
    drops: bool,
}

/// Longest wait for an answer of any service but Publish, server stalls included.
const PATIENCE: Duration = Duration::from_secs(12);

impl Client {
    pub(crate) fn new(seed: u64, number: u64, now: Now, drops: bool) -> Self {
        let mut dice = Dice::of(seed, "client", number);
        let start = now.mono + Duration::from_micros(dice.below(2_000_000));
        Self {
            number,
            name: format!("client {number}"),
            seed,
            window: usize::try_from(dice.between(1, 5)).unwrap_or(1),
            dice,
            phase: Phase::Down(start),
            line: None,
            lines: 0,
            outstanding: BTreeMap::new(),
            next_handle: 1,
            token: None,
            session: 0,
            book: Book::default(),
            next_act: start,
            silent_until: Duration::ZERO,
            calm: false,
            drops,
        }
    }

    /// When something is to be done next.
    pub(crate) fn next(&self) -> Option<Duration> {
        let act = match self.phase {
            Phase::Down(at) => Some(at),
            Phase::Up => Some(self.next_act),
            _ => None,
        };
        let line = self.line.as_ref();
        let under_way = line.and_then(|line| line.down.next());
        let to_server = line.and_then(|line| line.up.next());
        let channel = line.and_then(|line| line.channel.poll_timeout());
        [act, under_way, to_server, channel].into_iter().flatten().min()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }

    pub(crate) fn connection(&self) -> Option<u64> {
        self.line.as_ref().map(|line| line.number)
    }

    /// Bytes of this client that have reached the server.
    pub(crate) fn arrived(&mut self, now: Now) -> Option<(u64, Vec<u8>)> {
        let line = self.line.as_mut()?;
        Some((line.number, line.up.receive(now.mono)?))
    }

    /// Bytes that the server sends.
    pub(crate) fn transmit(&mut self, log: &mut Log, now: Now, bytes: &[u8], ends: bool) {
        if let Some(line) = &mut self.line {
            line.tap.see(log, line.number, bytes);
            line.down.send(now.mono, bytes);
            line.ended |= ends;
        }
    }

    /// Does what is due. The number of a connection that has just been made, and of one that has just been given up.
    pub(crate) fn run(&mut self, log: &mut Log, now: Now) -> (Option<u64>, Option<u64>) {
        let mut made = None;
        if let Phase::Down(at) = self.phase
            && at <= now.mono
        {
            made = self.connect(log, now);
        }
        while let Some(bytes) = self.line.as_mut().and_then(|line| line.down.receive(now.mono)) {
            if !self.receive(log, now, &bytes) {
                return (made, self.hang_up(log, now));
            }
        }
        if self
            .line
            .as_ref()
            .is_some_and(|line| line.ended && line.down.next().is_none())
        {
            return (made, self.hang_up(log, now));
        }
        if let Some(line) = &mut self.line
            && line.channel.handle_timeout(now, &mut line.out).is_some()
        {
            return (made, self.hang_up(log, now));
        }
        let mut lost = None;
        if self.phase == Phase::Up && self.next_act <= now.mono {
            lost = self.act(log, now);
        }
        self.check_patience(log, now);
        self.publish_more(log, now);
        self.send_out(now);
        (made, lost)
    }

    fn connect(&mut self, log: &mut Log, now: Now) -> Option<u64> {
        self.lines += 1;
        let number = self.number * 1_000 + self.lines;
        let config = ClientConfig {
            limits: backplane_channel::Limits::default(),
            endpoint_url: "opc.tcp://sim:4840".into(),
            security: None,
            requested_lifetime: Duration::from_secs(self.dice.between(10, 60)),
        };
        let random = Box::new(Dice::of(self.seed, "channel", number));
        let Ok(mut channel) = ClientChannel::new(config, random, now) else {
            log.broken(Rule::Answers, format_args!("{}: no channel can be made", self.name));
            return None;
        };
        let mut out = Vec::new();
        channel.connect(now, &mut out);
        self.line = Some(Line {
            number,
            channel,
            up: Pipe::new(Dice::of(self.seed, "up", number)),
            down: Pipe::new(Dice::of(self.seed, "down", number)),
            inbox: Vec::new(),
            out,
            tap: Tap::default(),
            ended: false,
        });
        self.phase = Phase::Hello;
        log.say(&self.name, format_args!("connects as {number}"));
        Some(number)
    }

    /// The connection is over, by whoever. Comes back later.
    fn hang_up(&mut self, log: &mut Log, now: Now) -> Option<u64> {
        let line = self.line.take()?;
        log.say(
            &self.name,
            format_args!(
                "connection {} is over, {} requests open",
                line.number,
                self.outstanding.len()
            ),
        );
        for asked in std::mem::take(&mut self.outstanding).into_values() {
            self.book.unanswered(&asked);
        }
        self.phase = match self.phase {
            Phase::Leaving => Phase::Gone,
            _ => {
                let ms = match self.dice.below(10) {
                    _ if self.calm => self.dice.between(1, 20),
                    0 => self.dice.between(2_000, 20_000),
                    1..=3 => self.dice.between(200, 2_000),
                    _ => self.dice.between(1, 200),
                };
                Phase::Down(now.mono + Duration::from_millis(ms))
            }
        };
        Some(line.number)
    }

    /// Takes bytes of the server. False when the connection is over.
    fn receive(&mut self, log: &mut Log, now: Now, bytes: &[u8]) -> bool {
        let Some(line) = &mut self.line else { return true };
        line.inbox.extend_from_slice(bytes);
        let mut inbox = std::mem::take(&mut line.inbox);
        let mut at = 0;
        let mut lives = true;
        while let Some(line) = &mut self.line
            && let Some(input) = inbox.get_mut(at..).filter(|input| !input.is_empty())
        {
            let (consumed, event) = line.channel.handle_input(now, input, &mut line.out);
            at += consumed;
            match event {
                ClientEvent::NeedMore { .. } => break,
                ClientEvent::Progress | ClientEvent::ReverseHello(_) => {}
                ClientEvent::Acknowledged => {
                    self.phase = Phase::Opening;
                    if line.channel.open(now, &mut line.out).is_err() {
                        log.broken(
                            Rule::Answers,
                            format_args!("{}: the channel cannot be opened", self.name),
                        );
                    }
                }
                ClientEvent::Opened { renewed } => {
                    if !renewed {
                        self.phase = Phase::Entering;
                        self.enter(log, now);
                    }
                }
                ClientEvent::Message { request_id, body } => {
                    let message = body.to_vec();
                    line.channel.recycle(body);
                    self.answered(log, now, request_id, &message);
                }
                ClientEvent::Aborted { request_id, status, .. } => {
                    log.broken(
                        Rule::Answers,
                        format_args!("{}: response {request_id} aborted: {status}", self.name),
                    );
                }
                ClientEvent::Closed(closed) => {
                    log.say(&self.name, format_args!("channel closed: {closed:?}"));
                    if matches!(closed, backplane_channel::Closed::Error(_)) && self.phase != Phase::Leaving {
                        log.broken(
                            Rule::WireOrder,
                            format_args!("{}: the channel failed: {closed:?}", self.name),
                        );
                    }
                    lives = false;
                    break;
                }
            }
        }
        inbox.drain(..at.min(inbox.len()));
        if let Some(line) = &mut self.line {
            line.inbox = inbox;
        }
        lives
    }

    /// A new session, or the old one on the new channel.
    fn enter(&mut self, log: &mut Log, now: Now) {
        if self.token.is_some() {
            self.activate(log, now);
            return;
        }
        let timeout = self.dice.between(8_000, 30_000);
        let request = CreateSessionRequest {
            request_header: self.header(now, 0),
            session_name: self.name.as_str().into(),
            requested_session_timeout: f64::from(u32::try_from(timeout).unwrap_or(10_000)),
            ..CreateSessionRequest::default()
        };
        self.ask(
            log,
            now,
            RequestKind::CreateSession,
            &request,
            (0, 0),
            0,
            Detail::Nothing,
        );
    }

    /// The session is over; the next one knows nothing of its subscriptions.
    fn session_over(&mut self) {
        self.token = None;
        self.session += 1;
        self.book.new_session();
    }

    fn activate(&mut self, log: &mut Log, now: Now) {
        let token = AnonymousIdentityToken {
            policy_id: "anonymous".into(),
        };
        let request = ActivateSessionRequest {
            request_header: self.header(now, 0),
            user_identity_token: ExtensionObject::from_structure(&token),
            ..ActivateSessionRequest::default()
        };
        self.ask(
            log,
            now,
            RequestKind::ActivateSession,
            &request,
            (0, 0),
            0,
            Detail::Nothing,
        );
    }

    fn header(&mut self, now: Now, timeout_hint: u32) -> RequestHeader {
        let request_handle = self.next_handle;
        self.next_handle += 1;
        RequestHeader {
            authentication_token: self.token.clone().unwrap_or(NodeId::NULL),
            timestamp: now.utc,
            request_handle,
            timeout_hint,
            ..RequestHeader::default()
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what is remembered of a request")]
    fn ask<T: Structure>(
        &mut self,
        log: &mut Log,
        now: Now,
        kind: RequestKind,
        request: &T,
        about: (u32, u32),
        count: usize,
        detail: Detail,
    ) {
        let Some(line) = &mut self.line else { return };
        let Ok(id) = line.channel.send(now, &encoded(request), &mut line.out) else {
            log.broken(Rule::Answers, format_args!("{}: {kind:?} cannot be sent", self.name));
            return;
        };
        log.stats.requests += 1;
        log.say(&self.name, format_args!("asks {id} {kind:?} {about:?} {detail:?}"));
        let asked = Asked {
            kind,
            handle: self.next_handle.wrapping_sub(1),
            at: now.mono,
            about,
            count,
            detail,
            session: self.session,
        };
        if self.outstanding.insert(id, asked).is_some() {
            log.broken(
                Rule::Answers,
                format_args!("{}: request id {id} is used twice", self.name),
            );
        }
    }

    fn republish(&mut self, log: &mut Log, now: Now, subscription: u32, sequence: u32) {
        let request = RepublishRequest {
            request_header: self.header(now, 0),
            subscription_id: subscription,
            retransmit_sequence_number: sequence,
        };
        self.book.asks_again(subscription, sequence);
        self.ask(
            log,
            now,
            RequestKind::Republish,
            &request,
            (subscription, sequence),
            1,
            Detail::Nothing,
        );
    }

    fn send_out(&mut self, now: Now) {
        if let Some(line) = &mut self.line {
            let out = std::mem::take(&mut line.out);
            line.up.send(now.mono, &out);
        }
    }

    /// Every service but Publish is answered in time.
    fn check_patience(&mut self, log: &mut Log, now: Now) {
        for (id, asked) in &mut self.outstanding {
            if asked.kind != RequestKind::Publish && now.mono > asked.at + PATIENCE {
                log.broken(
                    Rule::Answers,
                    format_args!(
                        "{}: request {id} {:?} of {:?} has no answer",
                        self.name, asked.kind, asked.at
                    ),
                );
                asked.at = now.mono;
            }
        }
    }

    /// No more breaks and changes: what is open is to be settled.
    pub(crate) fn calm_down(&mut self, now: Now) {
        self.calm = true;
        self.silent_until = now.mono;
        self.window = self.window.max(2);
        if let Phase::Down(at) = self.phase {
            self.phase = Phase::Down(at.min(now.mono + Duration::from_millis(10)));
        }
    }

    /// Everything that left the core must have come.
    pub(crate) fn check_settled(&self, log: &mut Log) {
        let up = self.phase == Phase::Up;
        log.check(
            up,
            Rule::Answers,
            format_args!("{} did not come back: {:?}", self.name, self.phase),
        );
        self.book.check_settled(log, &self.name);
    }

    /// Closes the session, and the connection after that.
    pub(crate) fn leave(&mut self, log: &mut Log, now: Now) {
        if self.phase != Phase::Up {
            return;
        }
        self.phase = Phase::Leaving;
        let request = CloseSessionRequest {
            request_header: self.header(now, 0),
            delete_subscriptions: true,
        };
        self.ask(
            log,
            now,
            RequestKind::CloseSession,
            &request,
            (0, 0),
            0,
            Detail::Nothing,
        );
        self.send_out(now);
    }

    /// It has left: everything it asked was answered.
    pub(crate) fn check_gone(&self, log: &mut Log) {
        log.check(
            self.is_gone(),
            Rule::Answers,
            format_args!("{} could not leave", self.name),
        );
    }
}
