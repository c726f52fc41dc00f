//! The client end of a connection, fed with any bytes at any moment.
//!
//! Input: as for `server_channel`.

use backplane_channel::{ClientChannel, ClientEvent, SendError};

use crate::channel_setup::{FIRST_ID, client, limits, now, plain_start};
use crate::check::within;
use crate::feedback::note;
use crate::splits::{Splits, repair};

/// When the stream begins.
pub(crate) mod moment {
    /// Nothing was sent: a ReverseHello is possible.
    pub(crate) const NEW: u8 = 0;
    /// The Hello was sent.
    pub(crate) const HELLO: u8 = 1;
    /// An OpenSecureChannel request was sent.
    pub(crate) const OPENING: u8 = 2;
    /// A channel without security is open, and a request was sent.
    pub(crate) const OPEN: u8 = 3;
    /// As `OPEN`, and the channel is being renewed.
    pub(crate) const RENEWING: u8 = 4;
    /// Ids and sequence numbers are put right.
    pub(crate) const REPAIR: u8 = 0x80;
    /// How many there are.
    pub(crate) const COUNT: u8 = 5;
}

const FREE: u64 = 256 * 1_024;

/// The channel takes any stream, holds no more than its limits, and says the same however the stream is cut.
pub fn client_channel(data: &[u8]) {
    let Some(([choice, cut], stream)) = data.split_first_chunk::<2>() else {
        return;
    };
    let mut stream = stream.to_vec();
    let moment = (choice & !moment::REPAIR) % moment::COUNT;
    if choice & moment::REPAIR != 0 {
        repair(&mut stream, FIRST_ID, 2);
    }
    let length = stream.len() as u64;
    let whole = within(FREE + 16 * length, || run(moment, std::iter::once(stream.as_slice())));
    let pieces = run(moment, Splits::new(&stream, *cut));
    assert_eq!(whole, pieces, "cut with {cut}");
    note((moment, &whole.seen, whole.out.len()));
}

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    seen: Vec<String>,
    out: Vec<u8>,
    open: bool,
    ids: Option<(u32, u32)>,
    timeout: Option<std::time::Duration>,
}

fn run<'a>(moment: u8, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut channel = client(None);
    let mut out = Vec::new();
    let mut seen = Vec::new();
    let mut input = Vec::new();
    prepare(&mut channel, moment);
    for piece in pieces {
        input.extend_from_slice(piece);
        let mut at = 0;
        while let Some(consumed) = step(
            &mut channel,
            input.get_mut(at..).unwrap_or_default(),
            &mut out,
            &mut seen,
        ) {
            at += consumed;
        }
        input.drain(..at);
    }
    Outcome {
        open: channel.is_open(),
        ids: channel.ids(),
        timeout: channel.poll_timeout(),
        seen,
        out,
    }
}

fn prepare(channel: &mut ClientChannel, moment: u8) {
    let start = plain_start();
    let (mut out, mut seen) = (Vec::new(), Vec::new());
    if moment == moment::NEW {
        return;
    }
    channel.connect(now(), &mut out);
    if moment == moment::HELLO {
        return;
    }
    step(channel, &mut start.acknowledge.clone(), &mut out, &mut seen);
    channel.open(now(), &mut out).expect("an acknowledged connection");
    if moment == moment::OPENING {
        return;
    }
    step(channel, &mut start.open_response.clone(), &mut out, &mut seen);
    channel.send(now(), b"request", &mut out).expect("an open channel");
    if moment == moment::RENEWING {
        channel.open(now(), &mut out).expect("an open channel");
    }
}

fn step(channel: &mut ClientChannel, input: &mut [u8], out: &mut Vec<u8>, seen: &mut Vec<String>) -> Option<usize> {
    let length = input.len();
    let (consumed, event) = channel.handle_input(now(), input, out);
    let line = match event {
        ClientEvent::NeedMore { bytes } => {
            assert!(
                consumed == 0 && bytes > length && bytes <= 16_384,
                "{bytes} asked for with {length} there"
            );
            return None;
        }
        ClientEvent::Closed(closed) => {
            let line = format!("closed: {closed:?}");
            if seen.last() != Some(&line) {
                seen.push(line);
            }
            assert!(!channel.is_open() && channel.send(now(), b"more", out) == Err(SendError::NotOpen));
            return None;
        }
        ClientEvent::Message { request_id, body } => {
            assert!(body.len() <= limits().max_message_size as usize);
            let line = format!("message {request_id}: {:?}", &body[..]);
            channel.recycle(body);
            line
        }
        other => format!("{other:?}"),
    };
    assert!(
        consumed > 0 && consumed <= length,
        "{consumed} of {length} bytes taken for {line}"
    );
    seen.push(line);
    Some(consumed)
}
