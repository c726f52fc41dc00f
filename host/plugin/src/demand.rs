//! What a plugin has been told about who watches its variables, and what it has not been told yet.
//!
//! Owns the difference between the two and the pace at which it is told. It must not know who watches, nor how the guest is called.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The fastest sampling interval in ms by tag, for every variable that somebody monitors.
pub(crate) type Watched = Arc<BTreeMap<u32, f64>>;

/// One instance's view of what is watched. A new instance has been told nothing.
pub(crate) struct Demand {
    current: watch::Receiver<Watched>,
    told: BTreeMap<u32, f64>,
    /// Not told again before.
    next: Instant,
    pause: Duration,
    most: usize,
}

impl Demand {
    /// At most `per_second` times in a second, with at most `most` variables at a time.
    pub(crate) fn new(current: watch::Receiver<Watched>, per_second: u32, most: usize) -> Self {
        Self {
            current,
            told: BTreeMap::new(),
            next: Instant::now(),
            pause: Duration::from_secs(1) / per_second.max(1),
            most: most.max(1),
        }
    }

    /// Returns when there is something to tell and it may be told. Nothing is lost when this is dropped.
    pub(crate) async fn due(&mut self) {
        loop {
            if self.has_news() {
                sleep_until(self.next).await;
                return;
            }
            if self.current.changed().await.is_err() {
                // Whoever watched is gone with the host.
                std::future::pending::<()>().await;
            }
        }
    }

    fn has_news(&mut self) -> bool {
        **self.current.borrow_and_update() != self.told
    }

    /// What has changed since it was told last: tags with their interval, none for those that nobody monitors any more. Counts as told.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<(u32, Option<f64>)> {
        let current = Arc::clone(&self.current.borrow());
        let told = &self.told;
        let gone = told
            .keys()
            .filter(|tag| !current.contains_key(tag))
            .map(|tag| (*tag, None));
        let new = current.iter().filter(|(tag, interval)| told.get(tag) != Some(interval));
        let new = new.map(|(tag, interval)| (*tag, Some(*interval)));
        let changes: Vec<_> = gone.chain(new).take(self.most).collect();
        for (tag, interval) in &changes {
            match interval {
                Some(interval) => self.told.insert(*tag, *interval),
                None => self.told.remove(tag),
            };
        }
        self.next = now.checked_add(self.pause).unwrap_or(now);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(items: &[(u32, f64)]) -> Watched {
        Arc::new(items.iter().copied().collect())
    }

    #[test]
    fn changes_are_told_together_and_not_too_often() {
        let (sender, receiver) = watch::channel(Watched::default());
        let mut demand = Demand::new(receiver, 4, 2);
        assert!(!demand.has_news(), "nobody watches, nothing is told");
        let now = Instant::now();
        sender.send_replace(watched(&[(1, 10.0), (2, 20.0), (3, 30.0)]));
        assert!(demand.has_news());
        assert_eq!(demand.take(now), [(1, Some(10.0)), (2, Some(20.0))]);
        assert!(demand.has_news(), "more than fits into a call");
        assert_eq!(demand.next, now + Duration::from_millis(250));
        assert_eq!(demand.take(now), [(3, Some(30.0))]);
        sender.send_replace(watched(&[(2, 5.0)]));
        sender.send_replace(watched(&[(2, 20.0), (3, 10.0)]));
        assert!(demand.has_news());
        assert_eq!(
            demand.take(now),
            [(1, None), (3, Some(10.0))],
            "what came and went is not told"
        );
        sender.send_replace(watched(&[(2, 5.0)]));
        sender.send_replace(watched(&[(2, 20.0), (3, 10.0)]));
        assert!(!demand.has_news());
        sender.send_replace(watched(&[]));
        assert!(demand.has_news());
        assert_eq!(demand.take(now), [(2, None), (3, None)]);
        assert!(!demand.has_news());
    }

    #[test]
    fn a_new_instance_is_told_everything() {
        let (sender, receiver) = watch::channel(watched(&[(7, 100.0)]));
        let now = Instant::now();
        let mut first = Demand::new(receiver.clone(), 4, 10);
        assert_eq!(first.take(now), [(7, Some(100.0))]);
        assert!(!first.has_news());
        let mut second = Demand::new(receiver, 4, 10);
        assert!(second.has_news());
        assert_eq!(second.take(now), [(7, Some(100.0))]);
        drop(sender);
        assert!(!second.has_news());
    }
}
