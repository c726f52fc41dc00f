//! The node table of namespace 0. Its layout is documented at its reader, `host/nodes/src/ns0/table.rs`.

use std::collections::BTreeMap;

use super::data_types::{DataTypes, Kind};
use super::encode::Writer;
use super::error::CodegenError;
use super::nodeset::{Definition, Node, NodeSet, Purpose, well_known};
use super::value;

/// A table under construction.
#[derive(Default)]
struct Blob(Vec<u8>);

impl Blob {
    fn number(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.0.push((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn signed(&mut self, value: i32) {
        self.number(((value << 1) ^ (value >> 31)) as u32);
    }

    fn length(&mut self, length: usize) -> Result<(), CodegenError> {
        self.number(u32::try_from(length).map_err(|_| CodegenError::schema(length, "too long"))?);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CodegenError> {
        self.length(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Values that many nodes share, numbered in ascending order.
struct Pool<T>(BTreeMap<T, u32>);

impl<T: Ord> Pool<T> {
    fn new(values: impl Iterator<Item = T>) -> Self {
        let mut pool: BTreeMap<T, u32> = values.map(|value| (value, 0)).collect();
        for (index, slot) in (0..).zip(pool.values_mut()) {
            *slot = index;
        }
        Self(pool)
    }

    fn index<Q>(&self, value: &Q) -> Result<u32, CodegenError>
    where
        T: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.0
            .get(value)
            .copied()
            .ok_or_else(|| CodegenError::schema("node table", "value is not pooled"))
    }
}

struct Pools<'n> {
    strings: Pool<&'n str>,
    permissions: Pool<&'n [(u32, u32)]>,
}

/// The whole table.
pub(crate) fn table(set: &NodeSet, types: &DataTypes<'_>) -> Result<Vec<u8>, CodegenError> {
    let nodes = || set.nodes.values();
    let strings = nodes().flat_map(|node| {
        [node.browse_name.as_str(), &node.display_name]
            .into_iter()
            .chain(node.inverse_name.as_deref())
    });
    let pools = Pools {
        strings: Pool::new(strings),
        permissions: Pool::new(
            nodes()
                .map(|node| &node.role_permissions[..])
                .filter(|list| !list.is_empty()),
        ),
    };
    let mut blob = Blob(b"BPN0\x01".to_vec());
    blob.length(pools.strings.0.len())?;
    for text in pools.strings.0.keys() {
        blob.bytes(text.as_bytes())?;
    }
    blob.length(pools.permissions.0.len())?;
    for list in pools.permissions.0.keys() {
        blob.length(list.len())?;
        for (role, permissions) in *list {
            blob.number(*role);
            blob.number(*permissions);
        }
    }
    blob.length(set.nodes.len())?;
    let mut before = 0;
    for node in nodes() {
        blob.number(node.id - before);
        before = node.id;
        write_node(&mut blob, node, types, &pools)?;
    }
    Ok(blob.0)
}

fn write_node(blob: &mut Blob, node: &Node, types: &DataTypes<'_>, pools: &Pools<'_>) -> Result<(), CodegenError> {
    let mut mask = 0;
    let mut extra = Blob::default();
    for (bit, set) in [
        (0, node.is_abstract),
        (1, node.symmetric),
        (2, node.purpose == Purpose::ServicesOnly),
        (3, node.purpose == Purpose::CodeGenerator),
        (4, node.deprecated),
        (5, node.design_tool_only),
    ] {
        mask |= u32::from(set) << bit;
    }
    write_extra(&mut mask, &mut extra, node, types, pools)?;
    blob.0.push(node.class as u8);
    blob.number(mask);
    blob.number(pools.strings.index(node.browse_name.as_str())?);
    blob.0.extend_from_slice(&extra.0);
    blob.length(node.references.len())?;
    for (kind, target) in &node.references {
        let step = i64::from(*target) - i64::from(node.id);
        blob.number(*kind);
        blob.signed(i32::try_from(step).map_err(|_| CodegenError::schema(target, "NodeId too large"))?);
    }
    Ok(())
}

fn write_extra(
    mask: &mut u32,
    extra: &mut Blob,
    node: &Node,
    types: &DataTypes<'_>,
    pools: &Pools<'_>,
) -> Result<(), CodegenError> {
    let mut has = |bit: u32, present: bool| {
        *mask |= u32::from(present) << bit;
        present
    };
    if has(7, node.display_name != node.browse_name) {
        extra.number(pools.strings.index(node.display_name.as_str())?);
    }
    if let Some(name) = node.inverse_name.as_deref().filter(|_| has(8, true)) {
        extra.number(pools.strings.index(name)?);
    }
    if has(9, node.data_type != well_known::BASE_DATA_TYPE) {
        extra.number(node.data_type);
    }
    if has(10, node.value_rank != -1) {
        extra.signed(node.value_rank);
    }
    if has(11, !node.array_dimensions.is_empty()) {
        extra.length(node.array_dimensions.len())?;
        node.array_dimensions
            .iter()
            .for_each(|dimension| extra.number(*dimension));
    }
    if has(12, node.access_level != 1) {
        extra.number(node.access_level);
    }
    if has(13, node.event_notifier != 0) {
        extra.number(node.event_notifier);
    }
    let value = node
        .value
        .as_ref()
        .map(|value| value::variant(types, value))
        .transpose()?
        .flatten();
    if let Some(value) = value.filter(|_| has(14, true)) {
        extra.bytes(&value)?;
    }
    if let Some(definition) = node.definition.as_ref().filter(|_| has(15, true)) {
        extra.bytes(&encode_definition(node, definition, types)?)?;
    }
    if has(16, !node.role_permissions.is_empty()) {
        extra.number(pools.permissions.index(&node.role_permissions[..])?);
    }
    if let Some(restrictions) = node.access_restrictions.filter(|_| has(17, true)) {
        extra.number(restrictions);
    }
    if let Some(method) = node.method_declaration.filter(|_| has(18, true)) {
        extra.number(method);
    }
    Ok(())
}

/// The DataTypeDefinition attribute as an encoded Variant.
fn encode_definition(node: &Node, definition: &Definition, types: &DataTypes<'_>) -> Result<Vec<u8>, CodegenError> {
    let is_structure = matches!(types.kind(node.id)?, Kind::Structure | Kind::AbstractStructure);
    let (data_type, body) = if is_structure && !definition.is_option_set {
        (99, structure_definition(node, types)?)
    } else {
        (100, enum_definition(definition))
    };
    let encoding = types.encodings(data_type).binary;
    let encoding = encoding.ok_or_else(|| CodegenError::schema(data_type, "definition without an encoding"))?;
    let mut writer = Writer::default();
    writer.u8(22);
    writer.extension_object(encoding, &body);
    Ok(writer.finish())
}

/// StructureDefinition (Part 3, 8.48).
fn structure_definition(node: &Node, types: &DataTypes<'_>) -> Result<Vec<u8>, CodegenError> {
    let fields = types.fields(node.id);
    let optional = fields.iter().any(|field| field.optional);
    let subtypes = fields.iter().any(|field| field.allow_subtypes);
    let structure_type = match (types.is_union(node.id), optional, subtypes) {
        (false, false, false) => 0,
        (false, true, false) => 1,
        (true, false, false) => 2,
        (false, false, true) => 3,
        (true, false, true) => 4,
        (_, true, _) => {
            return Err(CodegenError::schema(
                &node.browse_name,
                "optional fields beside subtypes or a union",
            ));
        }
    };
    let encoding = types.encodings(node.id).binary.filter(|_| !node.is_abstract);
    let mut writer = Writer::default();
    writer.node_id(encoding.unwrap_or(0));
    writer.node_id(types.supertype(node.id).unwrap_or(0));
    writer.i32(structure_type);
    writer.length(fields.len());
    for field in fields {
        writer.string(&field.name);
        writer.localized_text(None, None);
        writer.node_id(field.data_type);
        writer.i32(field.value_rank);
        if field.array_dimensions.is_empty() {
            writer.null();
        } else {
            writer.length(field.array_dimensions.len());
            field
                .array_dimensions
                .iter()
                .for_each(|dimension| writer.u32(*dimension));
        }
        writer.u32(field.max_string_length);
        writer.bool(field.optional || field.allow_subtypes);
    }
    Ok(writer.finish())
}

/// EnumDefinition (Part 3, 8.50).
fn enum_definition(definition: &Definition) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.length(definition.fields.len());
    for field in &definition.fields {
        writer.i64(field.value);
        writer.localized_text(None, Some(field.display_name.as_deref().unwrap_or(&field.name)));
        writer.localized_text(None, None);
        writer.string(&field.name);
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::Blob;

    #[test]
    fn numbers_are_leb128_and_zigzag() {
        let mut blob = Blob::default();
        blob.number(0);
        blob.number(300);
        blob.signed(-1);
        blob.signed(1);
        blob.signed(i32::MIN);
        assert_eq!(blob.0, [0, 0xAC, 2, 1, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]);
    }
}
