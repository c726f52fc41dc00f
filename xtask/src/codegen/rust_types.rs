//! Rust sources of the data types: structures, enumerations, option sets, and the table of services.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::data_types::{DataTypes, Kind};
use super::error::CodegenError;
use super::names::{screaming, snake};
use super::nodeset::{Field, Node};
use super::{HEADER, well_known};

/// The Rust type of a built-in type.
fn built_in(kind: u8) -> Result<&'static str, CodegenError> {
    const NAMES: [&str; 25] = [
        "bool",
        "i8",
        "u8",
        "i16",
        "u16",
        "i32",
        "u32",
        "i64",
        "u64",
        "f32",
        "f64",
        "UaString",
        "DateTime",
        "Guid",
        "ByteString",
        "XmlElement",
        "NodeId",
        "ExpandedNodeId",
        "StatusCode",
        "QualifiedName",
        "LocalizedText",
        "ExtensionObject",
        "DataValue",
        "Variant",
        "DiagnosticInfo",
    ];
    let name = usize::from(kind)
        .checked_sub(1)
        .and_then(|index| NAMES.get(index))
        .copied();
    name.ok_or_else(|| CodegenError::schema(kind, "not a built-in type"))
}

/// The names a module must import, by where they come from.
#[derive(Default)]
struct Imports {
    built_in: BTreeSet<&'static str>,
    enumerations: BTreeSet<String>,
    option_sets: BTreeSet<String>,
}

impl Imports {
    fn render(&self, out: &mut String) {
        let list = |names: Vec<&str>| names.join(", ");
        let foreign: Vec<&str> = self
            .built_in
            .iter()
            .copied()
            .filter(|name| name.starts_with(|c: char| c.is_uppercase()))
            .collect();
        let _ = writeln!(
            out,
            "use super::enumerations::{{{}}};",
            list(self.enumerations.iter().map(|n| &**n).collect())
        );
        let _ = writeln!(
            out,
            "use super::option_sets::{{{}}};",
            list(self.option_sets.iter().map(|n| &**n).collect())
        );
        let _ = writeln!(out, "use crate::{{{}}};", list(foreign));
    }
}

/// The Rust type of a single value of a field.
fn single(types: &DataTypes<'_>, field: &Field, imports: &mut Imports) -> Result<String, CodegenError> {
    let built_in_kind = match types.kind(field.data_type)? {
        Kind::BuiltIn(kind) => kind,
        Kind::AbstractStructure => 22,
        Kind::Structure if field.allow_subtypes => 22,
        named => {
            let name = types.rust_name(types.node(field.data_type)?).to_owned();
            match named {
                Kind::Enumeration => imports.enumerations.insert(name.clone()),
                Kind::OptionSet(_) => imports.option_sets.insert(name.clone()),
                _ => true,
            };
            return Ok(name);
        }
    };
    let name = built_in(built_in_kind)?;
    imports.built_in.insert(name);
    Ok(name.to_owned())
}

/// The type of a field as the macros read it: `T`, `[T]`, and either in parentheses when it is optional.
fn field_type(types: &DataTypes<'_>, field: &Field, imports: &mut Imports) -> Result<String, CodegenError> {
    let single = single(types, field, imports)?;
    let shaped = match field.value_rank {
        -1 => single,
        1 => format!("[{single}]"),
        rank => {
            return Err(CodegenError::schema(
                &field.name,
                format!("value rank {rank} is not supported"),
            ));
        }
    };
    Ok(if field.optional { format!("({shaped})") } else { shaped })
}

fn doc_line(node: &Node) -> String {
    let place = node
        .section
        .as_deref()
        .map_or(String::new(), |section| format!(" ({section})"));
    let service = |suffix: &str| node.browse_name.strip_suffix(suffix);
    match (service("Request"), service("Response")) {
        (Some(name), _) if is_service(node) => format!("Request of the {name} Service{place}."),
        (_, Some(name)) if is_service(node) => format!("Response of the {name} Service{place}."),
        _ => format!("`{}`{place}.", node.browse_name),
    }
}

fn is_service(node: &Node) -> bool {
    node.definition
        .as_ref()
        .and_then(|definition| definition.fields.first())
        .is_some_and(|first| first.name == "RequestHeader" || first.name == "ResponseHeader")
}

/// `structures.rs`.
pub(crate) fn structures(types: &DataTypes<'_>) -> Result<String, CodegenError> {
    let mut imports = Imports::default();
    let (mut plain, mut optional) = (String::new(), String::new());
    for node in types.sorted() {
        if !types.is_generated(node)? {
            continue;
        }
        if types.is_union(node.id) {
            return Err(CodegenError::schema(
                &node.browse_name,
                "unions are not supported; namespace 0 had none",
            ));
        }
        let fields = types.fields(node.id);
        let out = if fields.iter().any(|field| field.optional) {
            &mut optional
        } else {
            &mut plain
        };
        let binary = types.encodings(node.id).binary.unwrap_or_default();
        let _ = writeln!(out, "    /// {}", doc_line(node));
        let _ = writeln!(out, "    {}: {}, {binary} {{", types.rust_name(node), node.id);
        for field in fields {
            let _ = writeln!(
                out,
                "        {}: {},",
                snake(&field.name),
                field_type(types, field, &mut imports)?
            );
        }
        let _ = writeln!(out, "    }}");
    }
    let mut out = format!("//! Structures of namespace 0.\n{HEADER}\n");
    imports.render(&mut out);
    let _ = write!(
        out,
        "\nstructures! {{\n{plain}}}\n\noptional_structures! {{\n{optional}}}\n"
    );
    Ok(out)
}

/// `enumerations.rs`.
pub(crate) fn enumerations(types: &DataTypes<'_>) -> Result<String, CodegenError> {
    let mut out = format!("//! Enumerations of namespace 0.\n{HEADER}\nenumerations! {{\n");
    for node in types.sorted() {
        let Some(definition) = node.definition.as_ref().filter(|_| node.id != well_known::ENUMERATION) else {
            continue;
        };
        if types.kind(node.id)? != Kind::Enumeration {
            continue;
        }
        let _ = writeln!(out, "    /// {}", doc_line(node));
        let _ = writeln!(out, "    {}: {} {{", types.rust_name(node), node.id);
        let mut values = BTreeSet::new();
        for field in &definition.fields {
            if !values.insert(field.value) {
                return Err(CodegenError::schema(&node.browse_name, "two names for one value"));
            }
            let _ = writeln!(out, "        {} = {},", screaming(&field.name), field.value);
        }
        let _ = writeln!(out, "    }}");
    }
    out.push_str("}\n");
    Ok(out)
}

/// `option_sets.rs`.
pub(crate) fn option_sets(types: &DataTypes<'_>) -> Result<String, CodegenError> {
    let mut out = format!("//! Option sets of namespace 0: bits of unsigned integers.\n{HEADER}\noption_sets! {{\n");
    for node in types.sorted() {
        let (Kind::OptionSet(base), Some(definition)) = (types.kind(node.id)?, &node.definition) else {
            continue;
        };
        let _ = writeln!(out, "    /// {}", doc_line(node));
        let _ = writeln!(
            out,
            "    {}: {}, {} {{",
            types.rust_name(node),
            node.id,
            built_in(base)?
        );
        for field in &definition.fields {
            let _ = writeln!(out, "        {} = {},", screaming(&field.name), field.value);
        }
        let _ = writeln!(out, "    }}");
    }
    out.push_str("}\n");
    Ok(out)
}

/// `service.rs`: every request that has a response, in ascending order of the request's encoding.
pub(crate) fn services(types: &DataTypes<'_>) -> Result<String, CodegenError> {
    let sorted = types.sorted();
    let binary_of = |name: String| {
        let node = sorted.iter().find(|node| node.browse_name == name)?;
        types.encodings(node.id).binary
    };
    let mut services: Vec<(u32, u32, &str)> = Vec::new();
    for node in sorted.iter().filter(|node| is_service(node)) {
        let Some(name) = node.browse_name.strip_suffix("Request") else {
            continue;
        };
        let (Some(request), Some(response)) = (types.encodings(node.id).binary, binary_of(format!("{name}Response")))
        else {
            return Err(CodegenError::schema(name, "service without a response or an encoding"));
        };
        services.push((request, response, name));
    }
    services.sort_unstable();
    let fault = binary_of("ServiceFault".to_owned()).ok_or_else(|| CodegenError::schema("ServiceFault", "missing"))?;
    let mut out =
        format!("//! The services (Part 4, 5) and the encodings of their messages.\n{HEADER}\nservices! {{\n");
    let _ = writeln!(out, "    fault = {fault};");
    for (request, response, name) in services {
        let _ = writeln!(out, "    {name}: {request}, {response},");
    }
    out.push_str("}\n");
    Ok(out)
}
