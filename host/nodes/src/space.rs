//! The address space: which managers are attached, and the immutable snapshot that readers hold for one request.
//!
//! Owns attaching, replacing and detaching of models, and the epoch that changes with the structure. It must not know how a manager runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use backplane_types::{DateTime, NodeId, QualifiedName, StatusCode};
use parking_lot::Mutex;

use crate::changes::{StructureChange, Watcher};
use crate::events::FieldTable;
use crate::graph::{Graph, NodeKey};
use crate::limits::Limits;
use crate::manager::NodeManager;
use crate::model::node::{Body, Node, Source};
use crate::model::{ChangeError, Model, ModelBuilder};
use crate::namespace::NamespaceTable;

/// A manager that is attached; never used again after it was detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ManagerId(u64);

/// One manager of a snapshot.
#[derive(Clone)]
pub(crate) struct Attached {
    pub(crate) id: ManagerId,
    pub(crate) manager: Arc<dyn NodeManager>,
    pub(crate) model: Arc<Model>,
}

/// Everything there is at one moment. Values change in it, the structure does not.
pub struct Snapshot {
    pub(crate) epoch: u64,
    pub(crate) graph: Arc<Graph>,
    /// In the order of the parts of the graph.
    pub(crate) attached: Vec<Attached>,
    pub(crate) limits: Limits,
    pub(crate) namespaces: Arc<NamespaceTable>,
    /// Filled when somebody monitors events.
    pub(crate) event_fields: FieldTable,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("epoch", &self.epoch)
            .field("managers", &self.attached.len())
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    fn new(epoch: u64, attached: Vec<Attached>, limits: Limits, namespaces: Arc<NamespaceTable>) -> Self {
        let models: Vec<Arc<Model>> = attached.iter().map(|entry| Arc::clone(&entry.model)).collect();
        Self {
            epoch,
            graph: Arc::new(Graph::new(&models, limits.max_type_depth, &namespaces)),
            attached,
            limits,
            namespaces,
            event_fields: FieldTable::new(),
        }
    }

    /// The number of this structure; another structure has another number.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Another number whenever what namespaces say about the rights on their nodes has changed, which may be without another [`epoch`](Self::epoch).
    #[must_use]
    pub fn rights_version(&self) -> u64 {
        self.graph.rights_version()
    }

    /// The limits the services enforce.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether there is such a node.
    #[must_use]
    pub fn contains(&self, id: &NodeId) -> bool {
        self.graph.find(id).is_some()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.attached.iter().map(|entry| entry.model.len()).sum()
    }

    /// The manager with this id.
    #[must_use]
    pub fn manager(&self, id: ManagerId) -> Option<&Arc<dyn NodeManager>> {
        self.attached
            .iter()
            .find(|entry| entry.id == id)
            .map(|entry| &entry.manager)
    }

    /// The model of a manager.
    #[must_use]
    pub fn model(&self, id: ManagerId) -> Option<&Arc<Model>> {
        self.attached
            .iter()
            .find(|entry| entry.id == id)
            .map(|entry| &entry.model)
    }

    /// The manager that a node belongs to.
    #[must_use]
    pub fn owner(&self, id: &NodeId) -> Option<ManagerId> {
        let key = self.graph.find(id)?;
        self.attached.get(key.slot as usize).map(|entry| entry.id)
    }

    /// The manager and the tag of a variable, if the manager wants to know what is monitored.
    #[must_use]
    pub fn demand(&self, id: &NodeId) -> Option<(ManagerId, u32)> {
        let key = self.graph.find(id)?;
        let attached = self.attached_at(key.slot)?;
        let tag = self.node(key)?.variable()?.tag;
        (tag != 0 && attached.manager.facets().demand).then_some((attached.id, tag))
    }

    /// Managers that want to know what is monitored.
    pub fn demanding(&self) -> impl Iterator<Item = (ManagerId, &Arc<dyn NodeManager>)> {
        let wanting = self.attached.iter().filter(|attached| attached.manager.facets().demand);
        wanting.map(|attached| (attached.id, &attached.manager))
    }

    pub(crate) fn node(&self, key: NodeKey) -> Option<&Node> {
        self.graph.node(key)
    }

    pub(crate) fn attached_at(&self, slot: u32) -> Option<&Attached> {
        self.attached.get(slot as usize)
    }
}

/// Why a model was not attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// Another manager has a node with the same id.
    #[error("node {node} belongs to manager {owner} already")]
    Duplicate {
        /// The node.
        node: NodeId,
        /// The name of the other manager.
        owner: String,
    },
    /// There are as many managers as the limit allows.
    #[error("more than {0} managers")]
    TooManyManagers(u32),
    /// The manager is not attached.
    #[error("no such manager")]
    Unknown,
}

impl AttachError {
    /// The status that fits best.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Duplicate { .. } => StatusCode::BAD_NODE_ID_EXISTS,
            Self::TooManyManagers(_) => StatusCode::BAD_OUT_OF_MEMORY,
            Self::Unknown => StatusCode::BAD_NOT_FOUND,
        }
    }
}

/// Why a change of an attached model was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// A step is wrong.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The changed model cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// See the module text.
pub struct AddressSpace {
    snapshot: ArcSwap<Snapshot>,
    /// Held while the structure changes: changes come one after the other.
    changing: Mutex<()>,
    next_manager: AtomicU64,
    namespaces: Arc<NamespaceTable>,
    limits: Limits,
    watcher: OnceLock<Watcher>,
}

impl std::fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressSpace")
            .field("snapshot", &self.snapshot.load())
            .finish_non_exhaustive()
    }
}

impl AddressSpace {
    /// An address space without nodes. Attach namespace 0 first: see `ns0`.
    #[must_use]
    pub fn new(limits: Limits, namespaces: Arc<NamespaceTable>) -> Self {
        Self {
            snapshot: ArcSwap::from_pointee(Snapshot::new(0, Vec::new(), limits, Arc::clone(&namespaces))),
            changing: Mutex::new(()),
            next_manager: AtomicU64::new(1),
            namespaces,
            limits,
            watcher: OnceLock::new(),
        }
    }

    /// From now on `watcher` is told of each change of the structure, right after it. It is called by whoever changes and while no other change can
    /// happen, so it must be quick and must not change anything itself. There can be one; false when there is one already.
    pub fn watch(&self, watcher: impl Fn(&StructureChange) + Send + Sync + 'static) -> bool {
        self.watcher.set(Watcher(Box::new(watcher))).is_ok()
    }

    /// The present structure, for one request.
    #[must_use]
    pub fn load(&self) -> Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// The present structure, to keep.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Changes whenever the structure changes.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.snapshot.load().epoch
    }

    /// The NamespaceArray.
    #[must_use]
    pub fn namespaces(&self) -> &Arc<NamespaceTable> {
        &self.namespaces
    }

    /// The limits everything in here keeps to.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Adds a manager with its model.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach(&self, manager: Arc<dyn NodeManager>, model: Model) -> Result<(ManagerId, Arc<Model>), AttachError> {
        let _changing = self.changing.lock();
        let old = self.snapshot.load_full();
        if old.attached.len() >= self.limits.max_managers as usize {
            return Err(AttachError::TooManyManagers(self.limits.max_managers));
        }
        no_duplicates(&old, None, &model)?;
        let id = ManagerId(self.next_manager.fetch_add(1, Ordering::Relaxed));
        let model = Arc::new(model);
        let mut attached = old.attached.clone();
        attached.push(Attached {
            id,
            manager,
            model: Arc::clone(&model),
        });
        self.swap(&old, attached);
        Ok((id, model))
    }

    /// Puts another generation of a manager in the place of the old one. Variables that both have keep their cell, and with it the last value and the
    /// version that sampling compares; a value declared anew counts only where nothing had been published. The answer is the model that is attached:
    /// cells must be taken from it, not from what was passed in.
    ///
    /// # Errors
    /// See [`AttachError`]; then nothing has changed.
    pub fn replace(
        &self,
        id: ManagerId,
        manager: Arc<dyn NodeManager>,
        model: Model,
    ) -> Result<Arc<Model>, AttachError> {
        let _changing = self.changing.lock();
        let old = self.snapshot.load_full();
        let mut attached = old.attached.clone();
        let entry = attached
            .iter_mut()
            .find(|entry| entry.id == id)
            .ok_or(AttachError::Unknown)?;
        no_duplicates(&old, Some(id), &model)?;
        let model = Arc::new(adopt_cells(model, &entry.model));
        *entry = Attached {
            id,
            manager,
            model: Arc::clone(&model),
        };
        self.swap(&old, attached);
        Ok(model)
    }

    /// Applies steps to the model of an attached manager: all of them or none.
    ///
    /// # Errors
    /// See [`UpdateError`]; then nothing has changed.
    pub fn update(&self, id: ManagerId, steps: &ModelBuilder) -> Result<Arc<Model>, UpdateError> {
        let _changing = self.changing.lock();
        let old = self.snapshot.load_full();
        let mut attached = old.attached.clone();
        let entry = attached
            .iter_mut()
            .find(|entry| entry.id == id)
            .ok_or(AttachError::Unknown)?;
        let changed = entry.model.changed(steps, &old)?;
        no_duplicates(&old, Some(id), &changed)?;
        let model = Arc::new(changed);
        entry.model = Arc::clone(&model);
        self.swap(&old, attached);
        Ok(model)
    }

    /// Removes a manager with all its nodes, and all references to them.
    ///
    /// # Errors
    /// [`AttachError::Unknown`].
    pub fn detach(&self, id: ManagerId) -> Result<(), AttachError> {
        let _changing = self.changing.lock();
        let old = self.snapshot.load_full();
        let attached: Vec<Attached> = old.attached.iter().filter(|entry| entry.id != id).cloned().collect();
        if attached.len() == old.attached.len() {
            return Err(AttachError::Unknown);
        }
        self.swap(&old, attached);
        Ok(())
    }

    /// Puts a status over the values of a manager's variables, all of them or those with the listed tags, until the next value. Values and source times stay.
    pub fn degrade(&self, id: ManagerId, tags: Option<&[u32]>, status: StatusCode, now: DateTime) {
        if let Some(model) = self.snapshot.load().model(id) {
            model.degrade(tags, status, now);
        }
    }

    fn swap(&self, old: &Arc<Snapshot>, attached: Vec<Attached>) {
        let new = Arc::new(Snapshot::new(
            old.epoch.wrapping_add(1),
            attached,
            self.limits,
            Arc::clone(&self.namespaces),
        ));
        self.snapshot.store(Arc::clone(&new));
        if let Some(watcher) = self.watcher.get() {
            let old = Arc::clone(old);
            (watcher.0)(&StructureChange { old, new });
        }
    }
}

/// Looks for nodes of `model` that a manager other than `own` has.
fn no_duplicates(snapshot: &Snapshot, own: Option<ManagerId>, model: &Model) -> Result<(), AttachError> {
    for other in snapshot.attached.iter().filter(|entry| Some(entry.id) != own) {
        if !model
            .namespaces
            .keys()
            .any(|namespace| other.model.namespaces.contains_key(namespace))
        {
            continue;
        }
        if let Some((_, node)) = model.nodes.iter().find(|(_, node)| other.model.contains(&node.id)) {
            return Err(AttachError::Duplicate {
                node: node.id.clone(),
                owner: other.manager.name().to_owned(),
            });
        }
    }
    Ok(())
}

/// Gives the variables of `model` the cells that `old` has for the same ids.
fn adopt_cells(mut model: Model, old: &Model) -> Model {
    let mut adopted = Vec::new();
    for (handle, node) in model.nodes.iter() {
        let Some(fresh) = node.variable() else { continue };
        let Source::Cell(fresh_cell) = &fresh.source else {
            continue;
        };
        let Some(before) = old
            .handle(&node.id)
            .and_then(|handle| old.nodes.get(handle))
            .and_then(Node::variable)
        else {
            continue;
        };
        let Source::Cell(cell) = &before.source else { continue };
        if Arc::ptr_eq(cell, fresh_cell) {
            continue;
        }
        let same_type = before.rule == fresh.rule && before.rank == fresh.rank;
        if fresh_cell.is_published() || !same_type {
            cell.write(fresh_cell.read());
        } else {
            cell.redeclare(fresh_cell.read());
        }
        adopted.push((handle, Arc::clone(cell)));
    }
    for (handle, cell) in adopted {
        if let Some(Node {
            body: Body::Variable(variable),
            ..
        }) = model.nodes.get_mut(handle)
        {
            variable.source = Source::Cell(cell);
        }
    }
    model
}

impl Snapshot {
    /// Follows a path of browse names along hierarchical references, for managers that bind to nodes that somebody else made.
    ///
    /// # Errors
    /// `BadNodeIdUnknown` for the start, `BadNoMatch` when the path leads nowhere.
    pub fn follow_names(&self, start: &NodeId, path: &[QualifiedName]) -> Result<NodeId, StatusCode> {
        let mut at = self.graph.find(start).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let hierarchical = self.graph.known.hierarchical.ok_or(StatusCode::BAD_NO_MATCH)?;
        for name in path.iter().take(self.limits.max_relative_path_elements as usize) {
            let next = self.graph.edges(at, 0).find(|(_, edge)| {
                edge.forward
                    && self.node(edge.target).is_some_and(|node| node.browse_name == *name)
                    && self.graph.is_a(edge.kind, hierarchical)
            });
            at = next.ok_or(StatusCode::BAD_NO_MATCH)?.1.target;
        }
        self.node(at)
            .map(|node| node.id.clone())
            .ok_or(StatusCode::BAD_NO_MATCH)
    }
}
