//! One node as a model stores it: small, because there may be millions.
//!
//! Owns the layout of nodes and references. It must not know managers, snapshots or services.

use std::sync::Arc;

use backplane_types::{
    BinaryEncode, DataValue, Encoder, LocalizedText, NodeId, Now, QualifiedName, RolePermissionType, Variant,
};

use crate::cell::ValueCell;
use crate::typing::TypeRule;

/// The place of a node in its model. Means nothing outside the generation of the model it was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Handle(pub(crate) u32);

/// A node named by another one of the same model: by its handle, or by an entry of the model's table of foreign ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Link(u32);

const FOREIGN: u32 = 1 << 31;
const FORWARD: u32 = 1 << 30;
/// Handles and foreign indexes are below this.
pub(crate) const MAX_INDEX: u32 = FORWARD;

/// What a [`Link`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Local(Handle),
    Foreign(u32),
}

impl Link {
    pub(crate) fn local(handle: Handle) -> Self {
        Self(handle.0 & (MAX_INDEX - 1))
    }

    pub(crate) fn foreign(index: u32) -> Self {
        Self(index & (MAX_INDEX - 1) | FOREIGN)
    }

    pub(crate) fn end(self) -> End {
        let index = self.0 & (MAX_INDEX - 1);
        if self.0 & FOREIGN != 0 {
            End::Foreign(index)
        } else {
            End::Local(Handle(index))
        }
    }
}

/// A reference as its source stores it: eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    /// The link to the reference type, with the direction in bit 30.
    kind: u32,
    pub(crate) target: Link,
}

impl Reference {
    pub(crate) fn new(kind: Link, forward: bool, target: Link) -> Self {
        Self {
            kind: if forward { kind.0 | FORWARD } else { kind.0 },
            target,
        }
    }

    pub(crate) fn kind(self) -> Link {
        Link(self.kind & !FORWARD)
    }

    pub(crate) fn is_forward(self) -> bool {
        self.kind & FORWARD != 0
    }
}

/// How a value that the host computes is made.
pub(crate) type LiveValue = Arc<LiveFn>;

/// A function that makes a value at a moment.
pub(crate) struct LiveFn(pub(crate) Box<dyn Fn(Now) -> DataValue + Send + Sync>);

impl std::fmt::Debug for LiveFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LiveFn")
    }
}

/// Where the value of a variable comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Never changes while the model stands.
    Static(Arc<DataValue>),
    /// Kept by the host.
    Cell(Arc<ValueCell>),
    /// Asked from the manager, by the variable's tag.
    OnDemand,
    /// Made when somebody looks.
    Live(LiveValue),
}

/// What only a few variables have.
#[derive(Debug, Clone, Default)]
pub(crate) struct VariableExtra {
    /// Empty: unknown.
    pub(crate) dimensions: Vec<u32>,
    /// In ms; none: the attribute is 0 for on-demand, or follows the source.
    pub(crate) minimum_sampling: Option<f64>,
    pub(crate) historizing: bool,
    /// Numbers outside are refused when a client writes them.
    pub(crate) instrument_range: Option<(f64, f64)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) source: Source,
    /// 0: none.
    pub(crate) tag: u32,
    pub(crate) data_type: Link,
    pub(crate) rank: i32,
    /// AccessLevelExType, Part 3, 8.58.
    pub(crate) access: u32,
    pub(crate) rule: TypeRule,
    pub(crate) extra: Option<Box<VariableExtra>>,
}

impl Variable {
    pub(crate) fn dimensions(&self) -> &[u32] {
        self.extra.as_ref().map_or(&[], |extra| &extra.dimensions)
    }

    pub(crate) fn instrument_range(&self) -> Option<(f64, f64)> {
        self.extra.as_ref().and_then(|extra| extra.instrument_range)
    }

    pub(crate) fn extra_mut(&mut self) -> &mut VariableExtra {
        self.extra.get_or_insert_with(Box::default)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct VariableType {
    pub(crate) is_abstract: bool,
    pub(crate) data_type: Link,
    pub(crate) rank: i32,
    pub(crate) dimensions: Vec<u32>,
    pub(crate) value: Variant,
}

/// One declared argument of a method, ready for checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArgumentRule {
    pub(crate) rule: TypeRule,
    pub(crate) rank: i32,
    pub(crate) dimensions: Vec<u32>,
    /// The data type, for enumerations and structures that are checked in full.
    pub(crate) data_type: NodeId,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Method {
    pub(crate) executable: bool,
    pub(crate) tag: u32,
    pub(crate) inputs: Vec<ArgumentRule>,
    pub(crate) outputs: Vec<ArgumentRule>,
}

#[derive(Debug, Clone)]
pub(crate) struct ReferenceType {
    pub(crate) is_abstract: bool,
    pub(crate) symmetric: bool,
    pub(crate) inverse_name: LocalizedText,
}

#[derive(Debug, Clone)]
pub(crate) struct DataType {
    pub(crate) is_abstract: bool,
    /// Empty, or an ExtensionObject with a StructureDefinition or an EnumDefinition.
    pub(crate) definition: Variant,
}

/// What depends on the node class.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Object {
        event_notifier: u8,
    },
    Variable(Variable),
    Method(Box<Method>),
    ObjectType {
        is_abstract: bool,
    },
    VariableType(Box<VariableType>),
    ReferenceType(Box<ReferenceType>),
    DataType(Box<DataType>),
    View {
        contains_no_loops: bool,
        event_notifier: u8,
    },
}

impl Body {
    /// The number of the NodeClass (Part 3, 8.29).
    pub(crate) fn class(&self) -> u32 {
        match self {
            Self::Object { .. } => 1,
            Self::Variable(_) => 2,
            Self::Method(_) => 4,
            Self::ObjectType { .. } => 8,
            Self::VariableType(_) => 16,
            Self::ReferenceType(_) => 32,
            Self::DataType(_) => 64,
            Self::View { .. } => 128,
        }
    }

    pub(crate) fn is_type(&self) -> bool {
        self.class() & (8 | 16 | 32 | 64) != 0
    }
}

/// What only a few nodes have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extra {
    /// None: the text of the browse name, without a locale.
    pub(crate) display_name: Option<LocalizedText>,
    pub(crate) description: Option<LocalizedText>,
    pub(crate) role_permissions: Option<Arc<[RolePermissionType]>>,
    pub(crate) access_restrictions: Option<u16>,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) browse_name: QualifiedName,
    /// The inverse HasSubtype reference of a type and the HasTypeDefinition reference of an instance come first.
    pub(crate) references: Vec<Reference>,
    pub(crate) extra: Option<Box<Extra>>,
    pub(crate) body: Body,
}

impl Node {
    pub(crate) fn new(id: NodeId, browse_name: QualifiedName, body: Body) -> Self {
        Self {
            id,
            browse_name,
            references: Vec::new(),
            extra: None,
            body,
        }
    }

    pub(crate) fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_with(Box::default)
    }

    pub(crate) fn display_name(&self) -> LocalizedText {
        match self.extra.as_ref().and_then(|extra| extra.display_name.as_ref()) {
            Some(name) => name.clone(),
            None => LocalizedText::plain(self.browse_name.name.clone()),
        }
    }

    /// Appends what [`display_name`](Self::display_name) answers.
    pub(crate) fn encode_display_name(&self, out: &mut Encoder<'_>) {
        match self.extra.as_ref().and_then(|extra| extra.display_name.as_ref()) {
            Some(name) => name.encode(out),
            None => out.plain_text(self.browse_name.name.as_str()),
        }
    }

    #[inline]
    pub(crate) fn variable(&self) -> Option<&Variable> {
        match &self.body {
            Body::Variable(variable) => Some(variable),
            _ => None,
        }
    }
}
