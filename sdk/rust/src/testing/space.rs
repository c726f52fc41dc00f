//! The address space of the fake host: nodes as the plugin declared them, and the checks that a host makes.

use std::collections::{HashMap, HashSet};

use crate::binary;
use crate::{Argument, DataValue, Fault, NodeId, QualifiedName, StatusCode, Value, ids};

/// What kind of node, and what only this kind has.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the same as the arguments of the contract")]
pub enum Class {
    Object {
        type_definition: NodeId,
    },
    Variable {
        tag: u32,
        data_type: NodeId,
        access: u32,
        property: bool,
    },
    Method {
        tag: u32,
        inputs: Vec<Argument>,
        outputs: Vec<Argument>,
    },
    ObjectType,
    VariableType {
        data_type: NodeId,
    },
    ReferenceType {
        inverse: String,
    },
    DataType {
        definition: Vec<u8>,
    },
}

/// A node that the plugin declared.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeNode {
    /// The node it was declared under.
    pub parent: NodeId,
    /// The browse name.
    pub name: QualifiedName,
    /// Its kind.
    pub class: Class,
    /// The value, for variables.
    pub value: DataValue,
    /// The minimum sampling interval in ms, if the value is asked for.
    pub on_demand: Option<f64>,
    /// EURange and unit, if it is an AnalogItem.
    pub analog: Option<(f64, f64, String)>,
    /// Attributes that were set by number; a later one wins.
    pub attributes: HashMap<u32, Value>,
    /// Whether the value was published or written, and outlives the plugin that declared it.
    pub(crate) is_published: bool,
}

impl FakeNode {
    fn value_rank(&self) -> i32 {
        self.attributes
            .get(&ids::attribute::VALUE_RANK)
            .and_then(Value::get)
            .unwrap_or(-1)
    }

    /// The tag; 0 for none.
    pub fn tag(&self) -> u32 {
        match self.class {
            Class::Variable { tag, .. } | Class::Method { tag, .. } => tag,
            _ => 0,
        }
    }
}

/// One step of a change.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Add {
        id: NodeId,
        parent: NodeId,
        name: QualifiedName,
        class: Class,
    },
    Initial {
        id: NodeId,
        value: DataValue,
    },
    OnDemand {
        id: NodeId,
        minimum_sampling: f64,
    },
    Analog {
        id: NodeId,
        low: f64,
        high: f64,
        unit: String,
    },
    Attributes {
        id: NodeId,
        items: Vec<(u32, Value)>,
    },
    Reference {
        source: NodeId,
        reference_type: NodeId,
        forward: bool,
        target: NodeId,
    },
    Nodeset {
        document: Vec<u8>,
    },
    Bind {
        id: NodeId,
        tag: u32,
    },
    Remove {
        id: NodeId,
    },
}

/// A reference: source, type, forward, target.
pub(crate) type Reference = (NodeId, NodeId, bool, NodeId);

#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    pub(crate) nodes: HashMap<NodeId, FakeNode>,
    tags: HashMap<u32, NodeId>,
    pub(crate) references: Vec<Reference>,
    pub(crate) nodesets: Vec<Vec<u8>>,
    /// Values of the generation before, for nodes that are declared again.
    kept: HashMap<NodeId, DataValue>,
}

fn refused(status: StatusCode, why: impl std::fmt::Display, id: &NodeId) -> Fault {
    Fault::new(status, format!("{why}: {id}"))
}

impl Space {
    pub(crate) fn commit(&mut self, steps: Vec<Step>) -> Result<(), Fault> {
        let mut next = self.clone();
        for (number, step) in steps.into_iter().enumerate() {
            next.apply(step).map_err(|fault| Fault {
                detail: format!("step {number}: {}", fault.detail),
                ..fault
            })?;
        }
        for (id, node) in &next.nodes {
            if let Class::Variable { data_type, .. } = &node.class {
                next.check(data_type, node.value_rank(), &node.value.value)
                    .map_err(|status| refused(status, "the initial value is of another type", id))?;
            }
        }
        *self = next;
        Ok(())
    }

    fn apply(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::Add {
                id,
                parent,
                name,
                class,
            } => self.insert(id, parent, name, class),
            Step::Initial { id, value } => {
                let kept = self.kept.remove(&id);
                let node = self.variable(&id)?;
                node.is_published = kept.is_some();
                node.value = kept.unwrap_or(value);
                Ok(())
            }
            Step::OnDemand { id, minimum_sampling } => self.on_demand(&id, minimum_sampling),
            Step::Analog { id, low, high, unit } => self.analog(&id, low, high, unit),

            Step::Attributes { id, items } => self.node(&id).map(|node| node.attributes.extend(items)),
            Step::Reference {
                source,
                reference_type,
                forward,
                target,
            } => {
                for end in [&source, &target] {
                    if !self.exists(end) {
                        return Err(refused(
                            StatusCode::BAD_NODE_ID_UNKNOWN,
                            "an end of a reference does not exist",
                            end,
                        ));
                    }
                }
                self.references.push((source, reference_type, forward, target));
                Ok(())
            }
            Step::Nodeset { document } => {
                self.nodesets.push(document);
                Ok(())
            }
            Step::Bind { id, tag } => self.take_tag(tag, &id),
            Step::Remove { id } => self.remove(&id),
        }
    }

    fn exists(&self, id: &NodeId) -> bool {
        id.namespace == 0 || self.nodes.contains_key(id)
    }

    fn insert(&mut self, id: NodeId, parent: NodeId, name: QualifiedName, class: Class) -> Result<(), Fault> {
        if id.namespace == 0 || self.nodes.contains_key(&id) {
            return Err(refused(StatusCode::BAD_NODE_ID_EXISTS, "the id is taken", &id));
        }
        if !self.exists(&parent) {
            return Err(refused(
                StatusCode::BAD_PARENT_NODE_ID_INVALID,
                "the parent does not exist",
                &parent,
            ));
        }
        let node = FakeNode {
            parent,
            name,
            class,
            value: DataValue::good(Value::Empty),
            on_demand: None,
            analog: None,
            attributes: HashMap::new(),
            is_published: false,
        };
        self.take_tag(node.tag(), &id)?;
        self.nodes.insert(id, node);
        Ok(())
    }

    fn take_tag(&mut self, tag: u32, id: &NodeId) -> Result<(), Fault> {
        if tag != 0 && self.tags.insert(tag, id.clone()).is_some_and(|old| old != *id) {
            return Err(refused(
                StatusCode::BAD_NODE_ID_EXISTS,
                format_args!("tag {tag} is taken"),
                id,
            ));
        }
        Ok(())
    }

    fn node(&mut self, id: &NodeId) -> Result<&mut FakeNode, Fault> {
        self.nodes
            .get_mut(id)
            .ok_or_else(|| refused(StatusCode::BAD_NODE_ID_UNKNOWN, "there is no such node", id))
    }

    fn variable(&mut self, id: &NodeId) -> Result<&mut FakeNode, Fault> {
        let node = self.node(id)?;
        if matches!(node.class, Class::Variable { .. }) {
            Ok(node)
        } else {
            Err(refused(StatusCode::BAD_NODE_CLASS_INVALID, "not a variable", id))
        }
    }

    fn analog(&mut self, id: &NodeId, low: f64, high: f64, unit: String) -> Result<(), Fault> {
        let node = self.variable(id)?;
        let unit_only = low == 0.0 && high == 0.0 && !unit.is_empty();
        if !unit_only && (!low.is_finite() || !high.is_finite() || low >= high) {
            return Err(refused(
                StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
                format_args!("{low} to {high} is not a range"),
                id,
            ));
        }
        node.analog = Some((low, high, unit));
        Ok(())
    }

    fn on_demand(&mut self, id: &NodeId, minimum_sampling: f64) -> Result<(), Fault> {
        let node = self.variable(id)?;
        if node.tag() == 0 {
            return Err(refused(
                StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
                "an on-demand variable needs a tag",
                id,
            ));
        }
        node.on_demand = Some(minimum_sampling);
        Ok(())
    }

    fn remove(&mut self, id: &NodeId) -> Result<(), Fault> {
        self.node(id)?;
        let mut gone = HashSet::from([id.clone()]);
        loop {
            let more: Vec<_> = self
                .nodes
                .iter()
                .filter(|(id, node)| gone.contains(&node.parent) && !gone.contains(*id))
                .map(|(id, _)| id.clone())
                .collect();
            if more.is_empty() {
                break;
            }
            gone.extend(more);
        }
        self.nodes.retain(|id, _| !gone.contains(id));
        self.tags.retain(|_, id| !gone.contains(id));
        self.references
            .retain(|(source, _, _, target)| !gone.contains(source) && !gone.contains(target));
        Ok(())
    }

    pub(crate) fn resolve(&self, start: &NodeId, path: &[QualifiedName]) -> Result<NodeId, StatusCode> {
        path.iter().try_fold(start.clone(), |at, name| {
            let child = self
                .nodes
                .iter()
                .find(|(_, node)| node.parent == at && node.name == *name);
            child.map(|(id, _)| id.clone()).ok_or(StatusCode::BAD_NO_MATCH)
        })
    }

    pub(crate) fn set_by_tag(&mut self, tag: u32, value: DataValue) -> Result<(), StatusCode> {
        let id = self.tags.get(&tag).cloned().ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        self.set(&id, value)
    }

    pub(crate) fn set(&mut self, id: &NodeId, value: DataValue) -> Result<(), StatusCode> {
        let node = self.nodes.get(id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let Class::Variable { data_type, .. } = &node.class else {
            return Err(StatusCode::BAD_NODE_CLASS_INVALID);
        };
        self.check(data_type, node.value_rank(), &value.value)?;
        if let Some(node) = self.nodes.get_mut(id) {
            node.value = value;
            node.is_published = true;
        }
        Ok(())
    }

    /// An empty space that remembers the values of this one.
    pub(crate) fn next_generation(self) -> Space {
        let published = self.nodes.into_iter().filter(|(_, node)| node.is_published);
        Space {
            kept: published.map(|(id, node)| (id, node.value)).collect(),
            ..Space::default()
        }
    }

    pub(crate) fn mark(&mut self, tags: Option<&HashSet<u32>>, status: StatusCode) {
        for node in self
            .nodes
            .values_mut()
            .filter(|node| matches!(node.class, Class::Variable { .. }))
        {
            if tags.is_none_or(|tags| tags.contains(&node.tag())) {
                node.value.status = status.0;
            }
        }
    }

    /// Whether a value may be held by a variable of this data type and rank.
    pub(crate) fn check(&self, data_type: &NodeId, rank: i32, value: &Value) -> Result<(), StatusCode> {
        let (built_in, dimensions) = binary::shape(value).ok_or(StatusCode::BAD_DECODING_ERROR)?;
        if built_in == 0 {
            return Ok(());
        }
        let rank_fits = match rank {
            -1 => dimensions == 0,
            -2 => true,
            -3 => dimensions <= 1,
            0 => dimensions > 0,
            n => usize::try_from(n) == Ok(dimensions),
        };
        if rank_fits && self.fits(data_type, built_in) {
            Ok(())
        } else {
            Err(StatusCode::BAD_TYPE_MISMATCH)
        }
    }

    fn fits(&self, data_type: &NodeId, built_in: u8) -> bool {
        if let Some(node) = self.nodes.get(data_type) {
            return self.fits(&node.parent, built_in);
        }
        match data_type.identifier {
            crate::Identifier::Numeric(ids::BASE_DATA_TYPE) => true,
            crate::Identifier::Numeric(ids::NUMBER) => (2..=11).contains(&built_in),
            crate::Identifier::Numeric(ids::ENUMERATION) => built_in == 6,
            crate::Identifier::Numeric(ids::UTC_TIME) => built_in == 13,
            crate::Identifier::Numeric(ids::DURATION) => built_in == 11,
            crate::Identifier::Numeric(number) if number < 26 => number == u32::from(built_in),
            // Other types of namespace 0 are not modelled.
            _ => true,
        }
    }
}
