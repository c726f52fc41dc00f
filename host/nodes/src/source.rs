//! A resolved attribute: what a monitored item holds, so that sampling it needs no look-up.
//!
//! Owns the checks of one operation of Read (node, attribute, index range, encoding, rights) and the ways to read what passed them.

use std::sync::Arc;

use backplane_types::view::{NodeIdBytes, QualifiedNameRef};
use backplane_types::{
    AttributeId, BuiltInType, DataValue, DataValueHead, DateTime, Encoder, NodeId, Now, NumericRange, PlainValue,
    QualifiedName, StatusCode, Variant,
};

use crate::attribute;
use crate::cell::ValueCell;
use crate::graph::{Graph, NodeKey};
use crate::manager::CallContext;
use crate::model::node::{Body, LiveValue, Node, Source, Variable};
use crate::rights::{self, permission};
use crate::space::{ManagerId, Snapshot};
use crate::timestamps::Stamps;
use crate::typing::TypeRule;

/// Where a value comes from.
#[derive(Debug, Clone)]
enum Origin {
    Cell(Arc<ValueCell>),
    OnDemand {
        manager: ManagerId,
        tag: u32,
    },
    Live(LiveValue),
    /// A value that does not change while the structure stands.
    Value(Arc<DataValue>),
    /// Another attribute than Value.
    Attribute(Arc<Variant>),
}

/// One attribute of one node, ready to be read again and again. It stays what it was when the structure changes (`Snapshot::epoch`); resolve it again then.
#[derive(Debug, Clone)]
pub struct ReadSource {
    origin: Origin,
    /// Few have one.
    range: Option<Box<NumericRange>>,
}

impl ReadSource {
    /// Of a node that is not there: `BadNodeIdUnknown`.
    #[must_use]
    pub fn missing() -> Self {
        Self {
            origin: Origin::Value(Arc::new(DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN))),
            range: None,
        }
    }

    /// Changes whenever the value may have changed; none where only reading tells.
    #[inline]
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        match &self.origin {
            Origin::Cell(cell) => Some(cell.version()),
            Origin::Value(_) | Origin::Attribute(_) => Some(0),
            Origin::OnDemand { .. } | Origin::Live(_) => None,
        }
    }

    /// The manager to ask, and the tag, if the value is on demand.
    #[inline]
    #[must_use]
    pub fn on_demand(&self) -> Option<(ManagerId, u32)> {
        match self.origin {
            Origin::OnDemand { manager, tag } => Some((manager, tag)),
            _ => None,
        }
    }

    /// The cell, if the host keeps the value.
    #[inline]
    #[must_use]
    pub fn cell(&self) -> Option<&Arc<ValueCell>> {
        match &self.origin {
            Origin::Cell(cell) => Some(cell),
            _ => None,
        }
    }

    /// Whether the value stays as it is for as long as the structure stands.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        matches!(self.origin, Origin::Value(_) | Origin::Attribute(_))
    }

    /// Whether both read the same thing, so that nothing needs to be reported when one takes the place of the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.range == other.range
            && match (&self.origin, &other.origin) {
                (Origin::Cell(a), Origin::Cell(b)) => Arc::ptr_eq(a, b),
                (Origin::OnDemand { manager, tag }, Origin::OnDemand { manager: m, tag: t }) => {
                    manager == m && tag == t
                }
                (Origin::Live(a), Origin::Live(b)) => Arc::ptr_eq(a, b),
                (Origin::Value(a), Origin::Value(b)) => a.is_same(b),
                (Origin::Attribute(a), Origin::Attribute(b)) => a.is_same(b),
                _ => false,
            }
    }

    /// The present value, with both times; none if it is on demand.
    #[must_use]
    pub fn read(&self, now: Now) -> Option<DataValue> {
        if let Some(value) = self.read_plain(now) {
            return Some(value.data_value());
        }
        let mut value = match &self.origin {
            Origin::Cell(cell) => cell.read(),
            Origin::Live(live) => (live.0)(now),
            Origin::Value(value) => value.as_ref().clone(),
            Origin::Attribute(value) => DataValue::new(value.as_ref().clone()),
            Origin::OnDemand { .. } => return None,
        };
        let head = Stamps::both(now).head(&value.head());
        value.server_timestamp = head.server_timestamp;
        Some(self.cut(value))
    }

    /// As [`read`](Self::read), for a plain value that the host keeps; none for everything else.
    #[inline]
    #[must_use]
    pub fn read_plain(&self, now: Now) -> Option<PlainValue> {
        match &self.origin {
            Origin::Cell(cell) if self.range.is_none() && !now.utc.is_null() => cell.read_plain(now.utc),
            _ => None,
        }
    }

    /// Applies the index range to a value that the manager answered.
    #[must_use]
    pub fn cut(&self, mut value: DataValue) -> DataValue {
        if value.status().is_bad() {
            value.value = Variant::Empty;
        } else if let Some(range) = &self.range {
            match range.read(&value.value) {
                Ok(part) => value.value = part,
                Err(status) => {
                    value.value = Variant::Empty;
                    value.status = Some(status);
                }
            }
        }
        value
    }
}

/// CurrentRead (Part 3, 8.57).
const READABLE: u32 = 1;

/// A variable, found and checked for one Read.
pub(crate) struct Checked<'s> {
    pub(crate) key: NodeKey,
    pub(crate) node: &'s Node,
    /// Set for Value of a variable.
    pub(crate) variable: Option<&'s Variable>,
}

impl Snapshot {
    /// Finds a node and checks whether the caller may read the attribute.
    pub(crate) fn check_read(
        &self,
        call: &CallContext,
        id: &NodeIdBytes<'_>,
        attribute: AttributeId,
        encoding: QualifiedNameRef<'_>,
    ) -> Result<Checked<'_>, StatusCode> {
        check_found(&self.graph, call, self.graph.look_up(id), attribute, encoding)
    }

    /// Resolves an attribute for reading it again and again. `range` and `encoding` as a ReadValueId has them; null or empty for none.
    ///
    /// # Errors
    /// `BadNodeIdUnknown`, `BadAttributeIdInvalid`, `BadNotReadable`, `BadUserAccessDenied`, `BadSecurityModeInsufficient`, `BadIndexRangeInvalid`,
    /// `BadDataEncodingInvalid`, `BadDataEncodingUnsupported`.
    pub fn resolve(
        &self,
        call: &CallContext,
        id: &NodeId,
        attribute: AttributeId,
        range: &str,
        encoding: &QualifiedName,
    ) -> Result<ReadSource, StatusCode> {
        let encoding = QualifiedNameRef {
            namespace: encoding.namespace,
            name: backplane_types::view::StrRef(encoding.name.as_str()),
        };
        let found = self.check_read(call, &id.into(), attribute, encoding)?;
        let range = NumericRange::parse(range)?;
        let origin = match found.variable.map(|variable| (&variable.source, variable.tag)) {
            Some((Source::Cell(cell), _)) => Origin::Cell(Arc::clone(cell)),
            Some((Source::Live(live), _)) => Origin::Live(Arc::clone(live)),
            Some((Source::Static(value), _)) => Origin::Value(Arc::clone(value)),
            Some((Source::OnDemand, tag)) => {
                let attached = self
                    .attached_at(found.key.slot)
                    .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
                if !attached.manager.facets().reader {
                    return Err(StatusCode::BAD_NOT_READABLE);
                }
                Origin::OnDemand {
                    manager: attached.id,
                    tag,
                }
            }
            None => {
                let value = attribute::read(&self.graph, found.key, found.node, attribute, call)?;
                if range.is_some() && attribute != AttributeId::VALUE && value.as_array().is_none() {
                    return Err(StatusCode::BAD_INDEX_RANGE_NO_DATA);
                }
                Origin::Attribute(Arc::new(value))
            }
        };
        let range = range.map(Box::new);
        Ok(ReadSource { origin, range })
    }

    /// MinimumSamplingInterval of a node's attribute, in ms: 0 for values that are reported by exception, below 0 if it is not known.
    #[must_use]
    pub fn minimum_sampling(&self, id: &NodeId, attribute: AttributeId) -> f64 {
        let node = self.graph.find(id).and_then(|key| self.node(key));
        match node.map(|node| &node.body) {
            Some(Body::Variable(variable)) if attribute == AttributeId::VALUE => attribute::minimum_sampling(variable),
            _ => 0.0,
        }
    }

    /// The value of a node's EURange property, for percent deadbands.
    #[must_use]
    pub fn eu_range(&self, id: &NodeId) -> Option<backplane_types::Range> {
        let value = self.property(id, "EURange")?;
        match value.value {
            Variant::ExtensionObject(object) => object.decode_as().ok(),
            _ => None,
        }
    }

    /// Whether values of a variable are numbers, arrays of them included.
    #[must_use]
    pub fn is_numeric(&self, id: &NodeId) -> bool {
        let node = self.graph.find(id).and_then(|key| self.node(key));
        node.and_then(Node::variable)
            .is_some_and(|variable| variable.rule.is_number())
    }

    /// Whether the values of a variable are Booleans.
    #[must_use]
    pub fn is_boolean(&self, id: &NodeId) -> bool {
        let node = self.graph.find(id).and_then(|key| self.node(key));
        node.and_then(Node::variable)
            .is_some_and(|variable| variable.rule.built_in() == Some(BuiltInType::Boolean))
    }

    /// The value of a property of namespace 0 that the host keeps.
    #[must_use]
    pub fn property(&self, id: &NodeId, name: &str) -> Option<DataValue> {
        let key = self.graph.find(id)?;
        match &self.graph.property(key, name)?.variable()?.source {
            Source::Static(value) => Some(value.as_ref().clone()),
            Source::Cell(cell) => Some(cell.read()),
            Source::OnDemand | Source::Live(_) => None,
        }
    }

    /// The NodeClass of a node, as its number; none if there is no such node.
    #[must_use]
    pub fn node_class(&self, id: &NodeId) -> Option<u32> {
        self.graph
            .find(id)
            .and_then(|key| self.node(key))
            .map(|node| node.body.class())
    }
}

/// Whether the caller may read an attribute of what was found.
pub(crate) fn check_found<'s>(
    graph: &Graph,
    call: &CallContext,
    found: Option<(NodeKey, &'s Node)>,
    attribute: AttributeId,
    encoding: QualifiedNameRef<'_>,
) -> Result<Checked<'s>, StatusCode> {
    let (key, node) = found.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if !attribute.is_valid() {
        return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    }
    let variable = if attribute == AttributeId::VALUE {
        node.variable()
    } else {
        None
    };
    check_encoding(attribute, variable, encoding)?;
    if let Some(variable) = variable {
        if variable.access & READABLE == 0 {
            return Err(StatusCode::BAD_NOT_READABLE);
        }
        rights::check(graph, key.slot, node, call, permission::READ)?;
    }
    Ok(Checked { key, node, variable })
}

/// The cell of a variable whose Value everybody may read: nothing else has to be checked.
#[inline]
pub(crate) fn open_cell<'s>(graph: &Graph, (key, node): (NodeKey, &'s Node)) -> Option<&'s ValueCell> {
    match &node.body {
        Body::Variable(Variable {
            source: Source::Cell(cell),
            access,
            ..
        }) if access & READABLE != 0 && rights::is_open(graph, key.slot, node) => Some(cell),
        _ => None,
    }
}

#[inline]
fn check_encoding(
    attribute: AttributeId,
    variable: Option<&Variable>,
    encoding: QualifiedNameRef<'_>,
) -> Result<(), StatusCode> {
    if encoding.is_null() {
        return Ok(());
    }
    check_named_encoding(attribute, variable, encoding)
}

/// Part 4, 5.11.2.2: an encoding is for the Value of structures. "Default Binary" is taken for every value, as it is what everything is sent in.
#[cold]
fn check_named_encoding(
    attribute: AttributeId,
    variable: Option<&Variable>,
    encoding: QualifiedNameRef<'_>,
) -> Result<(), StatusCode> {
    if attribute != AttributeId::VALUE {
        return Err(StatusCode::BAD_DATA_ENCODING_INVALID);
    }
    if encoding.namespace == 0 && encoding.name.text() == "Default Binary" {
        return Ok(());
    }
    let structured = variable.is_some_and(|variable| matches!(variable.rule, TypeRule::STRUCTURE | TypeRule::ANY));
    Err(if structured {
        StatusCode::BAD_DATA_ENCODING_UNSUPPORTED
    } else {
        StatusCode::BAD_DATA_ENCODING_INVALID
    })
}

/// Appends a DataValue of which only the part in `range` is wanted.
pub(crate) fn encode_part(
    value: &Variant,
    head: &DataValueHead,
    range: Option<&NumericRange>,
    stamps: Stamps,
    out: &mut Encoder<'_>,
) {
    if range.is_none()
        && head.status == StatusCode::GOOD
        && head.source_picoseconds.is_none()
        && let Some((kind, bits)) = value.to_bits()
    {
        let source = head.source_timestamp.map_or(0, DateTime::ticks);
        out.scalar_data_value(kind, bits, stamps.shown_source(source), stamps.shown_now());
        return;
    }
    let shown = stamps.head(head);
    if head.status.is_bad() || value.is_empty() {
        out.data_value::<Variant>(&shown, None);
        return;
    }
    match range.map(|range| range.read(value)) {
        None => out.data_value(&shown, Some(value)),
        Some(Ok(part)) => out.data_value(&shown, Some(&part).filter(|part| !part.is_empty())),
        Some(Err(status)) => out.data_value::<Variant>(&stamps.refused(status), None),
    }
}
