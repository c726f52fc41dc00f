//! Rust sources of the flat tables: status codes, node ids, engineering units.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::HEADER;
use super::csv;
use super::error::CodegenError;
use super::names::screaming;
use super::nodeset::{Class, NodeSet};

fn columns<const N: usize>(row: &[String], file: &str) -> Result<[String; N], CodegenError> {
    let columns = row.get(..N).and_then(|columns| columns.to_vec().try_into().ok());
    columns.ok_or_else(|| CodegenError::schema(file, format!("row with fewer than {N} columns: {row:?}")))
}

fn number(text: &str, file: &str) -> Result<u32, CodegenError> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| CodegenError::schema(file, format!("not a number: {text}")))
}

/// `status_codes.rs`. The additions win over the older list: they correct spellings.
pub(crate) fn status_codes(older: &str, additions: &str) -> Result<String, CodegenError> {
    let mut codes = BTreeMap::new();
    for row in csv::rows(older) {
        let [name, code] = columns(&row, "status codes")?;
        codes.insert(number(&code, "status codes")?, name);
    }
    for row in csv::rows(additions) {
        let [name, code] = columns(&row, "status code additions")?;
        let (severity, _) = name.split_once('_').unwrap_or((&name, ""));
        let severity: u32 = match severity {
            "Good" => 0,
            "Uncertain" => 1,
            "Bad" => 2,
            other => return Err(CodegenError::schema(other, "not a severity")),
        };
        let code = number(&code, "status code additions")?;
        if code > 0x0FFF {
            return Err(CodegenError::schema(name, "sub code above 12 bits"));
        }
        codes.insert(severity << 30 | code << 16, name.replace('_', ""));
    }
    let mut out = format!("//! Names of status codes (Part 6, A.2), ascending.\n{HEADER}\nstatus_codes! {{\n");
    let mut names = BTreeSet::new();
    for (code, name) in &codes {
        if !names.insert(name) {
            return Err(CodegenError::schema(name, "two codes with one name"));
        }
        let _ = writeln!(
            out,
            "    {} = 0x{:04X}_{:04X} {name:?},",
            screaming(name),
            code >> 16,
            code & 0xFFFF
        );
    }
    out.push_str("}\n");
    Ok(out)
}

/// `ids.rs`: names for the nodes that the nodeset has, by node class.
pub(crate) fn ids(set: &NodeSet, document: &str) -> Result<String, CodegenError> {
    let mut names: BTreeMap<Class, BTreeMap<String, u32>> = BTreeMap::new();
    for row in csv::rows(document) {
        let [name, id, _] = columns(&row, "node ids")?;
        let Some(node) = set.nodes.get(&number(&id, "node ids")?) else {
            continue;
        };
        if names
            .entry(node.class)
            .or_default()
            .insert(screaming(&name), node.id)
            .is_some()
        {
            return Err(CodegenError::schema(name, "two nodes of a class with one name"));
        }
    }
    let named: usize = names.values().map(BTreeMap::len).sum();
    if named != set.nodes.len() {
        return Err(CodegenError::schema("node ids", "some nodes have no name"));
    }
    let mut out = format!("//! NodeIds of namespace 0 by node class.\n{HEADER}\nids! {{\n");
    for (class, names) in names {
        let (module, plural) = match class {
            Class::Object => ("object", "Objects"),
            Class::Variable => ("variable", "Variables"),
            Class::Method => ("method", "Methods"),
            Class::ObjectType => ("object_type", "ObjectTypes"),
            Class::VariableType => ("variable_type", "VariableTypes"),
            Class::ReferenceType => ("reference_type", "ReferenceTypes"),
            Class::DataType => ("data_type", "DataTypes"),
        };
        let _ = writeln!(out, "    /// {plural} of namespace 0.\n    {module} {{");
        for (name, id) in names {
            let _ = writeln!(out, "        {name} = {id},");
        }
        out.push_str("    }\n");
    }
    out.push_str("}\n");
    Ok(out)
}

/// `units.rs` of the nodes crate, ascending by code.
pub(crate) fn units(document: &str) -> Result<String, CodegenError> {
    let mut units = BTreeMap::new();
    for row in csv::rows(document).iter().skip(1) {
        let [code, id, display_name, description] = columns(row, "units")?;
        let packed = code.bytes().fold(0u32, |packed, byte| packed << 8 | u32::from(byte));
        if number(&id, "units")? != packed || code.len() > 3 {
            return Err(CodegenError::schema(code, "the unit id is not the packed code"));
        }
        if units.insert(code.clone(), (display_name, description)).is_some() {
            return Err(CodegenError::schema(code, "unit is listed twice"));
        }
    }
    let mut out = format!("//! Common codes of UNECE Recommendation 20, ascending by code.\n{HEADER}\n");
    out.push_str("use crate::units::Unit;\n\npub(crate) static UNITS: &[Unit] = &[\n");
    for (code, (display_name, description)) in units {
        let _ = writeln!(out, "    Unit::new({code:?}, {display_name:?}, {description:?}),");
    }
    out.push_str("];\n");
    Ok(out)
}
