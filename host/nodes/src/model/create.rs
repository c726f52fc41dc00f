//! What a step that makes a node adds to a model: the node, its place in the hierarchy, and the nodes that belong to it.

use std::sync::Arc;

use backplane_types::{
    Argument, ArrayValues, DataValue, EnumDefinition, EnumValueType, ExtensionObject, LocalizedText, NodeId,
    QualifiedName, StatusCode, StructureDefinition, Variant, ids,
};

use crate::cell::ValueCell;
use crate::model::apply::{Work, part_of, rank_of};
use crate::model::builder::{MethodArgument, NewKind, NewNode, NewSource};
use crate::model::draft::{Place, Refusal, standard};
use crate::model::node::{
    ArgumentRule, Body, DataType, Handle, Method, Node, ReferenceType, Source, Variable, VariableType,
};
use crate::typing::TypeRule;

const OBJECT: u32 = 1;
const VARIABLE: u32 = 2;
const OBJECT_TYPE: u32 = 8;
const VARIABLE_TYPE: u32 = 16;
const REFERENCE_TYPE: u32 = 32;
const DATA_TYPE: u32 = 64;
const VIEW: u32 = 128;
/// Node classes that something may be organized under.
const CONTAINERS: u32 = OBJECT | OBJECT_TYPE | VIEW;

/// Applies a step that makes a node.
pub(crate) fn node(work: &mut Work<'_>, new: &NewNode) -> Result<Handle, Refusal> {
    match &new.kind {
        NewKind::Folder => object(work, new, &standard(ids::object_type::FOLDER_TYPE), true),
        NewKind::Object { type_definition } => object(work, new, type_definition, false),
        NewKind::View => {
            let parent = parent(work, new, CONTAINERS)?;
            let body = Body::View {
                contains_no_loops: true,
                event_notifier: 0,
            };
            let handle = insert(work, new, body)?;
            hang(work, new, parent, ids::reference_type::ORGANIZES, handle)
        }
        NewKind::Variable {
            tag,
            data_type,
            type_definition,
            source,
            access,
        } => {
            let declared = Declared {
                tag: *tag,
                data_type,
                source,
                access: *access,
                rank: rank_of(source),
            };
            let parent = parent(work, new, CONTAINERS | VARIABLE | VARIABLE_TYPE)?;
            let handle = variable(work, new, declared)?;
            under_parent(work, new, parent, handle)?;
            define(work, new, handle, type_definition, VARIABLE_TYPE)
        }
        NewKind::Property { tag, data_type, source } => {
            let declared = Declared {
                tag: *tag,
                data_type,
                source,
                access: 1,
                rank: rank_of(source),
            };
            property(work, new, declared)
        }
        NewKind::Method { tag, inputs, outputs } => method(work, new, *tag, inputs, outputs),
        NewKind::ObjectType => subtype(work, new, OBJECT_TYPE, Body::ObjectType { is_abstract: false }),
        NewKind::VariableType { data_type } => variable_type(work, new, data_type),
        NewKind::ReferenceType { inverse } => {
            let body = ReferenceType {
                is_abstract: false,
                symmetric: inverse.text.is_empty(),
                inverse_name: inverse.clone(),
            };
            subtype(work, new, REFERENCE_TYPE, Body::ReferenceType(Box::new(body)))
        }
        NewKind::DataType { definition } => data_type(work, new, definition.as_ref()),
    }
}

fn variable_type(work: &mut Work<'_>, new: &NewNode, data_type: &NodeId) -> Result<Handle, Refusal> {
    if work.draft.rule(data_type).is_none() {
        return Err(no_data_type(data_type));
    }
    let link = work.draft.link(data_type)?;
    let body = VariableType {
        is_abstract: false,
        data_type: link,
        rank: -2,
        dimensions: Vec::new(),
        value: Variant::Empty,
    };
    subtype(work, new, VARIABLE_TYPE, Body::VariableType(Box::new(body)))
}

fn no_data_type(id: &NodeId) -> Refusal {
    (StatusCode::BAD_DATA_TYPE_ID_UNKNOWN, format!("no data type {id}"))
}

fn insert(work: &mut Work<'_>, new: &NewNode, body: Body) -> Result<Handle, Refusal> {
    work.draft.insert(Node::new(new.id.clone(), new.name.clone(), body))
}

/// The parent of a new node.
#[derive(Clone, Copy)]
struct Parent {
    /// Its handle, if it is in the same model.
    handle: Option<Handle>,
    class: u32,
}

/// Finds the parent and checks that it is of one of the classes.
fn parent(work: &Work<'_>, new: &NewNode, classes: u32) -> Result<Parent, Refusal> {
    let invalid = |reason: String| (StatusCode::BAD_PARENT_NODE_ID_INVALID, reason);
    let place = work
        .draft
        .locate(&new.parent)
        .ok_or_else(|| invalid(format!("no parent {}", new.parent)))?;
    let class = work.draft.class(place);
    if class & classes == 0 {
        return Err(invalid(format!("the parent {} is of the wrong node class", new.parent)));
    }
    let handle = match place {
        Place::Here(handle) => Some(handle),
        Place::Elsewhere(_) => None,
    };
    Ok(Parent { handle, class })
}

/// Adds the reference from the parent to the new node.
fn hang(work: &mut Work<'_>, new: &NewNode, parent: Parent, kind: u32, handle: Handle) -> Result<Handle, Refusal> {
    let ends = ((&new.parent, parent.handle), (&new.id, Some(handle)));
    work.draft.connect_ends(ends.0, &standard(kind), ends.1)?;
    Ok(handle)
}

/// Adds the reference from the new node to its type definition, which must be of a class.
fn define(
    work: &mut Work<'_>,
    new: &NewNode,
    handle: Handle,
    definition: &NodeId,
    class: u32,
) -> Result<Handle, Refusal> {
    let place = work
        .draft
        .locate(definition)
        .filter(|place| work.draft.class(*place) == class);
    let there = match place {
        Some(Place::Here(handle)) => Some(handle),
        Some(Place::Elsewhere(_)) => None,
        None => {
            let reason = format!("{definition} is not a type for this node class");
            return Err((StatusCode::BAD_TYPE_DEFINITION_INVALID, reason));
        }
    };
    let kind = standard(ids::reference_type::HAS_TYPE_DEFINITION);
    work.draft
        .connect_ends((&new.id, Some(handle)), &kind, (definition, there))?;
    Ok(handle)
}

/// Organizes under the Objects folder and in views, HasComponent elsewhere.
fn under_parent(work: &mut Work<'_>, new: &NewNode, parent: Parent, handle: Handle) -> Result<Handle, Refusal> {
    let organized = parent.class == VIEW || new.parent == standard(ids::object::OBJECTS_FOLDER);
    let kind = if organized {
        ids::reference_type::ORGANIZES
    } else {
        ids::reference_type::HAS_COMPONENT
    };
    hang(work, new, parent, kind, handle)
}

fn object(work: &mut Work<'_>, new: &NewNode, definition: &NodeId, organized: bool) -> Result<Handle, Refusal> {
    let parent = parent(work, new, CONTAINERS)?;
    let handle = insert(work, new, Body::Object { event_notifier: 0 })?;
    if organized {
        hang(work, new, parent, ids::reference_type::ORGANIZES, handle)?;
    } else {
        under_parent(work, new, parent, handle)?;
    }
    define(work, new, handle, definition, OBJECT_TYPE)
}

/// What a step says about a variable or property.
struct Declared<'s> {
    tag: u32,
    data_type: &'s NodeId,
    source: &'s NewSource,
    access: u32,
    rank: i32,
}

fn variable(work: &mut Work<'_>, new: &NewNode, declared: Declared<'_>) -> Result<Handle, Refusal> {
    let Some(rule) = work.draft.rule(declared.data_type) else {
        return Err(no_data_type(declared.data_type));
    };
    let data_type = work.draft.link(declared.data_type)?;
    let stamp = |value: &DataValue| {
        let mut value = value.clone();
        value.source_timestamp = value.source_timestamp.or(work.steps.now);
        value.server_timestamp = value.server_timestamp.or(work.steps.now);
        value
    };
    let source = match declared.source {
        NewSource::Cell(value) => Source::Cell(Arc::new(ValueCell::new(stamp(value)))),
        NewSource::Static(value) => Source::Static(Arc::new(stamp(value))),
        NewSource::Live(value) => Source::Live(Arc::clone(value)),
    };
    let body = Variable {
        source,
        tag: declared.tag,
        data_type,
        rank: declared.rank,
        access: declared.access,
        rule,
        extra: None,
    };
    insert(work, new, Body::Variable(body))
}

fn property(work: &mut Work<'_>, new: &NewNode, declared: Declared<'_>) -> Result<Handle, Refusal> {
    let parent = parent(work, new, u32::MAX)?;
    let handle = variable(work, new, declared)?;
    hang(work, new, parent, ids::reference_type::HAS_PROPERTY, handle)?;
    define(
        work,
        new,
        handle,
        &standard(ids::variable_type::PROPERTY_TYPE),
        VARIABLE_TYPE,
    )
}

/// A property of namespace 0 whose value never changes.
pub(crate) fn static_property(
    work: &mut Work<'_>,
    owner: &NodeId,
    name: &str,
    data_type: u32,
    rank: i32,
    value: Variant,
) -> Result<(), Refusal> {
    let source = NewSource::Static(DataValue::new(value));
    let data_type = standard(data_type);
    let declared = Declared {
        tag: 0,
        data_type: &data_type,
        source: &source,
        access: 1,
        rank,
    };
    let new = part_of(owner, name, NewKind::Folder);
    property(work, &new, declared).map(|_| ())
}

fn method(
    work: &mut Work<'_>,
    new: &NewNode,
    tag: u32,
    inputs: &[MethodArgument],
    outputs: &[MethodArgument],
) -> Result<Handle, Refusal> {
    let parent = parent(work, new, OBJECT | OBJECT_TYPE)?;
    let body = Method {
        executable: true,
        tag,
        inputs: argument_rules(work, inputs)?,
        outputs: argument_rules(work, outputs)?,
    };
    let handle = insert(work, new, Body::Method(Box::new(body)))?;
    hang(work, new, parent, ids::reference_type::HAS_COMPONENT, handle)?;
    for (name, arguments) in [("InputArguments", inputs), ("OutputArguments", outputs)] {
        if !arguments.is_empty() {
            let values: Vec<ExtensionObject> = arguments.iter().map(encoded_argument).collect();
            static_property(
                work,
                &new.id,
                name,
                ids::data_type::ARGUMENT,
                1,
                Variant::from(ArrayValues::from(values)),
            )?;
        }
    }
    Ok(handle)
}

fn argument_rules(work: &mut Work<'_>, arguments: &[MethodArgument]) -> Result<Vec<ArgumentRule>, Refusal> {
    if arguments.len() > work.draft.limits.max_arguments as usize {
        return Err((
            StatusCode::BAD_TOO_MANY_ARGUMENTS,
            format!("{} arguments", arguments.len()),
        ));
    }
    let mut rules = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let Some(rule) = work.draft.rule(&argument.data_type) else {
            return Err(no_data_type(&argument.data_type));
        };
        rules.push(ArgumentRule {
            rule,
            rank: argument.value_rank,
            dimensions: argument.dimensions.clone(),
            data_type: argument.data_type.clone(),
        });
    }
    Ok(rules)
}

fn encoded_argument(argument: &MethodArgument) -> ExtensionObject {
    ExtensionObject::from_structure(&Argument {
        name: argument.name.as_str().into(),
        data_type: argument.data_type.clone(),
        value_rank: argument.value_rank,
        array_dimensions: argument.dimensions.clone(),
        description: LocalizedText::plain(argument.description.as_str()),
    })
}

fn subtype(work: &mut Work<'_>, new: &NewNode, class: u32, body: Body) -> Result<Handle, Refusal> {
    let parent = parent(work, new, class)?;
    let handle = insert(work, new, body)?;
    hang(work, new, parent, ids::reference_type::HAS_SUBTYPE, handle)
}

fn data_type(work: &mut Work<'_>, new: &NewNode, definition: Option<&ExtensionObject>) -> Result<Handle, Refusal> {
    parent(work, new, DATA_TYPE)?;
    let Some(rule) = work.draft.rule(&new.parent) else {
        return Err(no_data_type(&new.parent));
    };
    let value = definition.map_or(Variant::Empty, |definition| Variant::from(definition.clone()));
    let body = DataType {
        is_abstract: false,
        definition: value,
    };
    let handle = subtype(work, new, DATA_TYPE, Body::DataType(Box::new(body)))?;
    let Some(definition) = definition else {
        return Ok(handle);
    };
    let invalid = |reason: &str| (StatusCode::BAD_NODE_ATTRIBUTES_INVALID, reason.to_owned());
    if definition.is::<StructureDefinition>() {
        let structure: StructureDefinition = definition
            .decode_as()
            .map_err(|error| invalid(&format!("the StructureDefinition does not decode: {error}")))?;
        if rule != TypeRule::STRUCTURE {
            return Err(invalid("a StructureDefinition, but the supertype is not Structure"));
        }
        encoding(work, new, &structure)?;
    } else if definition.is::<EnumDefinition>() {
        let enumeration: EnumDefinition = definition
            .decode_as()
            .map_err(|error| invalid(&format!("the EnumDefinition does not decode: {error}")))?;
        enumeration_values(work, new, &enumeration, rule)?;
    } else {
        return Err(invalid(
            "the definition is neither a StructureDefinition nor an EnumDefinition",
        ));
    }
    Ok(handle)
}

/// The "Default Binary" node of a structure (Part 3, 5.8.4).
fn encoding(work: &mut Work<'_>, new: &NewNode, structure: &StructureDefinition) -> Result<(), Refusal> {
    let id = &structure.default_encoding_id;
    if id.is_null() {
        // An abstract structure: no value of it is ever sent.
        if let Some(handle) = work.draft.model.handle(&new.id)
            && let Some(Node {
                body: Body::DataType(body),
                ..
            }) = work.draft.model.nodes.get_mut(handle)
        {
            body.is_abstract = true;
        }
        return Ok(());
    }
    let name = QualifiedName::new(0, "Default Binary");
    work.draft
        .insert(Node::new(id.clone(), name, Body::Object { event_notifier: 0 }))?;
    work.draft
        .connect(&new.id, &standard(ids::reference_type::HAS_ENCODING), id)?;
    let definition = standard(ids::object_type::DATA_TYPE_ENCODING_TYPE);
    work.draft
        .connect(id, &standard(ids::reference_type::HAS_TYPE_DEFINITION), &definition)
}

/// EnumStrings where the values count up from 0, EnumValues elsewhere (Part 3, 5.8.3); OptionSetValues for bits.
fn enumeration_values(
    work: &mut Work<'_>,
    new: &NewNode,
    enumeration: &EnumDefinition,
    rule: TypeRule,
) -> Result<(), Refusal> {
    let display = |name: &backplane_types::UaString, shown: &LocalizedText| {
        if shown.text.is_empty() {
            LocalizedText::plain(name.clone())
        } else {
            shown.clone()
        }
    };
    let counts_up = (0i64..)
        .zip(&enumeration.fields)
        .all(|(number, field)| field.value == number);
    let texts = || -> Vec<LocalizedText> {
        enumeration
            .fields
            .iter()
            .map(|field| display(&field.name, &field.display_name))
            .collect()
    };
    if rule != TypeRule::ENUMERATION {
        return match counts_up {
            true => static_property(
                work,
                &new.id,
                "OptionSetValues",
                ids::data_type::LOCALIZED_TEXT,
                1,
                Variant::from(ArrayValues::from(texts())),
            ),
            false => Ok(()),
        };
    }
    if counts_up {
        let value = Variant::from(ArrayValues::from(texts()));
        return static_property(work, &new.id, "EnumStrings", ids::data_type::LOCALIZED_TEXT, 1, value);
    }
    let values: Vec<ExtensionObject> = enumeration
        .fields
        .iter()
        .map(|field| {
            ExtensionObject::from_structure(&EnumValueType {
                value: field.value,
                display_name: display(&field.name, &field.display_name),
                description: field.description.clone(),
            })
        })
        .collect();
    let value = Variant::from(ArrayValues::from(values));
    static_property(work, &new.id, "EnumValues", ids::data_type::ENUM_VALUE_TYPE, 1, value)
}
