//! Applies a list of steps to a model: all of them, or none.
//!
//! Owns the order of checks and which step an error names. What a new node looks like is in `create`, what goes with a removed one in `remove`, and what
//! an attribute may be in `attributes`.

use backplane_types::{ExtensionObject, NodeId, QualifiedName, Range, StatusCode, Variant, ids};

use crate::model::builder::{ChangeError, ModelBuilder, NewKind, NewNode, NewSource, Step};
use crate::model::draft::{Draft, Refusal, standard};
use crate::model::node::{Body, Handle, Source};
use crate::model::{Model, attributes, create, remove};
use crate::namespace::NamespaceTable;
use crate::space::{ManagerId, Snapshot};
use crate::typing::{self, TypeRule};
use crate::units::Unit;

impl Model {
    /// This model with the steps applied. Values stay: variables that are in both share their cells. `snapshot` is where parents, types and targets of
    /// other managers are looked up.
    ///
    /// # Errors
    /// [`ChangeError`], which names the step.
    pub fn changed(&self, steps: &ModelBuilder, snapshot: &Snapshot) -> Result<Self, ChangeError> {
        let own = snapshot
            .attached
            .iter()
            .position(|entry| std::ptr::eq(entry.model.as_ref(), self));
        self.apply(steps, snapshot, own)
    }

    /// As [`changed`](Self::changed), for the next generation of a manager whose present one, `old`, is attached: a node that a third manager has is
    /// refused by the step, rather than when this model is attached.
    ///
    /// # Errors
    /// [`ChangeError`], which names the step.
    pub fn changed_beside(
        &self,
        steps: &ModelBuilder,
        snapshot: &Snapshot,
        old: ManagerId,
    ) -> Result<Self, ChangeError> {
        let own = snapshot.attached.iter().position(|entry| entry.id == old);
        self.apply(steps, snapshot, own)
    }

    fn apply(&self, steps: &ModelBuilder, snapshot: &Snapshot, own: Option<usize>) -> Result<Self, ChangeError> {
        let own = own.and_then(|slot| u32::try_from(slot).ok());
        let draft = Draft::new(self.clone(), &snapshot.graph, own, steps.limits);
        let mut work = Work {
            draft,
            touched: Vec::new(),
            steps,
            namespaces: &snapshot.namespaces,
        };
        for (number, step) in (1usize..).zip(&steps.steps) {
            work.apply(number, step)
                .map_err(|refusal| error(number, step.describe(), refusal))?;
        }
        work.check_values()?;
        Ok(work.draft.model)
    }
}

fn error(step: usize, what: String, (status, detail): Refusal) -> ChangeError {
    ChangeError {
        step,
        what,
        status,
        detail,
    }
}

/// A model that steps are being applied to, and what must be checked when all are.
pub(crate) struct Work<'g> {
    pub(crate) draft: Draft<'g>,
    /// Variables whose first value or type these steps set, with the step.
    pub(crate) touched: Vec<(Handle, usize)>,
    pub(crate) steps: &'g ModelBuilder,
    /// Where documents add their namespaces.
    namespaces: &'g NamespaceTable,
}

impl Work<'_> {
    fn apply(&mut self, number: usize, step: &Step) -> Result<(), Refusal> {
        match step {
            Step::Node(node) => {
                self.check_name(&node.name)?;
                let handle = create::node(self, node)?;
                if matches!(node.kind, NewKind::Variable { .. } | NewKind::Property { .. }) {
                    self.touched.push((handle, number));
                }
                Ok(())
            }
            Step::OnDemand { id, minimum_sampling } => self.on_demand(id, *minimum_sampling),
            Step::Analog { id, low, high, unit } => self.analog(id, *low, *high, unit),
            Step::Attribute { id, attribute, value } => {
                let handle = self.own(id)?;
                self.touched.push((handle, number));
                attributes::set(&mut self.draft, handle, *attribute, value)
            }
            Step::Reference {
                source,
                kind,
                forward,
                target,
            } => {
                let (source, target) = if *forward { (source, target) } else { (target, source) };
                self.reference(source, kind, target)
            }
            Step::Nodeset { document } => crate::nodeset::import(self, number, document, self.namespaces),
            Step::Bind { id, tag } => {
                let handle = self.own(id)?;
                self.draft.retag(handle, *tag)
            }
            Step::Remove { id } => remove::node(&mut self.draft, id),
        }
    }

    /// The handle of a node that must be in this model.
    pub(crate) fn own(&self, id: &NodeId) -> Result<Handle, Refusal> {
        self.draft
            .model
            .handle(id)
            .ok_or_else(|| (StatusCode::BAD_NODE_ID_UNKNOWN, format!("no node {id} in this model")))
    }

    pub(crate) fn check_name(&self, name: &QualifiedName) -> Result<(), Refusal> {
        let length = name.name.text().len();
        if length == 0 || length > self.draft.limits.max_name_length as usize {
            return Err((
                StatusCode::BAD_BROWSE_NAME_INVALID,
                format!("a browse name of {length} bytes"),
            ));
        }
        Ok(())
    }

    fn on_demand(&mut self, id: &NodeId, minimum_sampling: f64) -> Result<(), Refusal> {
        let handle = self.own(id)?;
        if !minimum_sampling.is_finite() || minimum_sampling < -1.0 {
            return Err((
                StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
                "the minimum sampling interval is not a duration".to_owned(),
            ));
        }
        match self.draft.model.nodes.get_mut(handle).map(|node| &mut node.body) {
            Some(Body::Variable(variable)) if variable.tag == 0 => Err((
                StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
                "an on-demand variable needs a tag".to_owned(),
            )),
            Some(Body::Variable(variable)) => {
                variable.source = Source::OnDemand;
                variable.extra_mut().minimum_sampling = Some(minimum_sampling);
                Ok(())
            }
            _ => Err((StatusCode::BAD_NODE_CLASS_INVALID, "not a variable".to_owned())),
        }
    }

    fn analog(&mut self, id: &NodeId, low: f64, high: f64, unit: &str) -> Result<(), Refusal> {
        let handle = self.own(id)?;
        let invalid = |reason: String| (StatusCode::BAD_NODE_ATTRIBUTES_INVALID, reason);
        // 0 to 0 stands for no range: a variable that has a unit and nothing else.
        let unit_only = low == 0.0 && high == 0.0 && !unit.is_empty();
        if !unit_only && (!low.is_finite() || !high.is_finite() || low >= high) {
            return Err(invalid(format!("{low} to {high} is not a range")));
        }
        let rule = self
            .draft
            .model
            .nodes
            .get(handle)
            .and_then(|node| node.variable())
            .map(|variable| variable.rule);
        if !rule.is_some_and(TypeRule::is_number) {
            return Err(invalid("not a variable of a number".to_owned()));
        }
        let range = (!unit_only).then(|| ExtensionObject::from_structure(&Range { low, high }));
        let properties = [
            ("EURange", ids::data_type::RANGE, range.clone()),
            ("InstrumentRange", ids::data_type::RANGE, range),
            ("EngineeringUnits", ids::data_type::EU_INFORMATION, self.unit(unit)?),
        ];
        for (name, data_type, value) in properties {
            if let Some(value) = value {
                create::static_property(self, id, name, data_type, -1, Variant::from(value))?;
            }
        }
        if !unit_only
            && let Some(Body::Variable(variable)) = self.draft.model.nodes.get_mut(handle).map(|node| &mut node.body)
        {
            variable.extra_mut().instrument_range = Some((low, high));
        }
        let definition = match (unit_only, unit.is_empty()) {
            (true, _) => ids::variable_type::ANALOG_UNIT_TYPE,
            (false, false) => ids::variable_type::ANALOG_UNIT_RANGE_TYPE,
            (false, true) => ids::variable_type::ANALOG_ITEM_TYPE,
        };
        self.redefine(id, handle, definition)
    }

    fn unit(&self, code: &str) -> Result<Option<ExtensionObject>, Refusal> {
        if code.is_empty() {
            return Ok(None);
        }
        match Unit::by_code(code) {
            Some(unit) => Ok(Some(ExtensionObject::from_structure(&unit.eu_information()))),
            None => Err((
                StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
                format!("{code:?} is not a UNECE common code"),
            )),
        }
    }

    /// Gives an instance another standard type definition.
    fn redefine(&mut self, id: &NodeId, handle: Handle, definition: u32) -> Result<(), Refusal> {
        let kind = self.draft.link(&standard(ids::reference_type::HAS_TYPE_DEFINITION))?;
        if let Some(node) = self.draft.model.nodes.get_mut(handle) {
            let before = node.references.len();
            node.references
                .retain(|reference| !(reference.is_forward() && reference.kind() == kind));
            let gone = u32::try_from(before.saturating_sub(node.references.len())).unwrap_or(0);
            self.draft.model.references = self.draft.model.references.saturating_sub(gone);
        }
        self.draft.connect(
            id,
            &standard(ids::reference_type::HAS_TYPE_DEFINITION),
            &standard(definition),
        )
    }

    pub(crate) fn reference(&mut self, source: &NodeId, kind: &NodeId, target: &NodeId) -> Result<(), Refusal> {
        let Some(kind_place) = self.draft.locate(kind) else {
            return Err((
                StatusCode::BAD_REFERENCE_TYPE_ID_INVALID,
                format!("no reference type {kind}"),
            ));
        };
        match self.draft.node(kind_place).map(|node| &node.body) {
            Some(Body::ReferenceType(body)) if body.is_abstract => {
                return Err((StatusCode::BAD_REFERENCE_NOT_ALLOWED, format!("{kind} is abstract")));
            }
            Some(Body::ReferenceType(_)) => {}
            _ => {
                return Err((
                    StatusCode::BAD_REFERENCE_TYPE_ID_INVALID,
                    format!("{kind} is not a reference type"),
                ));
            }
        }
        if self.draft.is_connected(source, kind, target)? {
            return Err((
                StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED,
                "there is such a reference".to_owned(),
            ));
        }
        let one_only = [
            (ids::reference_type::HAS_TYPE_DEFINITION, source, true),
            (ids::reference_type::HAS_SUBTYPE, target, false),
        ];
        for (number, node, forward) in one_only {
            if *kind == standard(number) && self.has_first(node, kind, forward)? {
                return Err((
                    StatusCode::BAD_REFERENCE_NOT_ALLOWED,
                    format!("{node} has a reference of this type already"),
                ));
            }
        }
        self.draft.connect(source, kind, target)
    }

    fn has_first(&mut self, id: &NodeId, kind: &NodeId, forward: bool) -> Result<bool, Refusal> {
        let kind = self.draft.link(kind)?;
        let Some(handle) = self.draft.model.handle(id) else {
            return Ok(false);
        };
        let first = self
            .draft
            .model
            .nodes
            .get(handle)
            .and_then(|node| node.references.first());
        Ok(first.is_some_and(|first| first.kind() == kind && first.is_forward() == forward))
    }

    /// Checks the values of all variables that the steps touched against their final declaration.
    fn check_values(&mut self) -> Result<(), ChangeError> {
        for (handle, step) in &self.touched {
            let handle = *handle;
            let Some(variable) = self.draft.model.nodes.get(handle).and_then(|node| node.variable()) else {
                continue;
            };
            let value = match &variable.source {
                Source::Cell(cell) => cell.read(),
                Source::Static(value) => value.as_ref().clone(),
                Source::OnDemand | Source::Live(_) => continue,
            };
            if value.value.is_empty() || value.status().is_bad() {
                continue;
            }
            let found = value
                .value
                .built_in_type()
                .map_or_else(|| "nothing".to_owned(), |kind| format!("{kind:?}"));
            let found = format!(
                "a value of {found} with {} dimensions",
                typing::dimensions_of(&value.value)
            );
            let fits = typing::fit(value.value, variable.rule, variable.rank, variable.dimensions());
            if let Err(status) = fits {
                let data_type = self
                    .draft
                    .id_of(variable.data_type)
                    .map(ToString::to_string)
                    .unwrap_or_default();
                let detail = format!(
                    "{found} does not fit DataType {data_type}, ValueRank {} and ArrayDimensions {:?}",
                    variable.rank,
                    variable.dimensions()
                );
                // The last step that had to do with it is the one that made it wrong.
                let touches = self.touched.iter().filter(|touched| touched.0 == handle);
                let step = touches.map(|touched| touched.1).max().unwrap_or(*step);
                let what = self
                    .steps
                    .steps
                    .get(step.saturating_sub(1))
                    .map(Step::describe)
                    .unwrap_or_default();
                return Err(error(step, what, (status, detail)));
            }
        }
        Ok(())
    }
}

/// What a first value says about the shape of its variable: ValueRank.
pub(crate) fn rank_of(source: &NewSource) -> i32 {
    match source {
        NewSource::Cell(value) | NewSource::Static(value) => value.value.rank(),
        NewSource::Live(_) => -1,
    }
}

/// For nodes that a step makes beside the one it names.
pub(crate) fn beside(id: &NodeId, name: &str) -> NodeId {
    use backplane_types::Identifier;
    let text = match &id.identifier {
        Identifier::Numeric(number) => format!("{number}/{name}"),
        Identifier::String(text) => format!("{}/{name}", text.text()),
        Identifier::Guid(guid) => format!("{guid}/{name}"),
        Identifier::Opaque(bytes) => {
            let hex: String = bytes.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}/{name}")
        }
    };
    NodeId::string(id.namespace, &text)
}

/// A node that a step makes beside the one it names.
pub(crate) fn part_of(id: &NodeId, name: &str, kind: NewKind) -> NewNode {
    NewNode {
        id: beside(id, name),
        parent: id.clone(),
        name: QualifiedName::new(0, name),
        kind,
    }
}
