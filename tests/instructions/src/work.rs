//! The pieces of work, each in a function of its own whose name starts with `measured_`.
//!
//! Such a function holds a loop and nothing else: no closure, since that would have the name too and switch the counting off. It panics when the work did
//! not do what it is for.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use backplane_crypto::SecurityPolicy;
use backplane_nodes::services::{self, ContinuationPoints, Progress, ReadBatch, ServiceContext, Until};
use backplane_nodes::{AddressSpace, CallContext};
use backplane_types::view::{ReadView, RequestPeek};
use backplane_types::{
    AttributeId, BinaryEncode, BrowseDescription, BrowseDirection, DataValue, DecodeLimits, Encoder, NodeId,
    ReadRequest, ReadValueId, RequestHeader, Structure, TimestampsToReturn, ViewDescription, WriteValue, ids,
};

use crate::channel::Pair;
use crate::measure::Keys;
use crate::queue::Turns;
use crate::world;

/// One piece of work.
pub(crate) struct Piece {
    /// What follows `measured_` in the function's name.
    pub(crate) name: &'static str,
    /// How often it is done; often enough for what is done once (growing a buffer) not to show.
    pub(crate) count: u32,
    pub(crate) run: fn(&mut Bench, u32),
}

const fn piece(name: &'static str, count: u32, run: fn(&mut Bench, u32)) -> Piece {
    Piece { name, count, run }
}

/// All of it, in the order in which it is done.
pub(crate) const PIECES: &[Piece] = &[
    piece("peek_read", 3_000, measured_peek_read),
    piece("read_scalar", 3_000, measured_read_scalar),
    piece("read_number", 3_000, measured_read_number),
    piece("read_100", 100, measured_read_100),
    piece("read_on_demand_64", 30, measured_read_on_demand_64),
    piece("write_100", 100, measured_write_100),
    piece("browse_server", 100, measured_browse_server),
    piece("channel_none", 1_000, measured_channel_none),
    piece("channel_basic256sha256", 300, measured_channel_basic256sha256),
    piece("queue_admit_take_4", 1_000, measured_queue_admit_take_4),
];

/// Everything that the work needs, made before it is measured.
pub(crate) struct Bench {
    space: AddressSpace,
    call: CallContext,
    points: ContinuationPoints,
    /// Whole messages, and where their bodies start.
    messages: Vec<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
    number: Vec<u8>,
    hundred: Vec<u8>,
    on_demand: Vec<Vec<u8>>,
    writes: Vec<u8>,
    browse: Vec<u8>,
    out: Vec<u8>,
    plain: Pair,
    secure: Pair,
    turns: Turns,
}

fn value_of(node_id: NodeId) -> ReadValueId {
    ReadValueId {
        node_id,
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    }
}

/// The message of a Read, type id and header included.
fn message(operations: Vec<ReadValueId>) -> Vec<u8> {
    let request = ReadRequest {
        request_header: RequestHeader {
            authentication_token: NodeId::numeric(1, 0x1234_5678),
            request_handle: 7,
            timeout_hint: 10_000,
            ..RequestHeader::default()
        },
        max_age: 0.0,
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: operations,
    };
    let mut message = Vec::new();
    let mut encoder = Encoder::new(&mut message);
    NodeId::numeric(0, ReadRequest::ENCODING_ID).encode(&mut encoder);
    request.encode(&mut encoder);
    message
}

fn body_of(message: &[u8]) -> Result<Vec<u8>, String> {
    let peek = RequestPeek::parse(message, DecodeLimits::DEFAULT).map_err(|error| error.to_string())?;
    Ok(peek.body.to_vec())
}

fn writes() -> Vec<u8> {
    let writes: Vec<WriteValue> = (1..=100)
        .map(|number| WriteValue {
            node_id: world::kept(number),
            attribute_id: AttributeId::VALUE.0,
            value: DataValue::new(f64::from(number)),
            ..WriteValue::default()
        })
        .collect();
    let mut body = Vec::new();
    writes.encode(&mut Encoder::new(&mut body));
    body
}

fn browse() -> Vec<u8> {
    let description = BrowseDescription {
        node_id: NodeId::numeric(0, ids::object::SERVER),
        browse_direction: BrowseDirection::FORWARD,
        reference_type_id: NodeId::numeric(0, ids::reference_type::HIERARCHICAL_REFERENCES),
        include_subtypes: true,
        node_class_mask: 0,
        result_mask: 63,
    };
    let mut body = Vec::new();
    let mut encoder = Encoder::new(&mut body);
    ViewDescription::default().encode(&mut encoder);
    encoder.u32(0);
    vec![description].encode(&mut encoder);
    body
}

impl Bench {
    pub(crate) fn new(keys: &Keys) -> Result<Self, String> {
        let messages: Vec<Vec<u8>> = (1..=world::KEPT)
            .map(|number| message(vec![value_of(world::kept(number))]))
            .collect();
        let bodies: Result<Vec<Vec<u8>>, String> = messages.iter().map(|message| body_of(message)).collect();
        let on_demand = (1..=world::ON_DEMAND).map(|number| message(vec![value_of(world::on_demand(number))]));
        let on_demand: Result<Vec<Vec<u8>>, String> = on_demand.map(|message| body_of(&message)).collect();
        let number = NodeId::numeric(0, ids::variable::SERVER_SERVER_CAPABILITIES_MAX_ARRAY_LENGTH);
        Ok(Self {
            space: world::space()?,
            call: world::caller(),
            points: ContinuationPoints::new(),
            messages,
            bodies: bodies?,
            number: body_of(&message(vec![value_of(number)]))?,
            hundred: body_of(&message(
                (1..=100).map(|number| value_of(world::kept(number))).collect(),
            ))?,
            on_demand: on_demand?,
            writes: writes(),
            browse: browse(),
            out: Vec::with_capacity(1 << 16),
            plain: Pair::open(SecurityPolicy::None, keys)?,
            secure: Pair::open(SecurityPolicy::Basic256Sha256, keys)?,
            turns: Turns::new()?,
        })
    }

    fn context(call: &CallContext) -> ServiceContext<'_> {
        ServiceContext {
            call,
            now: world::now(),
            decode: DecodeLimits::DEFAULT,
            max_response_size: 1 << 24,
        }
    }

    /// One Read, from the snapshot to the response body.
    fn read(space: &AddressSpace, call: &CallContext, body: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let snapshot = space.load();
        let done = services::read(&snapshot, &Self::context(call), body, &mut Encoder::new(out));
        assert_eq!(done, Ok(Progress::Done));
    }
}

/// Type id, header and all operations of a Read of one node.
#[inline(never)]
fn measured_peek_read(bench: &mut Bench, count: u32) {
    for (_, message) in (0..count).zip(bench.messages.iter().cycle()) {
        let limits = DecodeLimits::DEFAULT;
        let view = match RequestPeek::parse(message, limits) {
            Ok(peek) => ReadView::parse(peek.body, limits),
            Err(error) => Err(error),
        };
        match view {
            Ok(view) => assert_eq!(view.nodes_to_read.len(), 1),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Read of one scalar that the host keeps, by a string id.
#[inline(never)]
fn measured_read_scalar(bench: &mut Bench, count: u32) {
    for (_, body) in (0..count).zip(bench.bodies.iter().cycle()) {
        Bench::read(&bench.space, &bench.call, body, &mut bench.out);
    }
}

/// Read of one scalar of namespace 0, by a numeric id.
#[inline(never)]
fn measured_read_number(bench: &mut Bench, count: u32) {
    for _ in 0..count {
        Bench::read(&bench.space, &bench.call, &bench.number, &mut bench.out);
    }
}

/// Read of a hundred scalars in one request.
#[inline(never)]
fn measured_read_100(bench: &mut Bench, count: u32) {
    for _ in 0..count {
        Bench::read(&bench.space, &bench.call, &bench.hundred, &mut bench.out);
    }
}

/// 64 Reads of one on-demand value each, answered by one call of their manager.
#[inline(never)]
fn measured_read_on_demand_64(bench: &mut Bench, count: u32) {
    for _ in 0..count {
        let snapshot = bench.space.snapshot();
        bench.out.clear();
        let mut batch = ReadBatch::new(snapshot, bench.call.clone(), world::now(), DecodeLimits::DEFAULT);
        let until = Until {
            mono: bench.call.deadline,
            utc: bench.call.deadline_utc,
        };
        for body in &bench.on_demand {
            let pushed = batch.push(body, until, 1 << 24);
            assert!(pushed.is_ok(), "{pushed:?}");
        }
        let mut asking = batch.ask();
        let mut answered = 0;
        while let Some(read) = at_once(asking.next()) {
            let done = asking.answer(read, world::now().mono, &mut Encoder::new(&mut bench.out));
            assert_eq!(done, Ok(()));
            answered += 1;
        }
        assert_eq!(answered, world::ON_DEMAND);
    }
}

/// Write of a hundred scalars to cells in one request.
#[inline(never)]
fn measured_write_100(bench: &mut Bench, count: u32) {
    for _ in 0..count {
        bench.out.clear();
        let snapshot = bench.space.load();
        let context = Bench::context(&bench.call);
        let done = services::write(&snapshot, &context, &bench.writes, &mut Encoder::new(&mut bench.out));
        assert_eq!(done, Ok(Progress::Done));
    }
}

/// Browse of the Server object, hierarchical references forward, all fields.
#[inline(never)]
fn measured_browse_server(bench: &mut Bench, count: u32) {
    for _ in 0..count {
        bench.out.clear();
        let snapshot = bench.space.load();
        let context = Bench::context(&bench.call);
        let out = &mut Encoder::new(&mut bench.out);
        let done = services::browse(&snapshot, &context, &mut bench.points, &bench.browse, out);
        assert_eq!(done, Ok(()));
    }
}

const MESSAGE: [u8; 128] = [0x5a; 128];

/// Sealing and opening a message without security.
#[inline(never)]
fn measured_channel_none(bench: &mut Bench, count: u32) {
    for _ in 0..count {
        bench.plain.pass(&MESSAGE);
    }
}

/// Sealing and opening a message that is signed and encrypted.
#[inline(never)]
fn measured_channel_basic256sha256(bench: &mut Bench, count: u32) {
    for _ in 0..count {
        bench.secure.pass(&MESSAGE);
    }
}

/// Admission of an entry for each of four owners, and taking them again.
#[inline(never)]
fn measured_queue_admit_take_4(bench: &mut Bench, count: u32) {
    for number in 0..count {
        for owner in &bench.turns.owners {
            let ticket = bench.turns.queue.admit(owner, u64::from(number));
            assert!(ticket.is_ok(), "the queue is full");
        }
        for _ in &bench.turns.owners {
            let taken = bench.turns.queue.take(free);
            assert!(taken.is_some(), "an entry is lost");
        }
    }
}

/// Capacity is there.
fn free(_work: &u64) -> Result<(), backplane_queue::fair::Blocked> {
    Ok(())
}

/// The output of a future that does not wait.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the manager waits for something"),
    }
}
