//! What a document says about types: the data types of variables, and the definitions of data types (Part 6, F.12).

use backplane_types::{
    EnumDefinition, EnumField, ExtensionObject, NodeId, StatusCode, StructureDefinition, StructureField, StructureType,
    Variant, ids,
};

use hashbrown::HashMap;

use super::record::{Class, Definition, Field, Record};
use crate::model::apply::Work;
use crate::model::draft::{Refusal, standard};
use crate::model::node::Body;
use crate::typing::TypeRule;

/// Sets what needs all nodes and references to be there.
pub(super) fn define_all(work: &mut Work<'_>, records: &[Record]) -> Result<(), Refusal> {
    let data_types = records.iter().filter(|record| record.class == Class::DataType);
    let mut open: HashMap<&NodeId, &Record> = data_types.map(|record| (&record.id, record)).collect();
    for record in records {
        match record.class {
            Class::Variable | Class::VariableType => data_type(work, record)?,
            // A structure lists the fields of its supertypes, so those are defined first, wherever they stand.
            Class::DataType => {
                let mut chain = Vec::new();
                let mut at = open.remove(&record.id);
                while let Some(next) = at {
                    chain.push(next);
                    let supertype = linked(next, ids::reference_type::HAS_SUBTYPE, false);
                    at = supertype.and_then(|supertype| open.remove(supertype));
                }
                for record in chain.into_iter().rev() {
                    definition(work, record)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn data_type(work: &mut Work<'_>, record: &Record) -> Result<(), Refusal> {
    let Some(rule) = work.draft.rule(&record.data_type) else {
        let reason = format!("{}: no data type {}", record.id, record.data_type);
        return Err((StatusCode::BAD_DATA_TYPE_ID_UNKNOWN, reason));
    };
    let link = work.draft.link(&record.data_type)?;
    let handle = work.own(&record.id)?;
    match work.draft.model.nodes.get_mut(handle).map(|node| &mut node.body) {
        Some(Body::Variable(variable)) => {
            variable.data_type = link;
            variable.rule = rule;
        }
        Some(Body::VariableType(body)) => body.data_type = link,
        _ => {}
    }
    Ok(())
}

fn definition(work: &mut Work<'_>, record: &Record) -> Result<(), Refusal> {
    let Some(given) = &record.definition else { return Ok(()) };
    let rule = work.draft.rule(&record.id);
    let object = if rule == Some(TypeRule::STRUCTURE) {
        ExtensionObject::from_structure(&structure(work, record, given))
    } else {
        ExtensionObject::from_structure(&EnumDefinition {
            fields: given.fields.iter().map(enum_field).collect(),
        })
    };
    let handle = work.own(&record.id)?;
    if let Some(Body::DataType(body)) = work.draft.model.nodes.get_mut(handle).map(|node| &mut node.body) {
        body.definition = Variant::from(object);
    }
    Ok(())
}

fn enum_field(field: &Field) -> EnumField {
    EnumField {
        value: field.value,
        display_name: if field.display_name.text.is_empty() {
            backplane_types::LocalizedText::plain(field.name.clone())
        } else {
            field.display_name.clone()
        },
        description: field.description.clone(),
        name: field.name.clone(),
    }
}

fn structure(work: &Work<'_>, record: &Record, given: &Definition) -> StructureDefinition {
    let supertype = linked(record, ids::reference_type::HAS_SUBTYPE, false)
        .cloned()
        .unwrap_or(NodeId::NULL);
    // The fields of the supertypes come first (Part 3, 8.48).
    let mut fields = inherited(work, &supertype);
    fields.extend(given.fields.iter().map(structure_field));
    let optional =
        fields.iter().any(|field| field.is_optional) && given.fields.iter().all(|field| !field.allow_subtypes);
    let subtypes = given.fields.iter().any(|field| field.allow_subtypes);
    let structure_type = match (given.is_union, subtypes, optional) {
        (true, true, _) => StructureType::UNION_WITH_SUBTYPED_VALUES,
        (true, false, _) => StructureType::UNION,
        (false, true, _) => StructureType::STRUCTURE_WITH_SUBTYPED_VALUES,
        (false, false, true) => StructureType::STRUCTURE_WITH_OPTIONAL_FIELDS,
        (false, false, false) => StructureType::STRUCTURE,
    };
    StructureDefinition {
        default_encoding_id: encoding(work, record).unwrap_or(NodeId::NULL),
        base_data_type: supertype,
        structure_type,
        fields,
    }
}

fn structure_field(field: &Field) -> StructureField {
    StructureField {
        name: field.name.clone(),
        description: field.description.clone(),
        data_type: field.data_type.clone(),
        value_rank: field.value_rank,
        array_dimensions: field.dimensions.clone(),
        max_string_length: field.max_string_length,
        // With subtyped values the flag says that subtypes are allowed (Part 3, 8.51).
        is_optional: field.is_optional || field.allow_subtypes,
    }
}

/// The fields of a structure that was defined before: in this document above, or elsewhere.
fn inherited(work: &Work<'_>, supertype: &NodeId) -> Vec<StructureField> {
    let node = work.draft.locate(supertype).and_then(|place| work.draft.node(place));
    match node.map(|node| &node.body) {
        Some(Body::DataType(body)) => match &body.definition {
            Variant::ExtensionObject(object) => object
                .decode_as::<StructureDefinition>()
                .map(|definition| definition.fields)
                .unwrap_or_default(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn linked(record: &Record, kind: u32, forward: bool) -> Option<&NodeId> {
    let kind = standard(kind);
    record
        .links
        .iter()
        .find(|link| link.kind == kind && link.forward == forward)
        .map(|link| &link.target)
}

/// The id of the node "Default Binary" that the data type has as an encoding.
fn encoding(work: &Work<'_>, record: &Record) -> Option<NodeId> {
    let has_encoding = standard(ids::reference_type::HAS_ENCODING);
    let node = work.draft.model.nodes.get(work.draft.here(&record.id)?)?;
    node.references.iter().find_map(|reference| {
        if !reference.is_forward() || work.draft.id_of(reference.kind()) != Some(&has_encoding) {
            return None;
        }
        let id = work.draft.id_of(reference.target)?;
        let name = &work.draft.node(work.draft.locate(id)?)?.browse_name;
        (name.name.text() == "Default Binary").then(|| id.clone())
    })
}
