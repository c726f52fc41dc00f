//! Full queues: what is lost, and the event that says so.

use super::super::queue::{EventQueue, Queued};
use super::*;

fn drain(queue: &mut EventQueue) -> Vec<String> {
    let shown = |event: Arc<Event>| match event.field(&[QualifiedName::new(2, "Level")]) {
        Some(Variant::Int32(level)) => level.to_string(),
        _ => {
            assert_eq!(*event.event_type(), NodeId::standard(3035));
            assert_eq!(*event.source(), NodeId::standard(2253));
            let name = event.field(&[QualifiedName::from("SourceName")]);
            assert_eq!(name, Some(&"Internal/EventQueueOverflow".into()));
            "overflow".to_owned()
        }
    };
    std::iter::from_fn(|| queue.pop()).map(shown).collect()
}

fn fill(queue: &mut EventQueue, levels: std::ops::Range<i32>) -> Vec<Queued> {
    levels.map(|level| queue.push(&event(level), now())).collect()
}

#[test]
fn overflow_comes_first_when_the_oldest_goes() {
    let mut queue = EventQueue::new(2, true);
    assert_eq!(fill(&mut queue, 0..3), [Queued::Added, Queued::Added, Queued::Lost]);
    assert_eq!(fill(&mut queue, 3..5), [Queued::Lost, Queued::Lost]);
    assert_eq!(queue.len(), 3, "the overflow takes no place");
    assert_eq!(drain(&mut queue), ["overflow", "3", "4"]);
    assert_eq!(fill(&mut queue, 5..7), [Queued::Added, Queued::Added]);
    assert_eq!(drain(&mut queue), ["5", "6"]);
}

#[test]
fn overflow_comes_last_when_the_newest_goes() {
    let mut queue = EventQueue::new(2, false);
    fill(&mut queue, 0..5);
    assert_eq!(drain(&mut queue), ["0", "1", "overflow"]);
    fill(&mut queue, 0..3);
    queue.pop();
    assert_eq!(fill(&mut queue, 3..5), [Queued::Added, Queued::Lost]);
    assert_eq!(drain(&mut queue), ["1", "overflow", "3", "overflow"]);
}

/// The symptom: an item with a queue of one loses events and says nothing.
#[test]
fn a_queue_of_one_says_that_events_were_lost() {
    for discard_oldest in [true, false] {
        let mut queue = EventQueue::new(1, discard_oldest);
        fill(&mut queue, 0..2);
        let expected = if discard_oldest {
            ["overflow", "1"]
        } else {
            ["0", "overflow"]
        };
        assert_eq!(drain(&mut queue), expected);
    }
}

#[test]
fn duplicates_are_discarded() {
    let mut queue = EventQueue::new(5, true);
    let once = event(1);
    assert_eq!(queue.push(&once, now()), Queued::Added);
    assert_eq!(
        queue.push(&event(1), now()),
        Queued::Added,
        "an equal event is another one"
    );
    assert_eq!(queue.push(&once, now()), Queued::Duplicate);
    assert_eq!(queue.len(), 2);
}

#[test]
fn resizing_keeps_order_and_reports_losses() {
    for (discard_oldest, expected) in [(true, ["overflow", "3", "4"]), (false, ["0", "1", "overflow"])] {
        let mut queue = EventQueue::new(10, true);
        fill(&mut queue, 0..5);
        assert_eq!(queue.resize(2, discard_oldest, now()), 3);
        assert_eq!(drain(&mut queue), expected);
    }
    let mut queue = EventQueue::new(2, true);
    fill(&mut queue, 0..3);
    assert_eq!(queue.resize(5, true, now()), 0);
    assert_eq!(drain(&mut queue), ["overflow", "1", "2"]);
}

#[test]
fn every_event_has_its_own_id_and_a_time_that_is_not_in_the_future() {
    let ids = EventIds::new([1, 2, 3, 4, 5, 6, 7, 8]);
    let (a, b) = (ids.next(), ids.next());
    assert_ne!(a, b);
    assert_eq!((a.bytes().len(), &a.bytes()[..8]), (16, &[1, 2, 3, 4, 5, 6, 7, 8][..]));
    let late = now().utc.saturating_add(Duration::from_secs(9));
    let early = DateTime::from_ticks(now().utc.ticks() - 5);
    for (given, expected) in [(Some(late), now().utc), (Some(early), early), (None, now().utc)] {
        let builder = level_event(1.0);
        let builder = match given {
            Some(time) => builder.time(time),
            None => builder,
        };
        let event = builder.build(ids.next(), now().utc);
        assert_eq!(
            event.field(&[QualifiedName::from("Time")]),
            Some(&Variant::DateTime(expected))
        );
        assert_eq!(
            event.field(&[QualifiedName::from("ReceiveTime")]),
            Some(&Variant::DateTime(now().utc))
        );
    }
    let severe = level_event(1.0)
        .severity(2000)
        .field("EventId", "mine")
        .build(ids.next(), now().utc);
    assert_eq!(
        severe.field(&[QualifiedName::from("Severity")]),
        Some(&Variant::UInt16(1000))
    );
    assert_eq!(
        severe.field(&[QualifiedName::from("EventId")]),
        Some(&Variant::ByteString(severe.id().clone()))
    );
}
