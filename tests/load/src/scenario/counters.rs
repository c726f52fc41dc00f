//! counters: variables that count their reads; whether every item was sampled as often as it should have been.

use std::time::Duration;

use backplane_types::TimestampsToReturn;
use mio::{Events, Poll};

use super::sub::watch;
use super::subscriber::{Subscriber, Wanted};
use super::to_usize;
use super::variables::{Variables, number};
use crate::closed::{Edge, Outcome, Problems};
use crate::error::{LoadError, setup};
use crate::report::Row;
use crate::run::{Meter, Run};
use crate::transport::SCRATCH;

/// The share of its samples that every item must have got.
const ENOUGH: f64 = 0.99;
/// How often the time is looked at when nothing comes.
const TICK: Duration = Duration::from_millis(50);

/// First and last value of an item in the window, and when they came.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    first: Option<(i64, Duration)>,
    last: Option<(i64, Duration)>,
}

impl Seen {
    fn note(&mut self, value: i64, now: Duration) {
        self.first.get_or_insert((value, now));
        self.last = Some((value, now));
    }

    /// Samples, as a share of those that were due between the first and the last notification.
    fn share(&self, sampling: Duration) -> f64 {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return 0.0;
        };
        let due = last.1.saturating_sub(first.1).as_secs_f64() / sampling.as_secs_f64();
        // Differences of counters of reads are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let got = last.0.saturating_sub(first.0) as f64;
        if due > 0.0 { got / due } else { 0.0 }
    }
}

pub(crate) fn run(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let load = run.load;
    let items = load.items.unwrap_or(1_000);
    let sampling = load.sampling.unwrap_or(10.0);
    let variables = Variables::find(&run.target, "c", items)?;
    let wanted = Wanted {
        subscriptions: 1,
        nodes: &variables.ids,
        publishing_ms: load.publishing.unwrap_or(1_000.0),
        sampling_ms: sampling,
        lifetime_count: 10_000,
        keep_alive_count: 10,
        queue: load.item_queue,
        timestamps: TimestampsToReturn::NEITHER,
    };
    let (sessions, _, _) = load.shape(run.scenario);
    let mut subscribers = Vec::new();
    for _ in 0..sessions {
        subscribers.push(Subscriber::open(&run.target, &wanted)?);
    }
    let sampling = Duration::from_secs_f64(sampling / 1_000.0);
    let mut meter = Meter::new(run);
    let (mut outcome, seen) = watch_counters(run, &mut subscribers, to_usize(items), &mut meter)?;
    let shares: Vec<f64> = seen.iter().map(|seen| seen.share(sampling)).collect();
    let worst = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let short = shares.iter().filter(|share| **share < ENOUGH).count();
    if short > 0 {
        outcome.problems.add(short as u64, || {
            format!("{short} items got less than 99 % of their samples")
        });
    }
    let mut row = run.row(&outcome, &meter.cost);
    let verdict = if short == 0 { "PASS" } else { "FAIL" };
    row.note = Some(format!(
        "{verdict}: {} items, the worst with {:.2} % of its samples",
        shares.len(),
        worst * 100.0
    ));
    Ok(vec![row])
}

fn watch_counters(
    run: &Run<'_>,
    subscribers: &mut [Subscriber],
    items: usize,
    meter: &mut Meter<'_>,
) -> Result<(Outcome, Vec<Seen>), LoadError> {
    let clock = run.target.clock;
    let mut poll = Poll::new()?;
    for (index, subscriber) in subscribers.iter_mut().enumerate() {
        watch(&poll, subscriber.transport(), index)?;
        subscriber.publish()?;
    }
    let mut events = Events::with_capacity(64);
    let mut scratch = vec![0; SCRATCH];
    let mut problems = Problems::default();
    let mut seen = vec![Seen::default(); items.saturating_mul(subscribers.len())];
    let begin = clock.elapsed().saturating_add(Duration::from_secs_f64(run.load.warmup));
    let mut began = None;
    let mut notifications = 0u64;
    loop {
        let now = clock.elapsed();
        match began {
            None if now >= begin => {
                meter.edge(Edge::Begin);
                began = Some(clock.elapsed());
            }
            Some(began) if now.saturating_sub(began).as_secs_f64() >= run.load.seconds => break,
            _ => {}
        }
        match poll.poll(&mut events, Some(TICK)) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            result => result?,
        }
        for event in events.iter().filter(|event| event.is_readable()) {
            let index = event.token().0;
            let Some(subscriber) = subscribers.get_mut(index) else {
                continue;
            };
            let first = index.saturating_mul(items);
            let mut more = true;
            while more {
                let now = clock.elapsed();
                more = subscriber.take(&mut scratch, &mut problems, &mut |item| {
                    if began.is_none() {
                        return;
                    }
                    notifications = notifications.saturating_add(1);
                    let place = first.saturating_add(to_usize(item.client_handle));
                    if let (Some(seen), Some(value)) = (seen.get_mut(place), number(&item.value.value)) {
                        seen.note(value, now);
                    }
                })? || event.is_read_closed();
            }
        }
    }
    let time = began.map_or(Duration::ZERO, |began| clock.elapsed().saturating_sub(began));
    meter.edge(Edge::End);
    if notifications == 0 {
        return Err(setup("no notification came"));
    }
    let outcome = Outcome {
        requests: notifications,
        time,
        problems,
        ..Outcome::default()
    };
    Ok((outcome, seen))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Seen;

    #[test]
    fn the_share_counts_from_the_first_notification_to_the_last() {
        let mut seen = Seen::default();
        let sampling = Duration::from_millis(10);
        assert_eq!(seen.share(sampling), 0.0);
        seen.note(1_000, Duration::from_secs(5));
        assert_eq!(seen.share(sampling), 0.0);
        seen.note(1_100, Duration::from_secs(6));
        seen.note(1_198, Duration::from_secs(7));
        assert!((seen.share(sampling) - 0.99).abs() < 1e-9);
    }
}
