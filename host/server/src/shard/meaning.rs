//! Monitored variables whose meaning can change: SemanticsChanged and StructureChanged (Part 8, 5.2; Part 4, 7.39.1).
//!
//! Owns which items of the shard have a variable with properties that can be written, and what these properties were at the last look. The
//! shard looks each time it looks for new structures, so a bit is at most that late. Properties that never change but with the structure cost
//! nothing here: old and new structure are compared.

use std::collections::HashMap;
use std::sync::Arc;

use backplane_nodes::{MeaningChange, Snapshot, ValueCell};
use backplane_session::ItemKey;
use backplane_types::{NodeId, StatusCode};

/// An item of the shard: its session, and which it is there.
pub(super) type Member = (u32, ItemKey);

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct Meanings {
    watched: HashMap<NodeId, Watched>,
    members: usize,
    /// When there are more members than this, those that are gone are looked for.
    prune_above: usize,
}

#[derive(Debug)]
struct Watched {
    cells: Vec<(Arc<ValueCell>, u64)>,
    members: Vec<Member>,
}

impl Meanings {
    /// An item monitors the value of this variable.
    pub(super) fn add(&mut self, snapshot: &Snapshot, node: &NodeId, member: Member) {
        if let Some(watched) = self.watched.get_mut(node) {
            watched.members.push(member);
            self.members += 1;
            return;
        }
        let cells = snapshot.meaning_cells(node);
        if cells.is_empty() {
            return;
        }
        let seen = |cell: Arc<ValueCell>| {
            let version = cell.version();
            (cell, version)
        };
        let watched = Watched {
            cells: cells.into_iter().map(seen).collect(),
            members: vec![member],
        };
        self.watched.insert(node.clone(), watched);
        self.members += 1;
    }

    /// Forgets everything: the structure is another.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The items whose properties were written since the last look.
    pub(super) fn changed(&mut self) -> Vec<Member> {
        let mut members = Vec::new();
        for watched in self.watched.values_mut() {
            let mut changed = false;
            for (cell, seen) in &mut watched.cells {
                let version = cell.version();
                changed |= std::mem::replace(seen, version) != version;
            }
            if changed {
                members.extend_from_slice(&watched.members);
            }
        }
        members
    }

    /// Forgets items that are gone, once there are twice as many as there were after the last time.
    pub(super) fn prune(&mut self, mut exists: impl FnMut(Member) -> bool) {
        if self.members <= self.prune_above.max(1_000) {
            return;
        }
        self.members = 0;
        self.watched.retain(|_, watched| {
            watched.members.retain(|member| exists(*member));
            self.members += watched.members.len();
            !watched.members.is_empty()
        });
        self.prune_above = self.members.saturating_mul(2);
    }
}

/// The bits that say what changed.
pub(super) fn bits(change: MeaningChange) -> u32 {
    let semantics = if change.semantics {
        StatusCode::SEMANTICS_CHANGED
    } else {
        0
    };
    let structure = if change.structure {
        StatusCode::STRUCTURE_CHANGED
    } else {
        0
    };
    semantics | structure
}
