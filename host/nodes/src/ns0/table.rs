//! The node table of namespace 0: a committed, generated blob (`ns0.bin`) and its reader.
//!
//! Owns the layout below and nothing else: it hands out raw [`NodeRecord`]s and must not know models, snapshots or
//! value cells. `cargo xtask codegen` writes the blob; the reader checks it anyway and never panics on a damaged one.
//!
//! # Layout
//!
//! `v` is an unsigned LEB128 number, `z` a zigzag-coded signed one, `u8` a plain byte; all nodes are of namespace 0 with
//! numeric identifiers. The blob is the same for the same input, byte by byte.
//!
//! ```text
//! blob        := "BPN0" u8(version = 1) strings permissions nodes
//! strings     := v(count) { v(length) utf-8 }
//! permissions := v(count) { v(count) { v(role NodeId) v(PermissionType bits) } }
//! nodes       := v(count) { node }                        ascending NodeId
//! node        := v(NodeId - NodeId before) u8(NodeClass) v(mask) v(browse name) extra v(count) { reference }
//! reference   := v(reference type) z(target - NodeId)     forward only, each once
//! ```
//!
//! `extra` holds what the mask names, in the order of the bits:
//!
//! ```text
//! bit  0  IsAbstract is true                  9  DataType             v
//! bit  1  Symmetric is true                  10  ValueRank            z        else -1
//! bit  2  only the services use it           11  ArrayDimensions      v(count) { v }
//! bit  3  only code generators use it        12  AccessLevelEx        v        else 1 (CurrentRead)
//! bit  4  deprecated                         13  EventNotifier        v        else 0
//! bit  5  only design tools use it           14  Value                v(length) Variant
//! bit  6  (unused)                           15  DataTypeDefinition   v(length) Variant of one ExtensionObject
//! bit  7  DisplayName       v (string)       16  RolePermissions      v (index in permissions)
//! bit  8  InverseName       v (string)       17  AccessRestrictions   v
//!                                            18  method declaration   v
//! ```
//!
//! Values and definitions are in the OPC UA Binary encoding of Variant (Part 6, 5.2.2.16).

use std::fmt;

/// The generated blob.
static BLOB: &[u8] = include_bytes!("ns0.bin");

const MAGIC: &[u8; 5] = b"BPN0\x01";

/// The bits of a node's mask.
mod mask {
    pub(super) const IS_ABSTRACT: u32 = 1;
    pub(super) const SYMMETRIC: u32 = 1 << 1;
    pub(super) const SERVICES_ONLY: u32 = 1 << 2;
    pub(super) const CODE_GENERATOR: u32 = 1 << 3;
    pub(super) const DEPRECATED: u32 = 1 << 4;
    pub(super) const DESIGN_TOOL_ONLY: u32 = 1 << 5;
    pub(super) const DISPLAY_NAME: u32 = 1 << 7;
    pub(super) const INVERSE_NAME: u32 = 1 << 8;
    pub(super) const DATA_TYPE: u32 = 1 << 9;
    pub(super) const VALUE_RANK: u32 = 1 << 10;
    pub(super) const ARRAY_DIMENSIONS: u32 = 1 << 11;
    pub(super) const ACCESS_LEVEL: u32 = 1 << 12;
    pub(super) const EVENT_NOTIFIER: u32 = 1 << 13;
    pub(super) const VALUE: u32 = 1 << 14;
    pub(super) const DEFINITION: u32 = 1 << 15;
    pub(super) const PERMISSIONS: u32 = 1 << 16;
    pub(super) const ACCESS_RESTRICTIONS: u32 = 1 << 17;
    pub(super) const METHOD_DECLARATION: u32 = 1 << 18;
}

/// The blob is not what this reader expects. It is compiled in, so this means a build from damaged sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableError {
    /// Where in the blob, in bytes from its start.
    pub offset: usize,
    /// What was wrong there.
    pub reason: &'static str,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node table of namespace 0: {} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for TableError {}

/// What the nodeset says a node is for, besides being one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    /// A data type (or an encoding or dictionary entry) that only the services use; servers need not show it.
    pub services_only: bool,
    /// Only code generators use it; servers do not show it.
    pub code_generator: bool,
    /// Kept for old clients.
    pub deprecated: bool,
    /// A template for design tools; servers do not show it.
    pub design_tool_only: bool,
}

/// One entry of a RolePermissions attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolePermission {
    /// NodeId of the role.
    pub role: u32,
    /// Bits of PermissionType.
    pub permissions: u32,
}

/// A forward reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawReference {
    /// NodeId of the reference type.
    pub reference_type: u32,
    /// NodeId of the target.
    pub target: u32,
}

/// One node as the table holds it. Attributes that its NodeClass does not have keep their defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRecord<'a> {
    /// Numeric identifier in namespace 0.
    pub id: u32,
    /// Value of the NodeClass enumeration (1 Object, 2 Variable, 4 Method, 8 ObjectType, 16 VariableType,
    /// 32 ReferenceType, 64 DataType, 128 View).
    pub class: u8,
    /// Name part of the BrowseName; its namespace is 0.
    pub browse_name: &'a str,
    /// Text of the DisplayName; it has no locale.
    pub display_name: &'a str,
    /// What the node is for.
    pub purpose: Purpose,
    /// IsAbstract (types).
    pub is_abstract: bool,
    /// Symmetric (reference types).
    pub symmetric: bool,
    /// Text of the InverseName (reference types); it has no locale.
    pub inverse_name: Option<&'a str>,
    /// DataType (variables and variable types); 24, BaseDataType, when the nodeset names none.
    pub data_type: u32,
    /// ValueRank (variables and variable types).
    pub value_rank: i32,
    /// ArrayDimensions (variables and variable types); empty when the nodeset has none.
    pub array_dimensions: Vec<u32>,
    /// AccessLevelEx (variables).
    pub access_level: u32,
    /// EventNotifier (objects).
    pub event_notifier: u8,
    /// Value (variables and variable types): an encoded Variant.
    pub value: Option<&'a [u8]>,
    /// DataTypeDefinition (data types): an encoded Variant of one ExtensionObject that holds a StructureDefinition or an
    /// EnumDefinition. A structure's fields include the inherited ones, first. Descriptions are null.
    pub definition: Option<&'a [u8]>,
    /// RolePermissions, if the nodeset restricts the node.
    pub role_permissions: Option<&'a [RolePermission]>,
    /// AccessRestrictions (bits of AccessRestrictionType), if the nodeset restricts the node.
    pub access_restrictions: Option<u16>,
    /// The Method of the type that this Method was made from.
    pub method_declaration: Option<u32>,
    /// Forward references, each once: also those that the nodeset gives only at their target. Every target is in the table.
    pub references: Vec<RawReference>,
}

/// The opened table: its shared strings and permission sets, and where the nodes start.
#[derive(Debug)]
pub struct Table {
    strings: Vec<&'static str>,
    permissions: Vec<Vec<RolePermission>>,
    count: usize,
    nodes: Cursor<'static>,
}

impl Table {
    /// Opens the compiled-in table.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the blob is damaged.
    pub fn open() -> Result<Self, TableError> {
        Self::parse(BLOB)
    }

    fn parse(blob: &'static [u8]) -> Result<Self, TableError> {
        let mut cursor = Cursor { blob, at: 0 };
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(cursor.error("wrong magic or version"));
        }
        let strings = (0..cursor.count()?)
            .map(|_| cursor.string())
            .collect::<Result<_, _>>()?;
        let permissions = (0..cursor.count()?)
            .map(|_| (0..cursor.count()?).map(|_| cursor.role_permission()).collect())
            .collect::<Result<_, _>>()?;
        let count = cursor.count()?;
        Ok(Self {
            strings,
            permissions,
            count,
            nodes: cursor,
        })
    }

    /// How many nodes the table holds.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the table holds no node.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The nodes in ascending order of their identifiers; ends after the first error.
    pub fn records(&self) -> Records<'_> {
        Records {
            table: self,
            cursor: self.nodes.clone(),
            left: self.count,
            id: 0,
        }
    }
}

/// The nodes of a [`Table`].
#[derive(Clone, Debug)]
pub struct Records<'t> {
    table: &'t Table,
    cursor: Cursor<'static>,
    left: usize,
    id: u32,
}

impl<'t> Iterator for Records<'t> {
    type Item = Result<NodeRecord<'t>, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let record = self.record();
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<'t> Records<'t> {
    fn record(&mut self) -> Result<NodeRecord<'t>, TableError> {
        let step = self.cursor.number()?;
        self.id = self
            .id
            .checked_add(step)
            .ok_or_else(|| self.cursor.error("NodeId too large"))?;
        let class = self.cursor.byte()?;
        let mask = self.cursor.number()?;
        let browse_name = self.shared_string()?;
        let mut record = NodeRecord {
            id: self.id,
            class,
            browse_name,
            display_name: browse_name,
            purpose: Purpose {
                services_only: mask & mask::SERVICES_ONLY != 0,
                code_generator: mask & mask::CODE_GENERATOR != 0,
                deprecated: mask & mask::DEPRECATED != 0,
                design_tool_only: mask & mask::DESIGN_TOOL_ONLY != 0,
            },
            is_abstract: mask & mask::IS_ABSTRACT != 0,
            symmetric: mask & mask::SYMMETRIC != 0,
            inverse_name: None,
            data_type: 24,
            value_rank: -1,
            array_dimensions: Vec::new(),
            access_level: 1,
            event_notifier: 0,
            value: None,
            definition: None,
            role_permissions: None,
            access_restrictions: None,
            method_declaration: None,
            references: Vec::new(),
        };
        self.extra(mask, &mut record)?;
        let count = self.cursor.count()?;
        record.references = (0..count)
            .map(|_| self.cursor.reference(self.id))
            .collect::<Result<_, _>>()?;
        Ok(record)
    }

    /// Reads what the mask names.
    fn extra(&mut self, mask: u32, record: &mut NodeRecord<'t>) -> Result<(), TableError> {
        let has = |bit: u32| mask & bit != 0;
        if has(mask::DISPLAY_NAME) {
            record.display_name = self.shared_string()?;
        }
        if has(mask::INVERSE_NAME) {
            record.inverse_name = Some(self.shared_string()?);
        }
        if has(mask::DATA_TYPE) {
            record.data_type = self.cursor.number()?;
        }
        if has(mask::VALUE_RANK) {
            record.value_rank = self.cursor.signed()?;
        }
        if has(mask::ARRAY_DIMENSIONS) {
            let count = self.cursor.count()?;
            record.array_dimensions = (0..count).map(|_| self.cursor.number()).collect::<Result<_, _>>()?;
        }
        if has(mask::ACCESS_LEVEL) {
            record.access_level = self.cursor.number()?;
        }
        if has(mask::EVENT_NOTIFIER) {
            record.event_notifier = self.cursor.narrow()?;
        }
        if has(mask::VALUE) {
            record.value = Some(self.cursor.bytes()?);
        }
        if has(mask::DEFINITION) {
            record.definition = Some(self.cursor.bytes()?);
        }
        if has(mask::PERMISSIONS) {
            let index = self.cursor.number()? as usize;
            let set = self
                .table
                .permissions
                .get(index)
                .ok_or_else(|| self.cursor.error("no such permission set"))?;
            record.role_permissions = Some(set);
        }
        if has(mask::ACCESS_RESTRICTIONS) {
            record.access_restrictions = Some(self.cursor.narrow()?);
        }
        if has(mask::METHOD_DECLARATION) {
            record.method_declaration = Some(self.cursor.number()?);
        }
        Ok(())
    }

    fn shared_string(&mut self) -> Result<&'t str, TableError> {
        let index = self.cursor.number()? as usize;
        self.table
            .strings
            .get(index)
            .copied()
            .ok_or_else(|| self.cursor.error("no such string"))
    }
}

/// A reading position in the blob.
#[derive(Clone, Debug)]
struct Cursor<'a> {
    blob: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn error(&self, reason: &'static str) -> TableError {
        TableError {
            offset: self.at,
            reason,
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], TableError> {
        let taken = self
            .at
            .checked_add(length)
            .and_then(|end| self.blob.get(self.at..end))
            .ok_or_else(|| self.error("ends early"))?;
        self.at += length;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, TableError> {
        let byte = self
            .blob
            .get(self.at)
            .copied()
            .ok_or_else(|| self.error("ends early"))?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u32, TableError> {
        let mut value: u64 = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| self.error("number too large"));
            }
        }
        Err(self.error("number too long"))
    }

    fn signed(&mut self) -> Result<i32, TableError> {
        let coded = self.number()?;
        Ok(((coded >> 1) as i32) ^ -((coded & 1) as i32))
    }

    fn narrow<T: TryFrom<u32>>(&mut self) -> Result<T, TableError> {
        T::try_from(self.number()?).map_err(|_| self.error("number too large"))
    }

    /// A count, which cannot exceed the bytes that are left.
    fn count(&mut self) -> Result<usize, TableError> {
        let count = self.number()? as usize;
        if count > self.blob.len().saturating_sub(self.at) {
            return Err(self.error("count too large"));
        }
        Ok(count)
    }

    fn bytes(&mut self) -> Result<&'a [u8], TableError> {
        let length = self.number()? as usize;
        self.take(length)
    }

    fn string(&mut self) -> Result<&'a str, TableError> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.error("string is not UTF-8"))
    }

    fn role_permission(&mut self) -> Result<RolePermission, TableError> {
        Ok(RolePermission {
            role: self.number()?,
            permissions: self.number()?,
        })
    }

    fn reference(&mut self, source: u32) -> Result<RawReference, TableError> {
        let reference_type = self.number()?;
        let step = self.signed()?;
        let target = source
            .checked_add_signed(step)
            .ok_or_else(|| self.error("target out of range"))?;
        Ok(RawReference { reference_type, target })
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
