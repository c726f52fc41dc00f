//! The list of steps that makes or changes a model.
//!
//! Owns the steps in the order they were given, and the errors that name them. Nothing is checked before the list is applied as a whole
//! (`Model::changed`, `AddressSpace::update`), so that a step may name nodes that an earlier step of the same list made. It must not know how a
//! model stores nodes.

use backplane_types::{
    AttributeId, DataValue, DateTime, ExtensionObject, LocalizedText, NodeId, Now, QualifiedName, StatusCode, Variant,
};

use crate::limits::Limits;
use crate::model::node::{LiveFn, LiveValue};

/// Why a list of steps was refused. Nothing of it was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step {step} ({what}): {detail} ({status})")]
pub struct ChangeError {
    /// Which step, counted from 1; 0 when it is about the list as a whole.
    pub step: usize,
    /// The kind of step and the node it is about, such as `variable ns=2;s=Speed`.
    pub what: String,
    /// The status that fits best, in the terms of NodeManagement (Part 4, 5.8).
    pub status: StatusCode,
    /// What is wrong.
    pub detail: String,
}

/// An argument of a method (Part 3, 8.6).
#[derive(Debug, Clone, PartialEq)]
pub struct MethodArgument {
    /// The name of the argument.
    pub name: String,
    /// Its data type.
    pub data_type: NodeId,
    /// -1 scalar, 1 array, ... (Part 3, 5.6.2).
    pub value_rank: i32,
    /// Empty, or one number for each dimension; 0 for any length.
    pub dimensions: Vec<u32>,
    /// What it is for.
    pub description: String,
}

/// Where the value of a new variable comes from.
#[derive(Debug, Clone)]
pub(crate) enum NewSource {
    Cell(DataValue),
    Static(DataValue),
    Live(LiveValue),
}

#[derive(Debug, Clone)]
pub(crate) enum NewKind {
    Folder,
    Object {
        type_definition: NodeId,
    },
    Variable {
        tag: u32,
        data_type: NodeId,
        type_definition: NodeId,
        source: NewSource,
        access: u32,
    },
    Property {
        tag: u32,
        data_type: NodeId,
        source: NewSource,
    },
    Method {
        tag: u32,
        inputs: Vec<MethodArgument>,
        outputs: Vec<MethodArgument>,
    },
    View,
    ObjectType,
    VariableType {
        data_type: NodeId,
    },
    ReferenceType {
        inverse: LocalizedText,
    },
    DataType {
        definition: Option<ExtensionObject>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct NewNode {
    pub(crate) id: NodeId,
    pub(crate) parent: NodeId,
    pub(crate) name: QualifiedName,
    pub(crate) kind: NewKind,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Node(Box<NewNode>),
    OnDemand {
        id: NodeId,
        minimum_sampling: f64,
    },
    Analog {
        id: NodeId,
        low: f64,
        high: f64,
        unit: String,
    },
    Attribute {
        id: NodeId,
        attribute: AttributeId,
        value: Box<Variant>,
    },
    Reference {
        source: NodeId,
        kind: NodeId,
        forward: bool,
        target: NodeId,
    },
    Nodeset {
        document: Vec<u8>,
    },
    Bind {
        id: NodeId,
        tag: u32,
    },
    Remove {
        id: NodeId,
    },
}

impl Step {
    /// For errors.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Node(node) => {
                let kind = match &node.kind {
                    NewKind::Folder => "folder",
                    NewKind::Object { .. } => "object",
                    NewKind::Variable { .. } => "variable",
                    NewKind::Property { .. } => "property",
                    NewKind::Method { .. } => "method",
                    NewKind::View => "view",
                    NewKind::ObjectType => "object-type",
                    NewKind::VariableType { .. } => "variable-type",
                    NewKind::ReferenceType { .. } => "reference-type",
                    NewKind::DataType { .. } => "data-type",
                };
                format!("{kind} {}", node.id)
            }
            Self::OnDemand { id, .. } => format!("on-demand {id}"),
            Self::Analog { id, .. } => format!("analog {id}"),
            Self::Attribute { id, attribute, .. } => format!("attribute {} of {id}", attribute.0),
            Self::Reference { source, target, .. } => format!("reference from {source} to {target}"),
            Self::Nodeset { .. } => "nodeset".to_owned(),
            Self::Bind { id, .. } => format!("bind {id}"),
            Self::Remove { id } => format!("remove {id}"),
        }
    }
}

/// See the module text. The methods mirror `backplane:host/address-space.change`; all NodeIds carry the server's namespace indexes.
///
/// The parent refers to a new node by HasProperty (property), Organizes (folder, view, and whatever is made under the Objects folder) or HasComponent
/// (everything else); types hang on HasSubtype.
#[derive(Debug, Clone, Default)]
pub struct ModelBuilder {
    pub(crate) steps: Vec<Step>,
    pub(crate) limits: Limits,
    pub(crate) now: Option<DateTime>,
}

impl ModelBuilder {
    /// An empty list. `now` is the time of first values that have none.
    #[must_use]
    pub fn new(limits: Limits, now: Now) -> Self {
        Self {
            steps: Vec::new(),
            limits,
            now: Some(now.utc),
        }
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn node(&mut self, id: NodeId, parent: NodeId, name: QualifiedName, kind: NewKind) -> &mut Self {
        self.steps
            .push(Step::Node(Box::new(NewNode { id, parent, name, kind })));
        self
    }

    /// An object of FolderType.
    pub fn folder(&mut self, id: NodeId, parent: NodeId, name: QualifiedName) -> &mut Self {
        self.node(id, parent, name, NewKind::Folder)
    }

    /// An object.
    pub fn object(&mut self, id: NodeId, parent: NodeId, name: QualifiedName, type_definition: NodeId) -> &mut Self {
        self.node(id, parent, name, NewKind::Object { type_definition })
    }

    /// A view.
    pub fn view(&mut self, id: NodeId, parent: NodeId, name: QualifiedName) -> &mut Self {
        self.node(id, parent, name, NewKind::View)
    }

    /// A variable whose value the host keeps, of BaseDataVariableType. `tag` 0: none. `access`: AccessLevelExType. ValueRank and ArrayDimensions follow
    /// `initial` until [`attribute`](Self::attribute) says otherwise; an empty good `initial` means that there is no value yet.
    #[expect(clippy::too_many_arguments, reason = "the contract with plugins has these")]
    pub fn variable(
        &mut self,
        id: NodeId,
        parent: NodeId,
        name: QualifiedName,
        tag: u32,
        data_type: NodeId,
        initial: DataValue,
        access: u32,
    ) -> &mut Self {
        let type_definition = NodeId::numeric(0, backplane_types::ids::variable_type::BASE_DATA_VARIABLE_TYPE);
        self.node(
            id,
            parent,
            name,
            NewKind::Variable {
                tag,
                data_type,
                type_definition,
                source: NewSource::Cell(initial),
                access,
            },
        )
    }

    /// A variable whose value the host makes whenever somebody looks. Read-only.
    pub fn live(
        &mut self,
        id: NodeId,
        parent: NodeId,
        name: QualifiedName,
        data_type: NodeId,
        value: impl Fn(Now) -> DataValue + Send + Sync + 'static,
    ) -> &mut Self {
        let type_definition = NodeId::numeric(0, backplane_types::ids::variable_type::BASE_DATA_VARIABLE_TYPE);
        let source = NewSource::Live(std::sync::Arc::new(LiveFn(Box::new(value))));
        self.node(
            id,
            parent,
            name,
            NewKind::Variable {
                tag: 0,
                data_type,
                type_definition,
                source,
                access: 1,
            },
        )
    }

    /// A property whose value the host keeps. `tag` 0: none, and its value never changes.
    pub fn property(
        &mut self,
        id: NodeId,
        parent: NodeId,
        name: QualifiedName,
        tag: u32,
        data_type: NodeId,
        initial: DataValue,
    ) -> &mut Self {
        let source = if tag == 0 {
            NewSource::Static(initial)
        } else {
            NewSource::Cell(initial)
        };
        self.node(id, parent, name, NewKind::Property { tag, data_type, source })
    }

    /// A method, with its InputArguments and OutputArguments properties where there are arguments.
    pub fn method(
        &mut self,
        id: NodeId,
        parent: NodeId,
        name: QualifiedName,
        tag: u32,
        inputs: Vec<MethodArgument>,
        outputs: Vec<MethodArgument>,
    ) -> &mut Self {
        self.node(id, parent, name, NewKind::Method { tag, inputs, outputs })
    }

    /// An object type.
    pub fn object_type(&mut self, id: NodeId, supertype: NodeId, name: QualifiedName) -> &mut Self {
        self.node(id, supertype, name, NewKind::ObjectType)
    }

    /// A variable type.
    pub fn variable_type(
        &mut self,
        id: NodeId,
        supertype: NodeId,
        name: QualifiedName,
        data_type: NodeId,
    ) -> &mut Self {
        self.node(id, supertype, name, NewKind::VariableType { data_type })
    }

    /// A reference type. An empty `inverse` makes it symmetric.
    pub fn reference_type(
        &mut self,
        id: NodeId,
        supertype: NodeId,
        name: QualifiedName,
        inverse: LocalizedText,
    ) -> &mut Self {
        self.node(id, supertype, name, NewKind::ReferenceType { inverse })
    }

    /// A data type. `definition`: a StructureDefinition or an EnumDefinition. A structure's "Default Binary" node is made under the id that the definition has
    /// as DefaultEncodingId; an enumeration gets EnumStrings or EnumValues.
    pub fn data_type(
        &mut self,
        id: NodeId,
        supertype: NodeId,
        name: QualifiedName,
        definition: Option<ExtensionObject>,
    ) -> &mut Self {
        self.node(id, supertype, name, NewKind::DataType { definition })
    }

    /// The variable's value is asked from its manager instead of kept. `minimum_sampling` in ms.
    pub fn on_demand(&mut self, id: NodeId, minimum_sampling: f64) -> &mut Self {
        self.steps.push(Step::OnDemand { id, minimum_sampling });
        self
    }

    /// Gives a variable of a number EURange and InstrumentRange and, if `unit` (a UNECE common code such as "CEL") is not empty, EngineeringUnits; its type
    /// definition becomes AnalogItemType or AnalogUnitRangeType. 0 to 0 with a unit stands for no range: AnalogUnitType. Clients cannot write numbers outside.
    pub fn analog(&mut self, id: NodeId, low: f64, high: f64, unit: &str) -> &mut Self {
        self.steps.push(Step::Analog {
            id,
            low,
            high,
            unit: unit.to_owned(),
        });
        self
    }

    /// Sets an attribute.
    pub fn attribute(&mut self, id: NodeId, attribute: AttributeId, value: Variant) -> &mut Self {
        self.steps.push(Step::Attribute {
            id,
            attribute,
            value: Box::new(value),
        });
        self
    }

    /// Adds a reference, at least one end of which is in this model.
    pub fn reference(&mut self, source: NodeId, reference_type: NodeId, forward: bool, target: NodeId) -> &mut Self {
        self.steps.push(Step::Reference {
            source,
            kind: reference_type,
            forward,
            target,
        });
        self
    }

    /// Adds the nodes of a NodeSet2 document.
    pub fn nodeset(&mut self, document: Vec<u8>) -> &mut Self {
        self.steps.push(Step::Nodeset { document });
        self
    }

    /// Gives a variable or method a tag.
    pub fn bind(&mut self, id: NodeId, tag: u32) -> &mut Self {
        self.steps.push(Step::Bind { id, tag });
        self
    }

    /// Removes the node, what only it aggregates, and every reference to them.
    pub fn remove(&mut self, id: NodeId) -> &mut Self {
        self.steps.push(Step::Remove { id });
        self
    }
}
