//! The `change` resource: steps a guest collects, and their commit into the address space.
//!
//! Owns the translation into a list of steps and its bounds. It must not check what the address space checks itself.

use std::sync::Arc;

use backplane_nodes::{MethodArgument, ModelBuilder, UpdateError};
use backplane_types::{
    AttributeId, EnumDefinition, ExtensionObject, NodeId, QualifiedName, StatusCode, StructureDefinition,
};
use wasmtime::component::Resource;

use crate::bindings::host::address_space::{Argument, Host, HostChange};
use crate::bindings::ua;
use crate::convert;
use crate::hosts::{RETIRED, fault};
use crate::state::{Phase, State};

/// A change that is not committed yet.
#[expect(
    unreachable_pub,
    reason = "the generated bindings export it again, within their private module"
)]
pub struct Change {
    builder: ModelBuilder,
    bytes: usize,
    /// The first step that was wrong in itself; later ones are not looked at.
    wrong: Option<ua::Fault>,
}

/// What a step costs beside its texts, in bytes of host memory, about.
const STEP_BYTES: usize = 128;

impl State {
    /// Adds one step, or remembers why not. `bytes`: what the guest sent for it.
    fn step(
        &mut self,
        change: &Resource<Change>,
        what: &str,
        bytes: usize,
        add: impl FnOnce(&mut Self, &mut ModelBuilder) -> Result<(), StatusCode>,
    ) {
        // Taken out, so that the step can use the rest of the state. A handle that is none traps nothing: the contract has no answer here.
        let Ok(entry) = self.table.get_mut(change) else { return };
        if entry.wrong.is_some() {
            return;
        }
        let mut builder = std::mem::take(&mut entry.builder);
        let total = entry.bytes.saturating_add(bytes).saturating_add(STEP_BYTES);
        let limits = &self.shared.limits;
        let outcome = if builder.len() >= limits.change_steps {
            Err(fault(
                StatusCode::BAD_TOO_MANY_OPERATIONS,
                format!("more than {} steps in one change", limits.change_steps),
            ))
        } else if total > limits.change_bytes {
            Err(fault(
                StatusCode::BAD_ENCODING_LIMITS_EXCEEDED,
                format!("more than {} bytes in one change", limits.change_bytes),
            ))
        } else {
            let number = builder.len().saturating_add(1);
            add(self, &mut builder).map_err(|status| fault(status, format!("step {number} ({what}): {status}")))
        };
        if let Ok(entry) = self.table.get_mut(change) {
            entry.builder = builder;
            entry.bytes = total;
            entry.wrong = outcome.err();
        }
    }

    fn id(&self, id: ua::NodeId) -> Result<NodeId, StatusCode> {
        convert::node_id(&self.names, id)
    }

    fn name(&self, name: ua::QualifiedName) -> Result<QualifiedName, StatusCode> {
        convert::qualified_name(&self.names, name)
    }

    fn initial(&self, value: ua::DataValue) -> Result<backplane_types::DataValue, StatusCode> {
        let empty = matches!(value.value, ua::Value::Empty) && value.source_time <= 0;
        let mut value = convert::data_value(&self.names, value, self.shared.now().utc)?;
        if empty {
            value.source_timestamp = None;
        }
        Ok(value)
    }

    fn arguments(&self, arguments: Vec<Argument>) -> Result<Vec<MethodArgument>, StatusCode> {
        arguments
            .into_iter()
            .map(|argument| {
                Ok(MethodArgument {
                    name: argument.name,
                    data_type: self.id(argument.data_type)?,
                    value_rank: argument.value_rank,
                    dimensions: argument.dimensions,
                    description: argument.description,
                })
            })
            .collect()
    }

    /// The definition of a data type, with the namespaces of the ids in it translated.
    fn definition(&self, bytes: &[u8]) -> Result<Option<ExtensionObject>, StatusCode> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let server = |id: &mut NodeId| self.names.server(id.namespace).map(|index| id.namespace = index);
        // Exactly one of the two reads to the last byte; an EnumDefinition first, because its list has a longer element.
        if let Ok(definition) = convert::decode::<EnumDefinition>(bytes) {
            return Ok(Some(ExtensionObject::from_structure(&definition)));
        }
        let mut definition = convert::decode::<StructureDefinition>(bytes)?;
        server(&mut definition.default_encoding_id)?;
        server(&mut definition.base_data_type)?;
        for field in &mut definition.fields {
            server(&mut field.data_type)?;
        }
        Ok(Some(ExtensionObject::from_structure(&definition)))
    }

    fn commit_change(&mut self, change: &Resource<Change>) -> Result<(), ua::Fault> {
        let entry = self
            .table
            .get_mut(change)
            .map_err(|_| fault(StatusCode::BAD_INVALID_STATE, "no such change"))?;
        // Taken out: a change is applied once, and a guest that never drops the handle holds no steps.
        let builder = std::mem::take(&mut entry.builder);
        entry.bytes = 0;
        if let Some(wrong) = entry.wrong.take() {
            return Err(wrong);
        }
        let space = &self.shared.space;
        match self.phase {
            Phase::Hidden => {
                let changed = self.model.changed(&builder, &space.load());
                let model = changed.map_err(|error| fault(error.status, error.to_string()))?;
                self.take_model(Arc::new(model));
            }
            Phase::Live(manager) => {
                let serving = self.serving.read();
                if *serving != self.number {
                    return Err(fault(StatusCode::BAD_INVALID_STATE, RETIRED));
                }
                let model = space.update(manager, &builder).map_err(|error| match error {
                    UpdateError::Change(error) => fault(error.status, error.to_string()),
                    UpdateError::Attach(error) => fault(error.status(), error.to_string()),
                })?;
                drop(serving);
                self.take_model(model);
            }
        }
        self.shared.counters.changes.one();
        Ok(())
    }
}

impl Host for State {
    fn namespace(&mut self, uri: String) -> u16 {
        match State::namespace(self, &uri) {
            Ok(index) => index,
            Err(reason) => {
                self.gate.write(4, &format!("namespace {uri:?}: {reason}"), &[]);
                // An index that the plugin does not have: every use of it is refused.
                u16::MAX
            }
        }
    }

    fn resolve(&mut self, start: ua::NodeId, path: Vec<ua::QualifiedName>) -> Result<ua::NodeId, u32> {
        let found = self.id(start).and_then(|start| {
            let path = path
                .into_iter()
                .map(|name| self.name(name))
                .collect::<Result<Vec<_>, _>>()?;
            self.shared.space.load().follow_names(&start, &path)
        });
        found
            .and_then(|id| convert::to_guest_node_id(&mut self.names, &id))
            .map_err(|status| status.0)
    }
}

fn id_bytes(id: &ua::NodeId) -> usize {
    match &id.identifier {
        ua::Identifier::Numeric(_) => 0,
        ua::Identifier::Text(text) => text.len(),
        ua::Identifier::Guid(bytes) | ua::Identifier::Opaque(bytes) => bytes.len(),
    }
}

fn value_bytes(value: &ua::Value) -> usize {
    match value {
        ua::Value::Text(text) => text.len(),
        ua::Value::Bytes(bytes) | ua::Value::Guid(bytes) | ua::Value::Encoded(bytes) => bytes.len(),
        ua::Value::Localized(text) => text.text.len(),
        ua::Value::Booleans(v) => v.len(),
        ua::Value::Int32s(v) => v.len().saturating_mul(4),
        ua::Value::Uint32s(v) => v.len().saturating_mul(4),
        ua::Value::Int64s(v) => v.len().saturating_mul(8),
        ua::Value::Uint64s(v) => v.len().saturating_mul(8),
        ua::Value::Floats(v) => v.len().saturating_mul(4),
        ua::Value::Doubles(v) => v.len().saturating_mul(8),
        ua::Value::Texts(v) => v
            .iter()
            .fold(0, |sum, text| sum.saturating_add(text.len()).saturating_add(16)),
        _ => 0,
    }
}

fn argument_bytes(arguments: &[Argument]) -> usize {
    arguments.iter().fold(0, |sum, argument| {
        sum.saturating_add(STEP_BYTES)
            .saturating_add(argument.name.len())
            .saturating_add(argument.description.len())
    })
}

impl HostChange for State {
    fn new(&mut self) -> wasmtime::Result<Resource<Change>> {
        if self.open_changes >= self.shared.limits.open_changes {
            wasmtime::bail!(
                "more than {} changes are open: drop those that are committed",
                self.shared.limits.open_changes
            );
        }
        let limits = backplane_nodes::Limits {
            max_nodes: u32::try_from(self.shared.limits.nodes).unwrap_or(u32::MAX),
            ..*self.shared.space.limits()
        };
        let builder = ModelBuilder::new(limits, self.shared.now());
        let change = self.table.push(Change {
            builder,
            bytes: 0,
            wrong: None,
        })?;
        self.open_changes = self.open_changes.saturating_add(1);
        Ok(change)
    }

    fn folder(&mut self, change: Resource<Change>, id: ua::NodeId, parent: ua::NodeId, name: ua::QualifiedName) {
        let bytes = id_bytes(&id).saturating_add(name.name.len());
        self.step(&change, "folder", bytes, |state, builder| {
            builder.folder(state.id(id)?, state.id(parent)?, state.name(name)?);
            Ok(())
        });
    }

    fn object(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        parent: ua::NodeId,
        name: ua::QualifiedName,
        type_definition: ua::NodeId,
    ) {
        let bytes = id_bytes(&id).saturating_add(name.name.len());
        self.step(&change, "object", bytes, |state, builder| {
            builder.object(
                state.id(id)?,
                state.id(parent)?,
                state.name(name)?,
                state.id(type_definition)?,
            );
            Ok(())
        });
    }

    fn variable(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        parent: ua::NodeId,
        name: ua::QualifiedName,
        tag: u32,
        data_type: ua::NodeId,
        initial: ua::DataValue,
        access: u32,
    ) {
        let bytes = id_bytes(&id)
            .saturating_add(name.name.len())
            .saturating_add(value_bytes(&initial.value));
        self.step(&change, "variable", bytes, |state, builder| {
            let initial = state.initial(initial)?;
            builder.variable(
                state.id(id)?,
                state.id(parent)?,
                state.name(name)?,
                tag,
                state.id(data_type)?,
                initial,
                access,
            );
            Ok(())
        });
    }

    fn property(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        parent: ua::NodeId,
        name: ua::QualifiedName,
        tag: u32,
        data_type: ua::NodeId,
        initial: ua::DataValue,
    ) {
        let bytes = id_bytes(&id)
            .saturating_add(name.name.len())
            .saturating_add(value_bytes(&initial.value));
        self.step(&change, "property", bytes, |state, builder| {
            let initial = state.initial(initial)?;
            builder.property(
                state.id(id)?,
                state.id(parent)?,
                state.name(name)?,
                tag,
                state.id(data_type)?,
                initial,
            );
            Ok(())
        });
    }

    fn method(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        parent: ua::NodeId,
        name: ua::QualifiedName,
        tag: u32,
        inputs: Vec<Argument>,
        outputs: Vec<Argument>,
    ) {
        let bytes = id_bytes(&id)
            .saturating_add(name.name.len())
            .saturating_add(argument_bytes(&inputs))
            .saturating_add(argument_bytes(&outputs));
        self.step(&change, "method", bytes, |state, builder| {
            let (inputs, outputs) = (state.arguments(inputs)?, state.arguments(outputs)?);
            builder.method(
                state.id(id)?,
                state.id(parent)?,
                state.name(name)?,
                tag,
                inputs,
                outputs,
            );
            Ok(())
        });
    }

    fn object_type(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        supertype: ua::NodeId,
        name: ua::QualifiedName,
    ) {
        let bytes = id_bytes(&id).saturating_add(name.name.len());
        self.step(&change, "object-type", bytes, |state, builder| {
            builder.object_type(state.id(id)?, state.id(supertype)?, state.name(name)?);
            Ok(())
        });
    }

    fn variable_type(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        supertype: ua::NodeId,
        name: ua::QualifiedName,
        data_type: ua::NodeId,
    ) {
        let bytes = id_bytes(&id).saturating_add(name.name.len());
        self.step(&change, "variable-type", bytes, |state, builder| {
            builder.variable_type(
                state.id(id)?,
                state.id(supertype)?,
                state.name(name)?,
                state.id(data_type)?,
            );
            Ok(())
        });
    }

    fn reference_type(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        supertype: ua::NodeId,
        name: ua::QualifiedName,
        inverse: String,
    ) {
        let bytes = id_bytes(&id)
            .saturating_add(name.name.len())
            .saturating_add(inverse.len());
        self.step(&change, "reference-type", bytes, |state, builder| {
            let inverse = backplane_types::LocalizedText::plain(inverse);
            builder.reference_type(state.id(id)?, state.id(supertype)?, state.name(name)?, inverse);
            Ok(())
        });
    }

    fn data_type(
        &mut self,
        change: Resource<Change>,
        id: ua::NodeId,
        supertype: ua::NodeId,
        name: ua::QualifiedName,
        definition: Vec<u8>,
    ) {
        let bytes = id_bytes(&id)
            .saturating_add(name.name.len())
            .saturating_add(definition.len());
        self.step(&change, "data-type", bytes, |state, builder| {
            let definition = state.definition(&definition)?;
            builder.data_type(state.id(id)?, state.id(supertype)?, state.name(name)?, definition);
            Ok(())
        });
    }

    fn on_demand(&mut self, change: Resource<Change>, id: ua::NodeId, minimum_sampling: f64) {
        self.step(&change, "on-demand", id_bytes(&id), |state, builder| {
            if !minimum_sampling.is_finite() || minimum_sampling < 0.0 {
                return Err(StatusCode::BAD_OUT_OF_RANGE);
            }
            builder.on_demand(state.id(id)?, minimum_sampling);
            Ok(())
        });
    }

    fn analog(&mut self, change: Resource<Change>, id: ua::NodeId, low: f64, high: f64, unit: String) {
        self.step(
            &change,
            "analog",
            id_bytes(&id).saturating_add(unit.len()),
            |state, builder| {
                builder.analog(state.id(id)?, low, high, &unit);
                Ok(())
            },
        );
    }

    fn attributes(&mut self, change: Resource<Change>, id: ua::NodeId, items: Vec<(u32, ua::Value)>) {
        let node = self.id(id);
        for (attribute, value) in items {
            let node = node.clone();
            self.step(&change, "attribute", value_bytes(&value), |state, builder| {
                builder.attribute(node?, AttributeId(attribute), convert::variant(&state.names, value)?);
                Ok(())
            });
        }
    }

    fn reference(
        &mut self,
        change: Resource<Change>,
        source: ua::NodeId,
        reference_type: ua::NodeId,
        forward: bool,
        target: ua::NodeId,
    ) {
        let bytes = id_bytes(&source).saturating_add(id_bytes(&target));
        self.step(&change, "reference", bytes, |state, builder| {
            builder.reference(state.id(source)?, state.id(reference_type)?, forward, state.id(target)?);
            Ok(())
        });
    }

    fn nodeset(&mut self, change: Resource<Change>, document: Vec<u8>) {
        self.step(&change, "nodeset", document.len(), |_, builder| {
            builder.nodeset(document);
            Ok(())
        });
    }

    fn bind(&mut self, change: Resource<Change>, id: ua::NodeId, tag: u32) {
        self.step(&change, "bind", id_bytes(&id), |state, builder| {
            builder.bind(state.id(id)?, tag);
            Ok(())
        });
    }

    fn remove(&mut self, change: Resource<Change>, id: ua::NodeId) {
        self.step(&change, "remove", id_bytes(&id), |state, builder| {
            builder.remove(state.id(id)?);
            Ok(())
        });
    }

    fn commit(&mut self, change: Resource<Change>) -> Result<(), ua::Fault> {
        self.commit_change(&change)
    }

    fn drop(&mut self, change: Resource<Change>) -> wasmtime::Result<()> {
        self.table.delete(change)?;
        self.open_changes = self.open_changes.saturating_sub(1);
        Ok(())
    }
}
