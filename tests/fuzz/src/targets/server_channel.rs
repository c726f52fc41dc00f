//! The server end of a connection, fed with any bytes at any moment.
//!
//! Input: a byte that chooses the moment, a byte that chooses how the stream is cut, then the stream. With the high bit of the first byte set,
//! ids and sequence numbers of MSG and CLO chunks are put right before they are fed, so that what lies behind those checks is reached.

use backplane_channel::{Closed, Event, ServerChannel};
use backplane_types::{StatusCode, UaString};

use crate::channel_setup::{FIRST_ID, limits, now, open, plain_start, server};
use crate::check::within;
use crate::feedback::note;
use crate::splits::{Splits, repair};

/// When the stream begins.
pub(crate) mod moment {
    /// The connection was just made.
    pub(crate) const NEW: u8 = 0;
    /// The Hello was acknowledged.
    pub(crate) const HELLO: u8 = 1;
    /// A channel without security is open.
    pub(crate) const OPEN: u8 = 2;
    /// The first chunks of a message were taken.
    pub(crate) const MESSAGE: u8 = 3;
    /// A session was activated, and the first chunks of a message were taken.
    pub(crate) const AUTHENTICATED: u8 = 4;
    /// A part of a chunk's header was taken.
    pub(crate) const CHUNK: u8 = 5;
    /// As `HELLO`, and slow work is done only when everything was fed.
    pub(crate) const SLOW: u8 = 6;
    /// As `OPEN`, and messages are answered.
    pub(crate) const ECHO: u8 = 7;
    /// Ids and sequence numbers are put right.
    pub(crate) const REPAIR: u8 = 0x80;
    /// How many there are.
    pub(crate) const COUNT: u8 = 8;
}

/// Most bytes that the server's end may hold for a connection, beside those in proportion to the input.
const FREE: u64 = 256 * 1_024;

/// What was seen of an event, without its borrow.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Seen {
    Message(u32, Vec<u8>),
    Aborted(u32, StatusCode, UaString),
    Opened(bool),
    Closed(String),
}

/// All that can be seen from outside after a stream.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    seen: Vec<Seen>,
    out: Vec<u8>,
    open: bool,
    held: usize,
    timeout: Option<std::time::Duration>,
    unread: usize,
}

/// The channel takes any stream: it makes progress or asks for more, never for more than it acknowledged, holds no more than its limits, closes
/// once, and says the same however the stream is cut.
pub fn server_channel(data: &[u8]) {
    let Some(([choice, cut], stream)) = data.split_first_chunk::<2>() else {
        return;
    };
    let mut stream = stream.to_vec();
    let moment = (choice & !moment::REPAIR) % moment::COUNT;
    if choice & moment::REPAIR != 0 {
        let sequence = if moment == moment::MESSAGE || moment == moment::AUTHENTICATED {
            4
        } else {
            2
        };
        repair(&mut stream, FIRST_ID, sequence);
    }
    let length = stream.len() as u64;
    let whole = within(FREE + 16 * length, || run(moment, std::iter::once(stream.as_slice())));
    let pieces = run(moment, Splits::new(&stream, *cut));
    assert_eq!(whole, pieces, "cut with {cut}");
    note((moment, &whole.seen, whole.out.len()));
}

/// A connection at a moment, and the bytes of it that were not taken yet.
fn prepare(moment: u8) -> (ServerChannel, Vec<u8>) {
    let mut feed = Feed::new(server(), moment);
    let start = plain_start();
    let (mut stream, mut rest) = (Vec::new(), Vec::new());
    if moment != moment::NEW {
        stream.extend_from_slice(&start.hello);
    }
    if !matches!(moment, moment::NEW | moment::HELLO | moment::SLOW) {
        stream.extend_from_slice(&start.open_request);
    }
    match moment {
        moment::MESSAGE | moment::AUTHENTICATED => {
            stream.extend(chunk(b'C', 2, b"first part"));
            stream.extend(chunk(b'C', 3, b"second part"));
        }
        moment::CHUNK => rest.extend_from_slice(b"MSGF\x30\x00"),
        _ => {}
    }
    feed.take(&stream);
    assert!(feed.input.is_empty());
    if moment == moment::AUTHENTICATED {
        feed.channel.set_limits_authenticated();
    }
    (feed.channel, rest)
}

/// A chunk of the message with the request id 1 on the channel that every connection here has.
pub(crate) fn chunk(kind: u8, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut chunk = vec![b'M', b'S', b'G', kind];
    let size = u32::try_from(24 + body.len()).unwrap_or(u32::MAX);
    for field in [size, FIRST_ID, FIRST_ID, sequence, 1] {
        chunk.extend_from_slice(&field.to_le_bytes());
    }
    chunk.extend_from_slice(body);
    chunk
}

fn run<'a>(moment: u8, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let (channel, rest) = prepare(moment);
    let mut feed = Feed::new(channel, moment);
    feed.input = rest;
    // What is there already is looked at before anything comes, however it comes.
    feed.take(&[]);
    for piece in pieces {
        feed.take(piece);
    }
    feed.work_off();
    let largest = limits().max_message_size as usize;
    let held = feed.channel.reassembly_bytes();
    assert!(held <= largest, "{held} bytes held");
    Outcome {
        open: feed.channel.is_open(),
        held,
        timeout: feed.channel.poll_timeout(),
        unread: feed.input.len(),
        seen: feed.seen,
        out: feed.out,
    }
}

/// A connection being fed, as a server does it.
struct Feed {
    channel: ServerChannel,
    moment: u8,
    input: Vec<u8>,
    out: Vec<u8>,
    seen: Vec<Seen>,
    work: Option<Box<backplane_channel::OpenWork>>,
    closed: bool,
}

impl Feed {
    fn new(channel: ServerChannel, moment: u8) -> Self {
        Self {
            channel,
            moment,
            input: Vec::new(),
            out: Vec::new(),
            seen: Vec::new(),
            work: None,
            closed: false,
        }
    }

    /// Appends to the input and takes all whole chunks.
    fn take(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        while let Some(consumed) = self.step(input.get_mut(at..).unwrap_or_default()) {
            at += consumed;
            assert!(at <= input.len());
        }
        self.input = if self.closed { Vec::new() } else { input.split_off(at) };
    }

    /// One event; how much it took, or `None` if there is nothing to take.
    fn step(&mut self, input: &mut [u8]) -> Option<usize> {
        let length = input.len();
        let first = !self.closed;
        let (consumed, event) = self.channel.handle_input(now(), input, &mut self.out);
        match event {
            Event::NeedMore { bytes } => {
                assert!(
                    first && consumed == 0 && bytes > length,
                    "{bytes} asked for with {length} there"
                );
                let most = self.channel.negotiated().map_or(8_192, |sizes| sizes.receive_chunk);
                assert!(bytes <= most, "{bytes} asked for");
                return None;
            }
            Event::Opening => {
                assert!(consumed == 0 && self.work.is_some());
                return None;
            }
            Event::Progress => {}
            Event::Message { request_id, body } => {
                assert!(body.len() <= limits().max_message_size as usize);
                let copy = body.to_vec();
                self.channel.recycle(body);
                if self.moment == moment::ECHO {
                    let sent = self.channel.send(now(), request_id, &copy, &mut self.out);
                    note(sent.is_ok());
                }
                self.seen.push(Seen::Message(request_id, copy));
            }
            Event::Aborted {
                request_id,
                status,
                reason,
            } => self.seen.push(Seen::Aborted(request_id, status, reason)),
            Event::Open(work) if self.moment == moment::SLOW => self.work = Some(work),
            Event::Open(work) => {
                let opened = open(&mut self.channel, *work, &mut self.out);
                self.seen.push(Seen::Opened(opened));
            }
            Event::Closed(closed) => {
                assert!(consumed <= length);
                self.close(&closed);
                return None;
            }
        }
        assert!(consumed > 0 && consumed <= length, "{consumed} of {length} bytes taken");
        Some(consumed)
    }

    /// Said once in the log, however often it is told.
    fn close(&mut self, closed: &Closed) {
        assert!(!self.channel.is_open());
        if !self.closed {
            self.seen.push(Seen::Closed(format!("{closed:?}")));
        }
        self.closed = true;
    }

    /// Does the slow work that was put off, and what waited for it.
    fn work_off(&mut self) {
        while let Some(work) = self.work.take() {
            let opened = open(&mut self.channel, *work, &mut self.out);
            self.seen.push(Seen::Opened(opened));
            self.take(&[]);
        }
    }
}
