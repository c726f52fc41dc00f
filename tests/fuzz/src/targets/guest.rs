//! Values that a plugin hands over in encoded form: one Variant, and nothing behind it.
//!
//! Input: the bytes of an `encoded` value.

use std::time::Duration;

use backplane_nodes::{Stamps, ValueCell};
use backplane_types::{
    BinaryDecode, DataValue, DateTime, DecodeLimits, Decoder, Encoder, ExtensionObject, Now, StatusCode, Variant,
};

use crate::check::{encoded, round_trip, same};
use crate::feedback::note;

const NOW: Now = Now {
    mono: Duration::from_secs(1),
    utc: DateTime::MIN,
};

/// A value that is accepted goes into a value cell and comes out as it was: as a copy, in place, and in a response.
pub fn guest(data: &[u8]) {
    let mut decoder = Decoder::new(data, DecodeLimits::DEFAULT);
    let Ok(value) = round_trip::<Variant>(&mut decoder) else {
        return;
    };
    if !decoder.is_empty() {
        return;
    }
    note(value.built_in_type());
    let with_times = DataValue {
        value: value.clone(),
        source_timestamp: Some(DateTime::from_ticks(7)),
        server_timestamp: Some(DateTime::from_ticks(9)),
        ..DataValue::default()
    };
    let cell = ValueCell::waiting();
    cell.write(DataValue::new(1_i32));
    let version = cell.version();
    cell.write(with_times.clone());
    assert_ne!(cell.version(), version, "a write that nobody sees");
    let read = cell.read();
    assert!(read.is_same(&with_times), "{with_times:?} was read as {read:?}");
    cell.inspect(|inside, head| {
        assert!(inside.is_same(&value), "{value:?} lies in the cell as {inside:?}");
        assert_eq!(*head, with_times.head());
    });
    respond(&cell, &value);
    extension(&value);
}

/// What clients get is the same value.
fn respond(cell: &ValueCell, value: &Variant) {
    let mut response = Vec::new();
    let mut encoder = Encoder::new(&mut response);
    cell.encode(&mut encoder, Stamps::both(NOW));
    assert_eq!(encoder.error(), None, "{value:?} cannot be sent");
    let sent = DataValue::decode(&mut Decoder::new(&response, DecodeLimits::DEFAULT));
    let sent = sent.unwrap_or_else(|error| panic!("clients get {error} for {value:?}"));
    assert_eq!(sent.status(), StatusCode::GOOD);
    assert!(same(&sent.value, value), "{value:?} was sent as {:?}", sent.value);
}

/// A structure from a guest is never decoded on the way through.
fn extension(value: &Variant) {
    if let Variant::ExtensionObject(object) = value {
        let again = ExtensionObject::decode(&mut Decoder::new(&encoded(object.as_ref()), DecodeLimits::DEFAULT));
        assert_eq!(again.as_ref(), Ok(object.as_ref()));
    }
}
