//! Triggering: sampling items that report when another item gets something, as a client sees it.

#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use backplane_session::{Limits, TriggeringResults};
use backplane_types::{MonitoringMode, SetTriggeringRequest, StatusCode};
use support::{Bench, PARAMETERS, bench_with, request};

const GOOD: StatusCode = StatusCode::GOOD;
const UNKNOWN: StatusCode = StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
const SAMPLING: MonitoringMode = MonitoringMode::SAMPLING;
const REPORTING: MonitoringMode = MonitoringMode::REPORTING;
const DISABLED: MonitoringMode = MonitoringMode::DISABLED;

/// A subscription with items of nodes 1 to 5, all sampling; what they had at first is not seen by anybody.
struct Scene {
    it: Bench,
    id: u32,
    items: Vec<u32>,
}

fn scene() -> Scene {
    scene_with(Limits::default())
}

fn scene_with(limits: Limits) -> Scene {
    let mut it = bench_with(limits);
    let id = it.create(&PARAMETERS);
    for node in 1..=5 {
        it.set(node, f64::from(node));
    }
    // Sampled every 10 ms, published every 100 ms.
    let mut requests = [1, 2, 3, 4, 5].map(request);
    for request in &mut requests {
        request.requested_parameters.sampling_interval = 10.0;
    }
    let items = it.items_as(id, &[1, 2, 3, 4, 5], &requests);
    let mut scene = Scene { it, id, items };
    scene.it.publish_many(10);
    scene.it.run(150);
    scene.mode(&[0, 1, 2, 3, 4], SAMPLING);
    scene.it.run(1000);
    scene.it.answers.clear();
    scene.it.publish_many(10);
    scene
}

impl Scene {
    fn mode(&mut self, places: &[usize], mode: MonitoringMode) {
        let ids: Vec<u32> = places.iter().map(|place| self.items[*place]).collect();
        self.it
            .subscriptions
            .set_monitoring_mode(self.it.now, self.id, mode, &ids)
            .unwrap();
    }

    fn link(&mut self, trigger: u32, add: &[u32], remove: &[u32]) -> Result<TriggeringResults, StatusCode> {
        self.it.subscriptions.set_triggering(&SetTriggeringRequest {
            subscription_id: self.id,
            triggering_item_id: trigger,
            links_to_add: add.to_vec(),
            links_to_remove: remove.to_vec(),
            ..SetTriggeringRequest::default()
        })
    }

    /// Client handles and values of what is reported within some cycles after node `node` changed.
    fn change(&mut self, node: u32, value: f64) -> Vec<(u32, f64)> {
        self.it.set(node, value);
        self.reported()
    }

    fn reported(&mut self) -> Vec<(u32, f64)> {
        self.it.run(300);
        let messages = self.it.messages();
        let data = messages.iter().flat_map(|message| &message.data);
        data.map(|(handle, value)| (*handle, value.value.as_f64().unwrap()))
            .collect()
    }
}

#[test]
fn a_sampling_item_triggers_without_being_reported() {
    let mut s = scene();
    let items = s.items.clone();
    s.link(items[0], &[items[1]], &[]).unwrap();
    assert_eq!(s.change(2, 20.0), [], "nothing triggered yet");
    assert_eq!(s.change(2, 21.0), []);
    assert_eq!(
        s.change(1, 10.0),
        [(2, 20.0), (2, 21.0)],
        "all that was queued, and not the trigger"
    );
    assert_eq!(s.change(2, 22.0), [], "the trigger worked once");
    assert_eq!(s.change(1, 11.0), [(2, 22.0)]);
    assert_eq!(s.change(1, 12.0), [], "nothing new to report");
}

#[test]
fn a_reporting_item_triggers_and_is_reported() {
    let mut s = scene();
    let items = s.items.clone();
    s.mode(&[0], REPORTING);
    assert_eq!(s.reported(), []);
    s.link(items[0], &[items[1]], &[]).unwrap();
    s.change(2, 20.0);
    assert_eq!(s.change(1, 10.0), [(1, 10.0), (2, 20.0)]);
}

#[test]
fn the_order_of_samples_in_a_tick_does_not_matter() {
    for trigger in [0, 4] {
        let mut s = scene();
        let items = s.items.clone();
        s.link(items[trigger], &[items[2]], &[]).unwrap();
        s.it.set(3, 30.0);
        assert_eq!(s.change(u32::try_from(trigger).unwrap() + 1, 10.0), [(3, 30.0)]);
    }
}

#[test]
fn a_disabled_item_does_not_trigger_and_is_not_triggered() {
    let mut s = scene();
    let items = s.items.clone();
    s.link(items[0], &[items[1], items[2]], &[]).unwrap();
    s.mode(&[0, 1], DISABLED);
    s.change(2, 20.0);
    s.change(3, 30.0);
    assert_eq!(s.change(1, 10.0), [], "the trigger is disabled");
    s.mode(&[0], SAMPLING);
    assert_eq!(
        s.reported(),
        [(3, 30.0)],
        "its first sample triggers; item 2 is disabled"
    );
    s.mode(&[1], SAMPLING);
    assert_eq!(s.reported(), []);
    assert_eq!(s.change(1, 12.0), [(2, 20.0)], "links outlive a disabled time");
}

#[test]
fn disabling_forgets_that_the_trigger_fired() {
    for forget in [false, true] {
        let mut s = scene();
        let items = s.items.clone();
        s.link(items[0], &[items[1]], &[]).unwrap();
        s.change(2, 20.0);
        s.it.set(1, 10.0);
        s.it.run(20);
        assert!(
            s.it.answers.is_empty(),
            "sampled, but the publishing timer has not expired since"
        );
        if forget {
            s.mode(&[0], DISABLED);
        }
        assert_eq!(s.reported().is_empty(), forget);
    }
}

#[test]
fn a_reporting_linked_item_reports_anyway() {
    let mut s = scene();
    let items = s.items.clone();
    s.mode(&[1], REPORTING);
    s.reported();
    s.link(items[0], &[items[1]], &[]).unwrap();
    assert_eq!(s.change(2, 20.0), [(2, 20.0)]);
    assert_eq!(s.change(1, 10.0), []);
}

#[test]
fn links_are_many_to_many() {
    let mut s = scene();
    let items = s.items.clone();
    s.link(items[0], &[items[2], items[3]], &[]).unwrap();
    s.link(items[1], &[items[3], items[4]], &[]).unwrap();
    for node in 3..=5 {
        s.change(node, f64::from(node) * 10.0);
    }
    assert_eq!(s.change(1, 10.0), [(3, 30.0), (4, 40.0)]);
    s.change(4, 41.0);
    assert_eq!(s.change(2, 20.0), [(4, 41.0), (5, 50.0)]);
}

#[test]
fn results_per_link_and_removal_before_adding() {
    let mut s = scene();
    let items = s.items.clone();
    let results = s
        .link(items[0], &[items[1], 99, items[1], items[2]], &[items[1], 98])
        .unwrap();
    assert_eq!(results.add, [GOOD, UNKNOWN, GOOD, GOOD], "a duplicate is no error");
    assert_eq!(results.remove, [UNKNOWN, UNKNOWN], "there was no link yet");
    let results = s.link(items[0], &[items[1]], &[items[1], items[1], items[2]]).unwrap();
    assert_eq!(results.remove, [GOOD, UNKNOWN, GOOD]);
    assert_eq!(results.add, [GOOD]);
    s.change(2, 20.0);
    s.change(3, 30.0);
    assert_eq!(s.change(1, 10.0), [(2, 20.0)], "removed, then added again");
}

#[test]
fn errors_of_the_service() {
    let mut s = scene_with(Limits {
        max_operations: 6,
        max_triggering_links: 2,
        ..Limits::default()
    });
    let items = s.items.clone();
    assert_eq!(s.link(99, &[items[0]], &[]), Err(UNKNOWN));
    assert_eq!(s.link(items[0], &[], &[]), Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!(
        s.link(items[0], &[1, 1, 1, 1], &[1, 1, 1]),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
    let results = s
        .link(items[0], &[items[1], items[2], items[3], items[1]], &[])
        .unwrap();
    assert_eq!(
        results.add,
        [GOOD, GOOD, StatusCode::BAD_TOO_MANY_MONITORED_ITEMS, GOOD]
    );
    s.id = 77;
    assert_eq!(
        s.link(items[0], &[items[1]], &[]),
        Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
    );
}

#[test]
fn links_die_with_their_items() {
    let mut s = scene_with(Limits {
        max_triggering_links: 2,
        ..Limits::default()
    });
    let items = s.items.clone();
    s.link(items[0], &[items[1], items[2]], &[]).unwrap();
    s.it.subscriptions.delete_monitored_items(s.id, &[items[1]]).unwrap();
    let removed = s.link(items[0], &[items[3]], &[items[1]]).unwrap();
    assert_eq!(removed.remove, [UNKNOWN]);
    assert_eq!(removed.add, [GOOD], "the dead link does not count");
    s.it.subscriptions.delete_monitored_items(s.id, &[items[0]]).unwrap();
    s.change(3, 30.0);
    assert_eq!(s.change(1, 10.0), [], "nobody triggers any more");
    let results = s.link(items[4], &[items[2], items[3]], &[]).unwrap();
    assert_eq!(results.add, [GOOD, GOOD]);
    assert_eq!(s.change(5, 50.0), [(3, 30.0)]);
}

#[test]
fn a_link_does_not_work_for_what_came_before() {
    let mut s = scene();
    let items = s.items.clone();
    s.change(2, 20.0);
    s.change(3, 30.0);
    s.link(items[0], &[items[1]], &[]).unwrap();
    s.it.set(1, 10.0);
    s.it.run(20);
    assert!(
        s.it.answers.is_empty(),
        "sampled, but the publishing timer has not expired since"
    );
    assert_eq!(s.link(items[0], &[items[2]], &[]).unwrap().add, [GOOD]);
    assert_eq!(s.reported(), [(2, 20.0)]);
    assert_eq!(s.change(1, 11.0), [(3, 30.0)]);
}
