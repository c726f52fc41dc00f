//! counters: variables that count their reads; whether every item was sampled as often as it should have been.

use std::time::Duration;

use backplane_types::TimestampsToReturn;
use mio::{Events, Poll};

use super::sub::watch;
use super::subscriber::{Subscriber, Wanted};
use super::to_usize;
use super::variables::{Variables, number};
use crate::clock::Clock;
use crate::closed::{Edge, Outcome, Problems};
use crate::error::{LoadError, setup};
use crate::link::Link;
use crate::report::Row;
use crate::run::{Meter, Run};
use crate::transport::SCRATCH;

/// The share of its samples that every item must have got: of a counter that the host keeps, and of one that a plugin is asked for.
const ENOUGH: f64 = 0.999;
const ENOUGH_ON_DEMAND: f64 = 0.99;
/// How often the time is looked at when nothing comes.
const TICK: Duration = Duration::from_millis(50);

/// First and last value of an item in the window, and when they came.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    first: Option<(i64, Duration)>,
    last: Option<(i64, Duration)>,
    /// Different values after the first.
    values: u64,
}

impl Seen {
    fn note(&mut self, value: i64, now: Duration) {
        self.first.get_or_insert((value, now));
        self.values += u64::from(self.last.is_some_and(|(last, _)| last != value));
        self.last = Some((value, now));
    }

    /// Samples, as a share of those that were due between the first and the last notification: by how far the counter went, and if every value
    /// was `queued`, by how many came.
    fn share(&self, sampling: Duration, queued: bool) -> f64 {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return 0.0;
        };
        let due = last.1.saturating_sub(first.1).as_secs_f64() / sampling.as_secs_f64();
        // Differences of counters of reads are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let got = if queued {
            self.values as f64
        } else {
            last.0.saturating_sub(first.0) as f64
        };
        if due > 0.0 { got / due } else { 0.0 }
    }
}

pub(crate) fn run(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let load = run.load;
    let items = load.items.unwrap_or(1_000);
    let sampling = load.sampling.unwrap_or(10.0);
    let (prefix, enough) = if load.asks(run.scenario) {
        ("c", ENOUGH_ON_DEMAND)
    } else {
        ("k", ENOUGH)
    };
    let variables = Variables::find(&run.target, prefix, items)?;
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
    let mut server = AtServer::open(run, &variables)?;
    let (mut outcome, seen) = watch_counters(run, &mut subscribers, to_usize(items), &mut meter, &mut server)?;
    let queued = load.item_queue > 1;
    let shares: Vec<f64> = seen.iter().map(|seen| seen.share(sampling, queued)).collect();
    let worst = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let short = shares.iter().filter(|share| **share < enough).count();
    if short > 0 {
        outcome.problems.add(short as u64, || {
            format!("{short} items got less than {} % of their samples", enough * 100.0)
        });
    }
    let at_server = server.worst(sampling, sessions)?;
    if at_server < enough {
        outcome
            .problems
            .add(1, || "the server's counters are behind".to_owned());
    }
    let mut row = run.row(&outcome, &meter.cost);
    row.worst_item_share = Some(worst);
    row.worst_item_share_at_server = Some(at_server);
    let verdict = if short == 0 && at_server >= enough {
        "PASS"
    } else {
        "FAIL"
    };
    row.note = Some(format!(
        "{verdict}: {} items, the worst with {:.2} % of its samples; {:.2} % as the server counts",
        shares.len(),
        worst * 100.0,
        at_server * 100.0
    ));
    Ok(vec![row])
}

/// The counters as the server has them, read at both edges of the window.
struct AtServer<'a> {
    link: Link,
    variables: &'a Variables,
    clock: Clock,
    /// Counters and the time of the reading.
    begin: (Vec<i64>, Duration),
}

impl<'a> AtServer<'a> {
    fn open(run: &Run<'_>, variables: &'a Variables) -> Result<Self, LoadError> {
        Ok(Self {
            link: Link::with_session(&run.target)?,
            variables,
            clock: run.target.clock,
            begin: (Vec::new(), Duration::ZERO),
        })
    }

    fn read(&mut self) -> Result<(Vec<i64>, Duration), LoadError> {
        let counters = self.variables.numbers(&mut self.link)?;
        Ok((counters, self.clock.elapsed()))
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        self.begin = self.read()?;
        Ok(())
    }

    /// The share of the counter that went the least far. One that is asked for goes one further for every session.
    fn worst(&mut self, sampling: Duration, sessions: u32) -> Result<f64, LoadError> {
        let (counters, at) = self.read()?;
        let due = at.saturating_sub(self.begin.1).as_secs_f64() / sampling.as_secs_f64().max(1e-9);
        let each = if self.variables.are_asked_for() {
            f64::from(sessions)
        } else {
            1.0
        };
        let gone = counters
            .iter()
            .zip(&self.begin.0)
            .map(|(end, begin)| end.saturating_sub(*begin));
        let least = gone.min().unwrap_or(0);
        // Far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let least = least as f64;
        Ok(least / (due * each).max(1.0))
    }
}

fn watch_counters(
    run: &Run<'_>,
    subscribers: &mut [Subscriber],
    items: usize,
    meter: &mut Meter<'_>,
    server: &mut AtServer<'_>,
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
                server.begin()?;
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
        assert_eq!(seen.share(sampling, false), 0.0);
        seen.note(1_000, Duration::from_secs(5));
        assert_eq!(seen.share(sampling, false), 0.0);
        seen.note(1_100, Duration::from_secs(6));
        seen.note(1_198, Duration::from_secs(7));
        assert!((seen.share(sampling, false) - 0.99).abs() < 1e-9);
        assert!((seen.share(sampling, true) - 0.01).abs() < 1e-9, "two values came");
    }
}
