//! Reads that share their managers' calls: one call for all, and nothing of one Read shows in another.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use backplane_nodes::services::{
    Asking, MAX_BATCHED_READS, MAX_BATCHED_TAGS, MAX_TAGS_PER_CALL, ReadBatch, Until, read_waiting,
};
use backplane_nodes::{
    AddressSpace, BoxFuture, CallContext, CallOutcome, Facets, Fault, Limits, Model, NodeManager, WriteOperation,
};
use backplane_types::{AttributeId, DataValue, DecodeLimits, Encoder, NodeId, ReadValueId, StatusCode, Variant, ids};

use crate::common::{
    bare, block_on, builder, caller, list, name, node, now, objects, read_body, read_value, standard, time,
};

/// One call of a manager, as it came.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    tags: Vec<u32>,
    max_age: f64,
    deadline: Duration,
}

/// Answers each tag with itself, when it is open.
#[derive(Default)]
struct Keeper {
    asked: Mutex<Vec<Asked>>,
    is_open: Mutex<bool>,
}

impl NodeManager for Keeper {
    fn name(&self) -> &str {
        "keeper"
    }

    fn facets(&self) -> Facets {
        Facets {
            reader: true,
            ..Facets::default()
        }
    }

    fn read<'a>(
        &'a self,
        call: &'a CallContext,
        tags: &'a [u32],
        max_age: f64,
    ) -> BoxFuture<'a, Result<Vec<DataValue>, Fault>> {
        self.asked.lock().unwrap().push(Asked {
            tags: tags.to_vec(),
            max_age,
            deadline: call.deadline,
        });
        Box::pin(poll_fn(move |_| {
            if *self.is_open.lock().unwrap() {
                Poll::Ready(Ok(tags.iter().map(|tag| value_of(*tag)).collect()))
            } else {
                Poll::Pending
            }
        }))
    }

    fn write<'a>(
        &'a self,
        _call: &'a CallContext,
        _writes: Vec<WriteOperation>,
    ) -> BoxFuture<'a, Result<Vec<StatusCode>, Fault>> {
        Box::pin(async { Err(Fault::new(StatusCode::BAD_NOT_WRITABLE, "")) })
    }

    fn call<'a>(
        &'a self,
        _call: &'a CallContext,
        _object: &'a NodeId,
        _tag: u32,
        _inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        Box::pin(async { Err(Fault::new(StatusCode::BAD_NOT_IMPLEMENTED, "")) })
    }

    fn misbehaved(&self, detail: &str) {
        panic!("{detail}");
    }
}

fn value_of(tag: u32) -> DataValue {
    if tag == 100 {
        DataValue::new(vec![tag as i32, tag as i32 + 1])
    } else {
        DataValue::new(tag as i32)
    }
}

struct Plant {
    space: AddressSpace,
    keepers: [Arc<Keeper>; 2],
}

/// Two managers, "A" and "B", with on-demand variables "A1", "A2" and so on, an array "A100", and a value the host keeps, "Kept".
fn plant() -> Plant {
    let space = bare(Limits::default());
    let keepers = [(); 2].map(|()| Arc::new(Keeper::default()));
    for (letter, keeper) in ["A", "B"].iter().zip(&keepers) {
        let mut steps = builder();
        for tag in (1..=4u32).chain([100]) {
            let text = format!("{letter}{tag}");
            let int = standard(ids::data_type::INT32);
            let first = if tag == 100 {
                DataValue::new(vec![0i32])
            } else {
                DataValue::default()
            };
            steps
                .variable(node(&text), objects(), name(&text), tag, int, first, 3)
                .on_demand(node(&text), 100.0);
        }
        if *letter == "A" {
            let int = standard(ids::data_type::INT32);
            steps.variable(node("Kept"), objects(), name("Kept"), 9, int, DataValue::new(-9i32), 3);
        }
        let model = Model::empty().changed(&steps, &space.snapshot()).unwrap();
        space.attach(Arc::clone(keeper) as Arc<dyn NodeManager>, model).unwrap();
    }
    Plant { space, keepers }
}

const ROOM: usize = 1 << 20;

fn until(seconds: u64) -> Until {
    Until {
        mono: Duration::from_secs(seconds),
        utc: time(seconds as i64),
    }
}

fn values_of(ids: &[&str]) -> Vec<ReadValueId> {
    ids.iter()
        .map(|id| read_value(&node(id), AttributeId::VALUE, ""))
        .collect()
}

fn body(ids: &[&str]) -> Vec<u8> {
    read_body(0.0, 3, &values_of(ids))
}

impl Plant {
    fn batch(&self) -> ReadBatch {
        ReadBatch::new(self.space.snapshot(), caller(), now(10), DecodeLimits::DEFAULT)
    }

    fn open(&self, which: usize) {
        *self.keepers[which].is_open.lock().unwrap() = true;
    }

    fn asked(&self, which: usize) -> Vec<Asked> {
        std::mem::take(&mut *self.keepers[which].asked.lock().unwrap())
    }
}

fn answer(asking: &Asking<'_>, index: usize) -> Result<Vec<u8>, StatusCode> {
    let mut out = Vec::new();
    asking.answer(index, Duration::from_secs(11), &mut Encoder::new(&mut out))?;
    Ok(out)
}

fn variants(bytes: &[u8]) -> Vec<Variant> {
    list::<DataValue>(bytes).into_iter().map(|value| value.value).collect()
}

/// The indexes that are ready, in the order they come, until one would have to wait.
fn ready(asking: &mut Asking<'_>) -> Vec<usize> {
    let mut context = Context::from_waker(Waker::noop());
    let mut indexes = Vec::new();
    loop {
        let mut next = Box::pin(asking.next());
        match next.as_mut().poll(&mut context) {
            Poll::Ready(Some(index)) => indexes.push(index),
            Poll::Ready(None) | Poll::Pending => return indexes,
        }
    }
}

#[test]
fn one_call_answers_all() {
    let plant = plant();
    plant.open(0);
    let mut batch = plant.batch();
    for ids in [&["A2"][..], &["A1", "A2"], &["A1"], &["Kept", "A3", "Nowhere", "A1"]] {
        batch.push(&body(ids), until(20), ROOM).unwrap();
    }
    let mut asking = batch.ask();
    assert_eq!(ready(&mut asking), [0, 1, 2, 3]);
    assert!(asking.is_done());
    let answers: Vec<Vec<Variant>> = (0..4).map(|index| variants(&answer(&asking, index).unwrap())).collect();
    let int = Variant::Int32;
    assert_eq!(answers[..3], [vec![int(2)], vec![int(1), int(2)], vec![int(1)]]);
    assert_eq!(answers[3], [int(-9), int(3), Variant::Empty, int(1)]);
    let asked = plant.asked(0);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].tags, [2, 1, 2, 1, 3, 1]);
}

#[test]
fn a_read_in_a_batch_answers_what_it_answers_alone() {
    let plant = plant();
    plant.open(0);
    plant.open(1);
    let ranged = |id: &str, range: &str| read_value(&node(id), AttributeId::VALUE, range);
    let mut bodies = vec![
        body(&["A1"]),
        body(&["B2", "A1", "A1"]),
        body(&["Kept"]),
        body(&["Nowhere"]),
        read_body(5.0, 0, &values_of(&["A4", "B4"])),
        read_body(1e12, 1, &values_of(&["A4"])),
    ];
    bodies.push(read_body(
        0.0,
        2,
        &[
            ranged("A100", "1"),
            ranged("A100", "7"),
            ranged("A100", "x"),
            ranged("A1", "0"),
            read_value(&node("A1"), AttributeId::NODE_CLASS, ""),
            ranged("A100", ""),
        ],
    ));
    let mut batch = plant.batch();
    for body in &bodies {
        batch.push(body, until(20), ROOM).unwrap();
    }
    let mut asking = batch.ask();
    assert_eq!(ready(&mut asking).len(), bodies.len());
    let call = caller();
    let cx = backplane_nodes::services::ServiceContext {
        call: &call,
        now: now(10),
        decode: DecodeLimits::DEFAULT,
        max_response_size: ROOM,
    };
    for (index, body) in bodies.iter().enumerate() {
        let mut alone = Vec::new();
        block_on(read_waiting(&plant.space.snapshot(), &cx, body, &mut alone)).unwrap();
        assert_eq!(answer(&asking, index).unwrap(), alone, "Read {index}");
    }
    let statuses: Vec<StatusCode> = list::<DataValue>(&answer(&asking, 6).unwrap())
        .iter()
        .map(DataValue::status)
        .collect();
    let (good, none) = (StatusCode::GOOD, StatusCode::BAD_INDEX_RANGE_NO_DATA);
    assert_eq!(
        statuses,
        [good, none, StatusCode::BAD_INDEX_RANGE_INVALID, none, good, good]
    );
}

#[test]
fn reads_share_a_call_with_those_that_want_values_of_about_the_same_age() {
    let plant = plant();
    let mut batch = plant.batch();
    let ages = [
        0.0,
        100.0,
        70.0,
        f64::from(i32::MAX),
        5_000.0,
        1e300,
        0.0,
        f64::INFINITY,
    ];
    for (seconds, age) in (20..).zip(ages) {
        batch
            .push(&read_body(age, 2, &values_of(&["A1"])), until(seconds), ROOM)
            .unwrap();
    }
    drop(batch.ask());
    let asked = |count: usize, max_age: f64, seconds: u64| Asked {
        tags: vec![1; count],
        max_age,
        deadline: Duration::from_secs(seconds),
    };
    // The least age and the latest deadline of those that share.
    let any = f64::from(i32::MAX);
    assert_eq!(
        plant.asked(0),
        [
            asked(2, 0.0, 26),
            asked(2, 70.0, 22),
            asked(3, any, 27),
            asked(1, 5_000.0, 24)
        ]
    );
}

#[test]
fn a_call_has_a_bounded_number_of_tags() {
    let plant = plant();
    plant.open(0);
    let mut batch = plant.batch();
    let many = vec![read_value(&node("A1"), AttributeId::VALUE, ""); 3_000];
    let mixed: Vec<ReadValueId> = (0..3_000u32)
        .map(|n| values_of(&[["A1", "A2", "A3"][n as usize % 3]]).remove(0))
        .collect();
    for operations in [&many, &mixed] {
        batch.push(&read_body(0.0, 3, operations), until(20), ROOM).unwrap();
    }
    let mut asking = batch.ask();
    assert_eq!(ready(&mut asking), [0, 1]);
    let sizes: Vec<usize> = plant.asked(0).iter().map(|asked| asked.tags.len()).collect();
    assert_eq!(sizes, [MAX_TAGS_PER_CALL, 6_000 - MAX_TAGS_PER_CALL]);
    let wanted: Vec<Variant> = (0..3_000).map(|n| Variant::Int32(n % 3 + 1)).collect();
    assert_eq!(variants(&answer(&asking, 1).unwrap()), wanted);
}

#[test]
fn what_is_wrong_with_one_read_is_no_other_s_affair() {
    let plant = plant();
    plant.open(0);
    plant.open(1);
    let mut batch = plant.batch();
    assert_eq!(batch.push(&body(&["A1"]), until(20), ROOM), Ok(0));
    let good = body(&["A2", "B2", "A3"]);
    for end in 0..good.len() {
        assert!(batch.push(&good[..end], until(99), ROOM).is_err(), "cut at {end}");
    }
    let mut no_text = body(&["A2", "Wxyz"]);
    let place = no_text.windows(4).position(|window| window == b"Wxyz").unwrap();
    no_text[place] = 0xff;
    assert_eq!(
        batch.push(&no_text, until(99), ROOM),
        Err(StatusCode::BAD_DECODING_ERROR)
    );
    let one = values_of(&["A4"]);
    let mut refused = |age, times, operations: &[ReadValueId]| {
        batch
            .push(&read_body(age, times, operations), until(99), ROOM)
            .unwrap_err()
    };
    assert_eq!(refused(0.0, 2, &[]), StatusCode::BAD_NOTHING_TO_DO);
    assert_eq!(refused(-1.0, 2, &one), StatusCode::BAD_MAX_AGE_INVALID);
    assert_eq!(refused(0.0, 4, &one), StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID);
    assert_eq!(batch.push(&body(&["A100", "A100", "A100"]), until(20), 20), Ok(1));
    assert_eq!(batch.push(&body(&["Kept", "A100", "A100"]), until(20), 20), Ok(2));
    assert_eq!(batch.push(&body(&["A2"]), until(11), ROOM), Ok(3));
    assert_eq!(batch.push(&body(&["A3"]), until(20), ROOM), Ok(4));
    let mut asking = batch.ask();
    assert_eq!(ready(&mut asking), [0, 1, 2, 3, 4]);
    assert_eq!(variants(&answer(&asking, 0).unwrap()), [Variant::Int32(1)]);
    assert_eq!(answer(&asking, 1), Err(StatusCode::BAD_RESPONSE_TOO_LARGE));
    assert_eq!(answer(&asking, 2), Err(StatusCode::BAD_RESPONSE_TOO_LARGE));
    assert_eq!(answer(&asking, 3), Err(StatusCode::BAD_TIMEOUT));
    assert_eq!(variants(&answer(&asking, 4).unwrap()), [Variant::Int32(3)]);
    assert_eq!(answer(&asking, 5), Err(StatusCode::BAD_INTERNAL_ERROR));
    let asked = plant.asked(0);
    assert_eq!((asked.len(), asked[0].deadline), (1, Duration::from_secs(20)));
    assert_eq!(asked[0].tags, [1, 100, 100, 100, 100, 100, 2, 3]);
    assert_eq!(plant.asked(1), []);
}

#[test]
fn a_read_waits_for_its_own_managers_only() {
    let plant = plant();
    plant.open(0);
    let mut batch = plant.batch();
    for ids in [&["B1"][..], &["A1"], &["A2", "B2"], &["A3"]] {
        batch.push(&body(ids), until(20), ROOM).unwrap();
    }
    let mut asking = batch.ask();
    assert_eq!(ready(&mut asking), [1, 3]);
    assert!(!asking.is_done());
    assert_eq!(variants(&answer(&asking, 1).unwrap()), [Variant::Int32(1)]);
    // Whoever gives up on B answers with what there is.
    let half = list::<DataValue>(&answer(&asking, 2).unwrap());
    assert_eq!(
        (half[0].status(), half[1].status()),
        (StatusCode::GOOD, StatusCode::BAD_TIMEOUT)
    );
    plant.open(1);
    assert_eq!(ready(&mut asking), [0, 2]);
    assert_eq!(ready(&mut asking), [0usize; 0]);
    assert_eq!(
        variants(&answer(&asking, 2).unwrap()),
        [Variant::Int32(2), Variant::Int32(2)]
    );
}

#[test]
fn a_batch_is_bounded() {
    let plant = plant();
    let mut batch = plant.batch();
    for _ in 0..MAX_BATCHED_READS {
        assert!(!batch.is_full());
        batch.push(&body(&["A1"]), until(20), ROOM).unwrap();
    }
    assert!(batch.is_full());
    assert_eq!(
        batch.push(&body(&["A1"]), until(20), ROOM),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
    assert_eq!(batch.len(), MAX_BATCHED_READS);
    let mut batch = plant.batch();
    let many = read_body(0.0, 3, &vec![read_value(&node("A1"), AttributeId::VALUE, ""); 9_000]);
    batch.push(&many, until(20), ROOM).unwrap();
    assert!(!batch.is_full());
    batch.push(&many, until(20), ROOM).unwrap();
    assert!(batch.is_full() && 18_000 >= MAX_BATCHED_TAGS);
}
