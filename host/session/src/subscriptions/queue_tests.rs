//! The overflow matrix: what remains, in which order, and who carries the bit.

use super::*;

fn value(number: i32) -> DataValue {
    DataValue::new(number)
}

fn queue(capacity: u32, discard_oldest: bool, count: i32) -> ItemQueue {
    let mut queue = ItemQueue::new(capacity, discard_oldest);
    for number in 1..=count {
        queue.push(value(number));
    }
    queue
}

fn newest(queue: &ItemQueue) -> Option<DataValue> {
    queue.newest().map(Kept::data_value)
}

fn marker() -> DataValue {
    DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN)
}

/// Everything to report: "3" a value, "3!" with the Overflow bit, "gone" the marker.
fn drain(queue: &mut ItemQueue) -> String {
    let mut seen = Vec::new();
    let mut left = queue.len();
    while let Some(text) = queue.send_next(|entry| {
        let bit = if entry.info_bits & OVERFLOW != 0 { "!" } else { "" };
        if entry.marker {
            format!("gone{bit}")
        } else {
            format!("{}{bit}", entry.value.data_value().value.as_f64().unwrap_or(f64::NAN))
        }
    }) {
        left -= 1;
        assert_eq!(queue.len(), left);
        seen.push(text);
    }
    assert_eq!(left, 0);
    seen.join(" ")
}

#[test]
fn overflow_matrix() {
    for (capacity, discard_oldest, count, expected) in [
        (1, true, 1, "1"),
        (1, true, 5, "5"),
        (1, false, 5, "5"),
        (2, true, 2, "1 2"),
        (2, true, 3, "2! 3"),
        (2, true, 5, "4! 5"),
        (2, false, 3, "1 3!"),
        (2, false, 5, "1 5!"),
        (4, true, 4, "1 2 3 4"),
        (4, true, 6, "3! 4 5 6"),
        (4, false, 6, "1 2 3 6!"),
        (0, true, 3, "3"),
    ] {
        let mut queue = queue(capacity, discard_oldest, count);
        assert_eq!(
            drain(&mut queue),
            expected,
            "{count} values in {capacity}, discardOldest {discard_oldest}"
        );
    }
}

#[test]
fn the_bit_goes_with_its_value_and_is_set_once() {
    let mut queue = queue(2, true, 3);
    assert_eq!(drain(&mut queue), "2! 3");
    queue.push(value(4));
    assert_eq!(drain(&mut queue), "4");
    let mut queue = super::ItemQueue::new(2, false);
    for number in 1..=3 {
        queue.push(value(number));
    }
    assert_eq!(drain(&mut queue), "1 3!");
    queue.resend();
    assert_eq!(drain(&mut queue), "3", "a resent value lost nothing");
}

#[test]
fn the_filter_sees_the_newest_value_without_info_bits() {
    let mut queue = queue(2, false, 3);
    assert_eq!(newest(&queue), Some(value(3)));
    drain(&mut queue);
    assert_eq!(newest(&queue), Some(value(3)), "also after it was reported");
    queue.clear();
    assert_eq!(queue.newest(), None);
}

#[test]
fn waiting_for_initial_data_is_overwritten_without_a_loss() {
    let mut queue = ItemQueue::new(1, true);
    queue.push(DataValue::from_status(StatusCode::BAD_WAITING_FOR_INITIAL_DATA));
    assert_eq!(queue.push(value(1)), Pushed::Replaced);
    assert_eq!(drain(&mut queue), "1");
    let mut queue = ItemQueue::new(3, true);
    queue.push(DataValue::from_status(StatusCode::BAD_WAITING_FOR_INITIAL_DATA));
    queue.push(value(1));
    queue.push(value(2));
    assert_eq!(drain(&mut queue), "1 2");
}

#[test]
fn the_marker_is_never_lost() {
    for (capacity, discard_oldest, expected) in [
        (1, true, "gone 9"),
        (1, false, "gone 9"),
        (3, true, "gone 7! 8 9"),
        (3, false, "gone 5 6 9!"),
    ] {
        let mut queue = queue(capacity, discard_oldest, 0);
        assert_eq!(queue.push_marker(marker()), 1);
        for number in 5..=9 {
            queue.push(value(number));
        }
        assert_eq!(drain(&mut queue), expected, "{capacity} {discard_oldest}");
    }
}

#[test]
fn the_marker_takes_no_place_of_a_value() {
    let mut queue = queue(2, true, 2);
    assert_eq!(queue.push_marker(marker()), 1);
    assert_eq!(drain(&mut queue), "1 2 gone");
    let mut queue = super::ItemQueue::new(2, false);
    queue.push(value(1));
    queue.push(value(2));
    queue.push_marker(marker());
    assert_eq!(queue.push(value(3)), Pushed::Lost);
    assert_eq!(drain(&mut queue), "1 gone 3!");
}

#[test]
fn only_one_marker_waits() {
    let mut queue = queue(1, true, 0);
    assert_eq!(queue.push_marker(marker()), 1);
    assert_eq!(queue.push_marker(marker()), 0);
    queue.push(value(1));
    assert_eq!(
        queue.push_marker(marker()),
        0,
        "the earlier marker moves behind the value"
    );
    assert_eq!(drain(&mut queue), "1 gone");
    assert_eq!(queue.push_marker(marker()), 1);
}

#[test]
fn resizing_keeps_the_order() {
    for (capacity, discard_oldest, expected) in [
        (10, true, "1 2 3 4"),
        (3, true, "2! 3 4"),
        (2, true, "3! 4"),
        (3, false, "1 2 4!"),
        (2, false, "1 4!"),
        (1, true, "4"),
        (1, false, "4"),
    ] {
        let mut queue = queue(4, true, 4);
        queue.resize(capacity, discard_oldest);
        assert_eq!(drain(&mut queue), expected, "to {capacity}, {discard_oldest}");
    }
    let mut queue = queue(2, true, 2);
    queue.resize(4, true);
    queue.push(value(3));
    assert_eq!(drain(&mut queue), "1 2 3");
}

#[test]
fn a_queue_of_one_keeps_the_marker_and_the_newest_value() {
    for discard_oldest in [true, false] {
        let mut queue = queue(1, discard_oldest, 1);
        queue.push_marker(marker());
        assert_eq!(queue.push(value(2)), Pushed::Replaced);
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&mut queue), "gone 2");
    }
}

#[test]
fn resizing_loses_values_and_never_the_marker() {
    for (capacity, discard_oldest, expected) in [
        (3, true, "2! 3 4 gone"),
        (3, false, "1 2 4! gone"),
        (2, false, "1 4! gone"),
        (1, true, "4 gone"),
    ] {
        let mut queue = queue(4, true, 4);
        queue.push_marker(marker());
        queue.resize(capacity, discard_oldest);
        assert_eq!(drain(&mut queue), expected, "to {capacity}, {discard_oldest}");
    }
    let mut queue = queue(4, true, 2);
    queue.push_marker(marker());
    queue.push(value(3));
    queue.resize(2, false);
    assert_eq!(drain(&mut queue), "1 gone 3!");
}
