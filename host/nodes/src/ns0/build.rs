//! From the table of namespace 0 to a model.
//!
//! Nodes that servers do not show (templates for design tools and code generators) are left out. The steps of `ModelBuilder` are not used: the table
//! was checked when it was generated, and this runs at every start.

use std::sync::Arc;

use backplane_types::{
    Argument, ArrayValues, BinaryDecode, BuiltInType, ByteString, DataValue, DecodeLimits, Decoder, LocalizedText,
    NodeId, PermissionType, QualifiedName, RolePermissionType, StatusCode, Variant, ids,
};
use hashbrown::{HashMap, HashSet};

use super::Namespace0Error;
use super::capabilities::Given;
use super::table::{NodeRecord, Table};
use crate::graph::Graph;
use crate::limits::Limits;
use crate::model::Model;
use crate::model::draft::Draft;
use crate::model::node::{
    ArgumentRule, Body, DataType, Handle, Link, LiveFn, Method, Node, Reference, ReferenceType, Source, Variable,
    VariableExtra, VariableType,
};
use crate::typing::TypeRule;

/// How many supertypes a data type may have.
const MAX_DEPTH: usize = 64;
const CURRENT_WRITE: u32 = 1 << 1;

struct Build {
    model: Model,
    handles: HashMap<u32, Handle>,
    /// By data type: its supertype.
    supertypes: HashMap<u32, u32>,
    given: HashMap<u32, Given>,
    implemented: HashSet<u32>,
    permissions: HashMap<usize, Arc<[RolePermissionType]>>,
}

/// Makes the model. `values` go to the nodes with these numbers; `implemented` are the methods that can be called, `aggregates` the aggregate
/// functions that there are (Part 13, 4.4).
pub(super) fn model(
    table: &Table,
    values: Vec<(u32, Given)>,
    implemented: &[u32],
    aggregates: &[u32],
) -> Result<Model, Namespace0Error> {
    let records: Vec<NodeRecord<'_>> = table.records().collect::<Result<_, _>>()?;
    let shown: Vec<&NodeRecord<'_>> = records
        .iter()
        .filter(|record| !record.purpose.code_generator && !record.purpose.design_tool_only)
        .collect();
    let mut build = Build {
        model: Model::empty(),
        handles: HashMap::with_capacity(shown.len()),
        supertypes: HashMap::new(),
        given: values.into_iter().collect(),
        implemented: implemented.iter().copied().collect(),
        permissions: HashMap::new(),
    };
    // Links to data types need the handles, and handles are given in order.
    for (place, record) in (0u32..).zip(&shown) {
        build.handles.insert(record.id, Handle(place));
        for reference in record
            .references
            .iter()
            .filter(|r| r.reference_type == ids::reference_type::HAS_SUBTYPE)
        {
            build.supertypes.insert(reference.target, record.id);
        }
    }
    let instances = instances(&shown);
    build.nodes(&shown, &instances)?;
    build.references(&shown);
    for function in aggregates {
        let folder = ids::object::SERVER_SERVER_CAPABILITIES_AGGREGATE_FUNCTIONS;
        build.reference(folder, ids::reference_type::ORGANIZES, *function);
    }
    build.arguments(&shown);
    Ok(build.model)
}

/// What hangs below the Objects folder: instances, which have values, as opposed to what types declare.
fn instances(records: &[&NodeRecord<'_>]) -> HashSet<u32> {
    let by_id: HashMap<u32, &NodeRecord<'_>> = records.iter().map(|record| (record.id, *record)).collect();
    let mut found = HashSet::from([ids::object::OBJECTS_FOLDER]);
    let mut open = vec![ids::object::OBJECTS_FOLDER];
    while let Some(record) = open.pop().and_then(|id| by_id.get(&id)) {
        for reference in &record.references {
            let below = matches!(
                reference.reference_type,
                ids::reference_type::ORGANIZES | ids::reference_type::HAS_COMPONENT | ids::reference_type::HAS_PROPERTY
            );
            if below && found.insert(reference.target) {
                open.push(reference.target);
            }
        }
    }
    found
}

impl Build {
    fn nodes(&mut self, records: &[&NodeRecord<'_>], instances: &HashSet<u32>) -> Result<(), Namespace0Error> {
        // The same way every other model gets its nodes, so that indexes and counts are right.
        let graph = Graph::default();
        let mut draft = Draft::new(Model::empty(), &graph, None, Limits::default());
        for record in records {
            let mut node = Node::new(
                NodeId::numeric(0, record.id),
                QualifiedName::new(0, record.browse_name),
                self.body(record, instances)?,
            );
            if record.display_name != record.browse_name {
                node.extra_mut().display_name = Some(LocalizedText::plain(record.display_name));
            }
            if let Some(granted) = record.role_permissions {
                node.extra_mut().role_permissions = Some(self.role_permissions(granted));
            }
            if let Some(bits) = record.access_restrictions {
                node.extra_mut().access_restrictions = Some(bits);
            }
            node.references.reserve_exact(record.references.len().saturating_add(1));
            draft.insert(node).map_err(|_| Namespace0Error::TooManyNodes)?;
        }
        self.model = draft.model;
        Ok(())
    }

    /// Sets are shared in the table, and stay so.
    fn role_permissions(&mut self, granted: &[super::table::RolePermission]) -> Arc<[RolePermissionType]> {
        let known = self.permissions.entry(granted.as_ptr() as usize).or_insert_with(|| {
            let entry = |entry: &super::table::RolePermission| RolePermissionType {
                role_id: NodeId::numeric(0, entry.role),
                permissions: PermissionType(entry.permissions),
            };
            granted.iter().map(entry).collect()
        });
        Arc::clone(known)
    }

    fn rule(&self, data_type: u32) -> TypeRule {
        let mut at = data_type;
        for _ in 0..MAX_DEPTH {
            if let Some(rule) = TypeRule::of_standard_type(at) {
                return rule;
            }
            match self.supertypes.get(&at) {
                Some(next) => at = *next,
                None => break,
            }
        }
        TypeRule::ANY
    }

    fn link(&self, id: u32) -> Option<Link> {
        self.handles.get(&id).map(|handle| Link::local(*handle))
    }

    fn data_type(&self, record: &NodeRecord<'_>) -> Result<Link, Namespace0Error> {
        self.link(record.data_type).ok_or(Namespace0Error::Value(record.id))
    }

    fn body(&mut self, record: &NodeRecord<'_>, instances: &HashSet<u32>) -> Result<Body, Namespace0Error> {
        Ok(match record.class {
            1 => Body::Object {
                event_notifier: record.event_notifier,
            },
            2 => Body::Variable(self.variable(record, instances.contains(&record.id))?),
            4 => Body::Method(Box::new(self.method(record))),
            8 => Body::ObjectType {
                is_abstract: record.is_abstract,
            },
            16 => Body::VariableType(Box::new(VariableType {
                is_abstract: record.is_abstract,
                data_type: self.data_type(record)?,
                rank: record.value_rank,
                dimensions: record.array_dimensions.clone(),
                value: decoded(record, record.value)?,
            })),
            32 => Body::ReferenceType(Box::new(ReferenceType {
                is_abstract: record.is_abstract,
                symmetric: record.symmetric,
                inverse_name: record.inverse_name.map_or(LocalizedText::NULL, LocalizedText::plain),
            })),
            64 => Body::DataType(Box::new(DataType {
                is_abstract: record.is_abstract,
                definition: decoded(record, record.definition)?,
            })),
            128 => Body::View {
                contains_no_loops: true,
                event_notifier: record.event_notifier,
            },
            _ => return Err(Namespace0Error::Value(record.id)),
        })
    }

    fn variable(&mut self, record: &NodeRecord<'_>, is_instance: bool) -> Result<Variable, Namespace0Error> {
        let rule = self.rule(record.data_type);
        let source = match self.given.remove(&record.id) {
            Some(Given::Live(live)) => Source::Live(Arc::new(LiveFn(live))),
            Some(Given::Static(value)) => Source::Static(Arc::new(DataValue::new(value))),
            None => {
                let value = decoded(record, record.value)?;
                Source::Static(Arc::new(if value.is_empty() && is_instance {
                    without_value(record, rule)
                } else {
                    DataValue::new(value)
                }))
            }
        };
        let extra = (!record.array_dimensions.is_empty()).then(|| {
            Box::new(VariableExtra {
                dimensions: record.array_dimensions.clone(),
                ..VariableExtra::default()
            })
        });
        Ok(Variable {
            source,
            tag: 0,
            data_type: self.data_type(record)?,
            rank: record.value_rank,
            // Nothing in namespace 0 is written by clients.
            access: record.access_level & !CURRENT_WRITE,
            rule,
            extra,
        })
    }

    fn method(&self, record: &NodeRecord<'_>) -> Method {
        Method {
            executable: true,
            tag: if self.implemented.contains(&record.id) {
                record.id
            } else {
                0
            },
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn references(&mut self, records: &[&NodeRecord<'_>]) {
        // What must come first in a node's list is added first.
        for first in [true, false] {
            for record in records {
                for reference in &record.references {
                    let kind = reference.reference_type;
                    let leads = matches!(
                        kind,
                        ids::reference_type::HAS_TYPE_DEFINITION | ids::reference_type::HAS_SUBTYPE
                    );
                    if leads == first {
                        self.reference(record.id, kind, reference.target);
                    }
                }
            }
        }
    }

    fn reference(&mut self, source: u32, kind: u32, target: u32) {
        let (Some(from), Some(to)) = (self.handles.get(&source).copied(), self.handles.get(&target).copied()) else {
            return;
        };
        let Some(kind_link) = self.link(kind) else { return };
        if let Some(node) = self.model.nodes.get_mut(from) {
            let reference = Reference::new(kind_link, true, Link::local(to));
            node.references.push(reference);
            self.model.references = self.model.references.saturating_add(1);
        }
        let one_way = matches!(
            kind,
            ids::reference_type::HAS_TYPE_DEFINITION | ids::reference_type::HAS_MODELLING_RULE
        );
        if let Some(node) = self.model.nodes.get_mut(to).filter(|_| !one_way) {
            let reference = Reference::new(kind_link, false, Link::local(from));
            // A type has one supertype and may have many subtypes: the supertype leads.
            if kind == ids::reference_type::HAS_SUBTYPE {
                node.references.insert(0, reference);
            } else {
                node.references.push(reference);
            }
            self.model.references = self.model.references.saturating_add(1);
        }
    }

    /// Prepares the checks of method arguments from the InputArguments and OutputArguments properties.
    fn arguments(&mut self, records: &[&NodeRecord<'_>]) {
        let by_id: HashMap<u32, &NodeRecord<'_>> = records.iter().map(|record| (record.id, *record)).collect();
        for record in records.iter().filter(|record| record.class == 4) {
            for reference in &record.references {
                let Some(property) = by_id.get(&reference.target) else {
                    continue;
                };
                let is_input = match property.browse_name {
                    "InputArguments" => true,
                    "OutputArguments" => false,
                    _ => continue,
                };
                let Ok(Variant::Array(array)) = decoded(property, property.value) else {
                    continue;
                };
                let ArrayValues::ExtensionObject(objects) = array.values else {
                    continue;
                };
                let declared = objects.iter().filter_map(|object| object.decode_as::<Argument>().ok());
                let rules: Vec<ArgumentRule> = declared.map(|argument| self.argument(argument)).collect();
                let handle = self.handles.get(&record.id).copied();
                let node = handle.and_then(|handle| self.model.nodes.get_mut(handle));
                if let Some(Node {
                    body: Body::Method(method),
                    ..
                }) = node
                {
                    if is_input {
                        method.inputs = rules;
                    } else {
                        method.outputs = rules;
                    }
                }
            }
        }
    }

    fn argument(&self, argument: Argument) -> ArgumentRule {
        let number = argument
            .data_type
            .as_standard()
            .unwrap_or(ids::data_type::BASE_DATA_TYPE);
        ArgumentRule {
            rule: self.rule(number),
            rank: argument.value_rank,
            dimensions: argument.array_dimensions,
            data_type: argument.data_type,
        }
    }
}

fn decoded(record: &NodeRecord<'_>, bytes: Option<&[u8]>) -> Result<Variant, Namespace0Error> {
    let Some(bytes) = bytes else { return Ok(Variant::Empty) };
    let mut decoder = Decoder::new(bytes, DecodeLimits::TRUSTED);
    Variant::decode(&mut decoder).map_err(|_| Namespace0Error::Value(record.id))
}

/// An instance that neither the table nor the server gives a value: nothing is the value where a value of the type can say so. Diagnostics are switched
/// off, and answer what Part 5, 6.3.3 has for that.
fn without_value(record: &NodeRecord<'_>, rule: TypeRule) -> DataValue {
    if record.browse_name.contains("Diagnostics") {
        return DataValue::from_status(StatusCode::BAD_NOT_READABLE);
    }
    let kind = match rule {
        TypeRule::ENUMERATION => Some(BuiltInType::Int32),
        rule => rule.built_in(),
    };
    let Some(kind) = kind else {
        return DataValue::from_status(StatusCode::BAD_NOT_SUPPORTED);
    };
    if record.value_rank >= 0 {
        return DataValue::new(ArrayValues::empty(kind));
    }
    match Variant::from_bits(kind, 0) {
        Some(value) => DataValue::new(value),
        None => match kind {
            BuiltInType::String => DataValue::new(""),
            BuiltInType::LocalizedText => DataValue::new(LocalizedText::NULL),
            BuiltInType::NodeId => DataValue::new(NodeId::NULL),
            BuiltInType::ByteString => DataValue::new(ByteString::from(Vec::new())),
            _ => DataValue::from_status(StatusCode::BAD_NOT_SUPPORTED),
        },
    }
}
