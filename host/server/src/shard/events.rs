//! Events on their way to the shards: one message for each event and each shard in which somebody listens, none otherwise.
//!
//! Owns the lanes: who listens where, how many events wait, and what was lost. What an event is belongs to the session crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use backplane_nodes::{Caller, Snapshot};
use backplane_session::Event;
use backplane_types::{MessageSecurityMode, NodeId, Now};
use parking_lot::Mutex;

use super::source::{Source, call_context};
use crate::roles;

/// Events that wait for one shard. Further ones are lost, and event items say so.
const MAX_WAITING: usize = 10_000;

/// Who may see an event, beside what RolePermissions say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Everybody.
    All,
    /// Security administrators on encrypted channels: audit events tell what others must not know.
    Auditors,
}

/// An event with what decides who sees it.
#[derive(Debug)]
pub(crate) struct Happened {
    pub(crate) event: Arc<Event>,
    /// Where it is seen.
    pub(crate) notifiers: Arc<[NodeId]>,
    pub(crate) audience: Audience,
}

impl Happened {
    /// Whether the user of a session may see it.
    pub(super) fn is_for(&self, caller: &Arc<Caller>, snapshot: &Snapshot, now: Now) -> bool {
        let admitted = match self.audience {
            Audience::All => true,
            Audience::Auditors => {
                let admin = NodeId::numeric(0, roles::SECURITY_ADMIN);
                caller.security_mode == MessageSecurityMode::SIGN_AND_ENCRYPT
                    && caller.roles.iter().any(|role| role.id == admin)
            }
        };
        let call = call_context(caller, now, std::time::Duration::ZERO);
        admitted && snapshot.may_receive(&call, self.event.event_type(), self.event.source())
    }

    /// Whether it is seen at the notifier of an item.
    pub(super) fn reaches(&self, source: &Source) -> bool {
        self.notifiers.contains(source.node_id())
    }
}

/// The events of one shard.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Event items of the shard.
    items: AtomicUsize,
    waiting: AtomicUsize,
    /// The first of those that were lost and not reported yet.
    lost: Mutex<Option<Arc<Happened>>>,
    lost_count: AtomicU64,
}

impl Lane {
    /// Whether there are event items in the shard.
    pub(super) fn has_items(&self) -> bool {
        self.items.load(Ordering::Acquire) > 0
    }

    /// A session has another number of event items.
    pub(super) fn count(&self, before: usize, after: usize) {
        self.items.fetch_add(after, Ordering::AcqRel);
        self.items.fetch_sub(before, Ordering::AcqRel);
    }

    /// Takes a place for an event; false when it is lost.
    pub(super) fn enter(&self, happened: &Arc<Happened>) -> bool {
        if self.waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING {
            return true;
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.lost_count.fetch_add(1, Ordering::Relaxed);
        self.lost.lock().get_or_insert_with(|| Arc::clone(happened));
        false
    }

    /// The event has arrived. Gives the first of those that were lost meanwhile, if any were.
    pub(super) fn leave(&self) -> Option<Arc<Happened>> {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.lost.lock().take()
    }

    /// How many were lost since the start.
    pub(super) fn lost(&self) -> u64 {
        self.lost_count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backplane_session::EventBuilder;

    #[test]
    fn a_full_lane_loses_and_remembers_the_first() {
        let happened = |id: u8| {
            let source = NodeId::numeric(0, 2253);
            Arc::new(Happened {
                event: EventBuilder::new([NodeId::numeric(0, 2041)], source, "Server")
                    .build(vec![id], Now::default().utc),
                notifiers: Arc::from([]),
                audience: Audience::All,
            })
        };
        let lane = Lane::default();
        for _ in 0..MAX_WAITING {
            assert!(lane.enter(&happened(1)));
        }
        assert!(!lane.enter(&happened(2)) && !lane.enter(&happened(3)));
        assert_eq!(lane.lost(), 2);
        let first = lane.leave().unwrap();
        assert_eq!(first.event.id().bytes(), [2]);
        assert!(lane.leave().is_none(), "reported once");
        assert!(lane.enter(&happened(4)));
    }
}
