//! NodeSet2 documents (Part 6, annex F): from XML to the nodes of a model.
//!
//! Owns the order in which the parts of a document are put in: nodes, references, then what needs the types (data types, definitions, values, method
//! arguments). Variables get cells, so that `bind` can give them a tag. It must not know services.

mod names;
mod record;
mod scalar;
mod tree;
mod types;
mod value;

use std::sync::Arc;

use backplane_types::{Argument, ArrayValues, DataValue, NodeId, StatusCode, Variant, ids};

use crate::cell::ValueCell;
use crate::model::apply::Work;
use crate::model::draft::{Refusal, standard};
use crate::model::node::{
    ArgumentRule, Body, DataType, Extra, Method, Node, ReferenceType, Source, Variable, VariableExtra, VariableType,
};
use crate::namespace::{NamespaceTable, UA_NAMESPACE};
use crate::typing::TypeRule;
use names::Names;
use record::{Class, Record};
use tree::Element;

fn invalid(reason: impl Into<String>) -> Refusal {
    (StatusCode::BAD_NODE_ATTRIBUTES_INVALID, reason.into())
}

/// Applies a `nodeset` step, the one with this number.
pub(crate) fn import(
    work: &mut Work<'_>,
    step: usize,
    document: &[u8],
    namespaces: &NamespaceTable,
) -> Result<(), Refusal> {
    if document.len() > work.draft.limits.max_nodeset_size as usize {
        return Err((
            StatusCode::BAD_REQUEST_TOO_LARGE,
            format!("a document of {} bytes", document.len()),
        ));
    }
    let text = std::str::from_utf8(document).map_err(|_| invalid("the document is not UTF-8"))?;
    let records = read(text.trim_start_matches('\u{feff}'), namespaces)?;
    for record in &records {
        insert(work, step, record)?;
    }
    for record in &records {
        connect(work, record)?;
    }
    types::define_all(work, &records)?;
    for record in &records {
        value_of(work, record)?;
    }
    for record in &records {
        if record.class == Class::Method {
            arguments(work, record)?;
        }
    }
    Ok(())
}

/// Reads all nodes of a document. Its namespaces are added to the server's.
fn read(text: &str, namespaces: &NamespaceTable) -> Result<Vec<Record>, Refusal> {
    let mut names = Names {
        namespaces: vec![0],
        ..Names::default()
    };
    let mut records = Vec::new();
    let root = tree::for_each_child(text, |element| {
        match element.name.as_str() {
            "NamespaceUris" => uris(&element, &mut names, namespaces)?,
            "Aliases" => aliases(&element, &mut names)?,
            name => {
                if let Some(class) = Class::of_element(name) {
                    records.push(Record::read(class, &element, &names)?);
                }
            }
        }
        Ok(())
    })
    .map_err(invalid)?;
    if root == "UANodeSet" {
        Ok(records)
    } else {
        Err(invalid(format!("the root element is {root}, not UANodeSet")))
    }
}

fn uris(element: &Element, names: &mut Names, namespaces: &NamespaceTable) -> Result<(), String> {
    for uri in element.children_named("Uri").map(Element::text) {
        let index = if uri == UA_NAMESPACE {
            Ok(0)
        } else {
            namespaces.register(uri)
        };
        names
            .namespaces
            .push(index.map_err(|status| format!("namespace {uri:?}: {status}"))?);
    }
    Ok(())
}

fn aliases(element: &Element, names: &mut Names) -> Result<(), String> {
    for alias in element.children_named("Alias") {
        let id = names.node_id(alias.text())?;
        if let Some(name) = alias.attribute("Alias") {
            names.aliases.insert(name.trim().to_owned(), id);
        }
    }
    Ok(())
}

fn insert(work: &mut Work<'_>, step: usize, record: &Record) -> Result<(), Refusal> {
    work.check_name(&record.browse_name)?;
    let mut node = Node::new(record.id.clone(), record.browse_name.clone(), body(work, record)?);
    let shown = record.display_name.clone().filter(|name| *name != node.display_name());
    let extra = Extra {
        display_name: shown,
        description: record.description.clone(),
        role_permissions: record.role_permissions.clone(),
        access_restrictions: record.access_restrictions,
    };
    let has_extra = extra.display_name.is_some()
        || extra.description.is_some()
        || extra.role_permissions.is_some()
        || extra.access_restrictions.is_some();
    if has_extra {
        node.extra = Some(Box::new(extra));
    }
    let handle = work
        .draft
        .insert(node)
        .map_err(|(status, reason)| (status, format!("{}: {reason}", record.id)))?;
    if record.class == Class::Variable {
        work.touched.push((handle, step));
    }
    Ok(())
}

/// The body without what needs the types: those may be further down in the document.
fn body(work: &mut Work<'_>, record: &Record) -> Result<Body, Refusal> {
    let any = work.draft.link(&standard(ids::data_type::BASE_DATA_TYPE))?;
    Ok(match record.class {
        Class::Object => Body::Object {
            event_notifier: record.event_notifier,
        },
        Class::View => Body::View {
            contains_no_loops: true,
            event_notifier: record.event_notifier,
        },
        Class::Method => Body::Method(Box::new(Method {
            executable: record.executable,
            ..Method::default()
        })),
        Class::ObjectType => Body::ObjectType {
            is_abstract: record.is_abstract,
        },
        Class::ReferenceType => Body::ReferenceType(Box::new(ReferenceType {
            is_abstract: record.is_abstract,
            symmetric: record.symmetric,
            inverse_name: record.inverse_name.clone(),
        })),
        Class::DataType => Body::DataType(Box::new(DataType {
            is_abstract: record.is_abstract,
            definition: Variant::Empty,
        })),
        Class::VariableType => Body::VariableType(Box::new(VariableType {
            is_abstract: record.is_abstract,
            data_type: any,
            rank: record.value_rank,
            dimensions: record.dimensions.clone(),
            value: record.value.clone(),
        })),
        Class::Variable => {
            let extra = VariableExtra {
                dimensions: record.dimensions.clone(),
                minimum_sampling: record.minimum_sampling,
                historizing: record.historizing,
                instrument_range: None,
            };
            let plain = extra.dimensions.is_empty() && extra.minimum_sampling.is_none() && !extra.historizing;
            Body::Variable(Variable {
                source: Source::Cell(Arc::new(ValueCell::waiting())),
                tag: 0,
                data_type: any,
                rank: record.value_rank,
                access: record.access,
                rule: TypeRule::ANY,
                extra: (!plain).then(|| Box::new(extra)),
            })
        }
    })
}

/// Adds the references of a node that are not there yet: documents give many of them at both ends.
fn connect(work: &mut Work<'_>, record: &Record) -> Result<(), Refusal> {
    for link in &record.links {
        let (source, target) = if link.forward {
            (&record.id, &link.target)
        } else {
            (&link.target, &record.id)
        };
        let known = work.draft.locate(&link.kind).and_then(|place| work.draft.node(place));
        if !known.is_some_and(|node| matches!(node.body, Body::ReferenceType(_))) {
            let reason = format!("{}: {} is not a reference type", record.id, link.kind);
            return Err((StatusCode::BAD_REFERENCE_TYPE_ID_INVALID, reason));
        }
        if !work.draft.is_connected(source, &link.kind, target)? {
            work.draft.connect(source, &link.kind, target)?;
        }
    }
    Ok(())
}

fn value_of(work: &mut Work<'_>, record: &Record) -> Result<(), Refusal> {
    if record.class != Class::Variable || record.value.is_empty() {
        return Ok(());
    }
    let value = DataValue {
        source_timestamp: work.steps.now,
        server_timestamp: work.steps.now,
        ..DataValue::new(record.value.clone())
    };
    let handle = work.own(&record.id)?;
    if let Some(Body::Variable(variable)) = work.draft.model.nodes.get_mut(handle).map(|node| &mut node.body) {
        variable.source = Source::Cell(Arc::new(ValueCell::new(value)));
    }
    Ok(())
}

/// Prepares the checks of a method's arguments from its properties.
fn arguments(work: &mut Work<'_>, record: &Record) -> Result<(), Refusal> {
    let handle = work.own(&record.id)?;
    for (name, is_input) in [("InputArguments", true), ("OutputArguments", false)] {
        let Some(value) = property(work, &record.id, name) else {
            continue;
        };
        let Variant::Array(array) = value else { continue };
        let ArrayValues::ExtensionObject(objects) = array.values else {
            continue;
        };
        if objects.len() > work.draft.limits.max_arguments as usize {
            return Err(invalid(format!("{}: {} arguments", record.id, objects.len())));
        }
        let mut rules = Vec::with_capacity(objects.len());
        for object in objects {
            let argument: Argument = object
                .decode_as()
                .map_err(|error| invalid(format!("{}: {name}: {error}", record.id)))?;
            let Some(rule) = work.draft.rule(&argument.data_type) else {
                let reason = format!("{}: no data type {}", record.id, argument.data_type);
                return Err((StatusCode::BAD_DATA_TYPE_ID_UNKNOWN, reason));
            };
            rules.push(ArgumentRule {
                rule,
                rank: argument.value_rank,
                dimensions: argument.array_dimensions,
                data_type: argument.data_type,
            });
        }
        if let Some(Body::Method(method)) = work.draft.model.nodes.get_mut(handle).map(|node| &mut node.body) {
            if is_input {
                method.inputs = rules;
            } else {
                method.outputs = rules;
            }
        }
    }
    Ok(())
}

/// The value of a property of a node of this model.
fn property(work: &Work<'_>, owner: &NodeId, name: &str) -> Option<Variant> {
    let node = work.draft.model.nodes.get(work.draft.here(owner)?)?;
    let wanted = standard(ids::reference_type::HAS_PROPERTY);
    node.references
        .iter()
        .filter(|reference| reference.is_forward())
        .find_map(|reference| {
            if work.draft.id_of(reference.kind()) != Some(&wanted) {
                return None;
            }
            let target = work.draft.here(work.draft.id_of(reference.target)?)?;
            let node = work.draft.model.nodes.get(target)?;
            if node.browse_name.namespace != 0 || node.browse_name.name.text() != name {
                return None;
            }
            match &node.variable()?.source {
                Source::Cell(cell) => Some(cell.read().value),
                _ => None,
            }
        })
}
