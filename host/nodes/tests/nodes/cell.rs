//! The value cell: round trips, versions, what stays under a status, and that no reader ever sees half a write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backplane_nodes::{Stamps, ValueCell};
use backplane_types::{
    BinaryDecode, DataValue, DateTime, DecodeLimits, Decoder, Encoder, Guid, StatusCode, UaString, Variant,
};

use crate::common::{now, time};

fn samples() -> Vec<Variant> {
    vec![
        Variant::Boolean(true),
        Variant::SByte(-1),
        Variant::Byte(200),
        Variant::Int16(-300),
        Variant::UInt16(65_000),
        Variant::Int32(i32::MIN),
        Variant::UInt32(u32::MAX),
        Variant::Int64(i64::MIN),
        Variant::UInt64(u64::MAX),
        Variant::Float(-0.0),
        Variant::Double(f64::MAX),
        Variant::DateTime(time(3)),
        Variant::StatusCode(StatusCode::BAD_TIMEOUT),
        Variant::from("text"),
        Variant::String(UaString::NULL),
        Variant::Guid(Guid([7; 16])),
        Variant::from(vec![1i32, 2, 3]),
        Variant::from(Vec::<f64>::new()),
    ]
}

fn encoded(cell: &ValueCell, wanted: u32) -> DataValue {
    let mut bytes = Vec::new();
    cell.encode(
        &mut Encoder::new(&mut bytes),
        Stamps::from_wire(wanted, now(50)).unwrap(),
    );
    let mut decoder = Decoder::new(&bytes, DecodeLimits::DEFAULT);
    let value = DataValue::decode(&mut decoder).unwrap();
    assert!(decoder.is_empty());
    value
}

#[test]
fn keeps_every_kind_of_value() {
    let cell = ValueCell::waiting();
    for (number, value) in (1u64..).zip(samples()) {
        let written = DataValue {
            status: Some(StatusCode::UNCERTAIN),
            source_timestamp: Some(time(1)),
            server_timestamp: Some(time(2)),
            ..DataValue::new(value)
        };
        cell.write(written.clone());
        assert_eq!(cell.version(), number);
        assert_eq!(cell.read(), written);
        let seen = encoded(&cell, 2);
        assert!(seen.value.is_same(&written.value), "{seen:?}");
        assert_eq!(seen.status(), StatusCode::UNCERTAIN);
        assert_eq!(
            (seen.source_timestamp, seen.server_timestamp),
            (Some(time(1)), Some(time(50)))
        );
    }
}

#[test]
fn picoseconds_survive() {
    let cell = ValueCell::waiting();
    let written = DataValue {
        source_timestamp: Some(time(1)),
        source_picoseconds: Some(77),
        ..DataValue::new(5i32)
    };
    cell.write(written.clone());
    assert_eq!(cell.read(), written);
    assert_eq!(encoded(&cell, 0).source_picoseconds, Some(77));
    assert_eq!(encoded(&cell, 3).source_picoseconds, None);
}

#[test]
fn times_follow_what_is_asked_for() {
    let cell = ValueCell::new(DataValue {
        source_timestamp: Some(time(1)),
        ..DataValue::new(5i32)
    });
    let times = |wanted| {
        let value = encoded(&cell, wanted);
        (value.source_timestamp.is_some(), value.server_timestamp.is_some())
    };
    assert_eq!(
        [0, 1, 2, 3].map(times),
        [(true, false), (false, true), (true, true), (false, false)]
    );
    assert_eq!(
        Stamps::from_wire(4, now(0)).unwrap_err(),
        StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID
    );
}

#[test]
fn waits_for_a_first_value() {
    for cell in [ValueCell::waiting(), ValueCell::new(DataValue::default())] {
        assert_eq!(cell.status(), StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        let seen = encoded(&cell, 2);
        assert_eq!(seen.status(), StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        assert!(seen.value.is_empty() && seen.server_timestamp.is_some());
        cell.write(DataValue::new(1u8));
        assert_eq!(cell.status(), StatusCode::GOOD);
    }
}

#[test]
fn a_status_over_the_value_leaves_value_and_source_time() {
    let cell = ValueCell::waiting();
    cell.write(DataValue {
        source_timestamp: Some(time(1)),
        ..DataValue::new("kept")
    });
    let version = cell.version();
    cell.degrade(StatusCode::BAD_NO_COMMUNICATION, time(9));
    assert!(cell.is_degraded() && cell.version() > version);
    let held = cell.read();
    assert_eq!(held.value, Variant::from("kept"));
    assert_eq!(
        (held.source_timestamp, held.server_timestamp),
        (Some(time(1)), Some(time(9)))
    );
    // On the wire a bad value is no value, but has its times.
    let seen = encoded(&cell, 2);
    assert!(seen.value.is_empty());
    assert_eq!(
        (seen.source_timestamp, seen.server_timestamp),
        (Some(time(1)), Some(time(9)))
    );
    cell.write(DataValue::new("new"));
    assert!(!cell.is_degraded());
    cell.degrade(StatusCode::UNCERTAIN_LAST_USABLE_VALUE, time(9));
    assert_eq!(encoded(&cell, 3).value, Variant::from("new"));
}

#[test]
fn a_newer_declaration_counts_only_where_nothing_was_published() {
    let cell = ValueCell::new(DataValue::new(1i32));
    assert!(cell.redeclare(DataValue::new(2i32)), "only declared so far");
    let version = cell.version();
    assert!(!cell.redeclare(DataValue::new(2i32)), "the same value is no change");
    assert_eq!(cell.version(), version);
    cell.write(DataValue::new(3i32));
    assert!(!cell.redeclare(DataValue::new(4i32)));
    cell.degrade(StatusCode::BAD_NO_COMMUNICATION, time(1));
    assert!(!cell.redeclare(DataValue::default()), "no value is declared");
    assert!(cell.redeclare(DataValue::new(4i32)));
    assert_eq!(cell.read().value, Variant::Int32(4));
}

#[test]
fn writes_only_over_the_version_it_knows() {
    let cell = ValueCell::waiting();
    assert!(cell.write_if(0, DataValue::new(1i32)));
    assert!(!cell.write_if(0, DataValue::new(2i32)));
    assert_eq!((cell.version(), cell.read().value), (1, Variant::Int32(1)));
}

/// Every part of the value says the same number, so a mixture of two writes shows.
fn telling(number: u32) -> DataValue {
    let value = match number % 3 {
        0 => Variant::from(format!("{number}")),
        1 => Variant::UInt32(number),
        _ => Variant::from(vec![u64::from(number); 3]),
    };
    DataValue {
        value,
        status: Some(StatusCode(0x4000_0000 | (number & 0xffff))),
        source_timestamp: Some(DateTime::from_ticks(i64::from(number) + 1)),
        server_timestamp: Some(DateTime::from_ticks(i64::from(number) + 2)),
        ..DataValue::default()
    }
}

fn check(value: &DataValue) -> u32 {
    let number = u32::try_from(value.source_timestamp.unwrap().ticks() - 1).unwrap();
    assert_eq!(*value, telling(number));
    number
}

#[test]
fn no_reader_sees_half_a_write() {
    let cell = Arc::new(ValueCell::new(telling(0)));
    let done = Arc::new(AtomicBool::new(false));
    let writes = 40_000u32;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (cell, done) = (Arc::clone(&cell), Arc::clone(&done));
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let (version, value) = cell.read_versioned();
                    check(&value);
                    assert!(version >= last, "versions never go back");
                    last = version;
                    let mut bytes = Vec::new();
                    cell.encode(&mut Encoder::new(&mut bytes), Stamps::from_wire(0, now(1)).unwrap());
                    let seen = DataValue::decode(&mut Decoder::new(&bytes, DecodeLimits::DEFAULT)).unwrap();
                    let number = u32::try_from(seen.source_timestamp.unwrap().ticks() - 1).unwrap();
                    assert_eq!(seen.value, telling(number).value);
                    assert_eq!(seen.status, telling(number).status);
                }
            });
        }
        let writers: Vec<_> = (0..2u32)
            .map(|writer| {
                let cell = Arc::clone(&cell);
                scope.spawn(move || {
                    for number in 0..writes {
                        cell.write(telling(number * 2 + writer));
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(cell.version(), u64::from(writes) * 2);
    check(&cell.read());
}

#[test]
fn optimistic_writers_lose_nothing() {
    let cell = Arc::new(ValueCell::new(DataValue::new(0u64)));
    let rounds = 5_000u64;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    loop {
                        let (version, value) = cell.read_versioned();
                        let Variant::UInt64(count) = value.value else { panic!() };
                        if cell.write_if(version, DataValue::new(count + 1)) {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(cell.read().value, Variant::UInt64(rounds * 4));
}
