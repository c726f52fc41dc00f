//! Describing nodes: builders that turn into the steps of one change of the address space. Owns the defaults (where a node hangs, what it is called); the host
//! owns the nodes and checks everything at `commit`.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::backend::address_space as host;
use crate::binary::{EnumDefinition, StructureDefinition};
pub use crate::bindings::backplane::host::address_space::Argument;
use crate::{DataValue, Fault, LocalizedText, NodeId, QualifiedName, Scalar, Tag, Typed, Value, ids};

/// One change of the model, all or nothing. Nothing is visible before [`Change::commit`].
///
/// ```no_run
/// # use backplane_sdk::*;
/// # const LEVEL: Tag<f64> = Tag::new(1);
/// # fn start() -> Result<(), Fault> {
/// let ns = namespace("urn:example:tank");
/// Change::new()
///     .add(Folder::new(ns.id("Tank"), "Tank"))
///     .add(Variable::new(LEVEL, ns.id("Level"), "Level").under(ns.id("Tank")).value(0.5).range(0.0..=1.0))
///     .commit()
/// # }
/// ```
#[derive(Debug)]
pub struct Change {
    raw: host::Change,
}

impl Default for Change {
    fn default() -> Self {
        Self::new()
    }
}

impl Change {
    /// An empty change.
    pub fn new() -> Self {
        Change {
            raw: host::Change::new(),
        }
    }

    #[allow(clippy::should_implement_trait, reason = "it takes anything that declares a node")]
    /// Adds a node. Its parent is there already, or was added before it.
    pub fn add(self, node: impl Declare) -> Self {
        node.declare(&self.raw);
        self
    }

    /// Adds several nodes.
    pub fn add_all(self, nodes: impl IntoIterator<Item = impl Declare>) -> Self {
        nodes.into_iter().fold(self, Change::add)
    }

    /// Adds a reference between two nodes.
    pub fn reference(self, source: &NodeId, reference_type: u32, target: &NodeId) -> Self {
        self.raw
            .reference(source, &NodeId::standard(reference_type), true, target);
        self
    }

    /// Adds a reference of the plugin's own type, or an inverse one.
    pub fn reference_of(self, source: &NodeId, reference_type: &NodeId, forward: bool, target: &NodeId) -> Self {
        self.raw.reference(source, reference_type, forward, target);
        self
    }

    /// Sets an attribute; the numbers are in [`ids::attribute`].
    pub fn attribute(self, node: &NodeId, attribute: u32, value: impl Into<Value>) -> Self {
        self.raw.attributes(node, &[(attribute, value.into())]);
        self
    }

    /// Adds the nodes of a NodeSet2 document.
    pub fn nodeset(self, document: &[u8]) -> Self {
        self.raw.nodeset(document);
        self
    }

    /// Gives a tag to a variable or method that came with a nodeset.
    pub fn bind<T>(self, node: &NodeId, tag: Tag<T>) -> Self {
        self.raw.bind(node, tag.number());
        self
    }

    /// Removes a node, what only it aggregates, and every reference to them.
    pub fn remove(self, node: &NodeId) -> Self {
        self.raw.remove(node);
        self
    }

    /// Applies everything, or nothing.
    ///
    /// # Errors
    /// The step that was wrong, and why.
    pub fn commit(self) -> Result<(), Fault> {
        self.raw.commit()
    }
}

/// Something that [`Change::add`] takes.
pub trait Declare {
    /// Appends the steps that make the node.
    #[doc(hidden)]
    fn declare(self, change: &host::Change);
}

/// What every node has.
#[derive(Clone, Debug, PartialEq)]
struct Base {
    id: NodeId,
    parent: NodeId,
    name: QualifiedName,
    attributes: Vec<(u32, Value)>,
}

impl Base {
    fn new(id: NodeId, name: &str, parent: NodeId) -> Self {
        let name = QualifiedName {
            namespace: id.namespace,
            name: name.to_owned(),
        };
        Base {
            id,
            parent,
            name,
            attributes: Vec::new(),
        }
    }

    fn finish(&self, change: &host::Change) {
        if !self.attributes.is_empty() {
            change.attributes(&self.id, &self.attributes);
        }
    }
}

macro_rules! common {
    ($type:ty $(, $generic:ident)?) => {
        impl $(<$generic: Typed>)? $type {
            /// The parent; the Objects folder (types: the base type) unless set.
            pub fn under(mut self, parent: impl Into<NodeId>) -> Self {
                self.base.parent = parent.into();
                self
            }

            /// What people are shown; the browse name unless set.
            pub fn display_name(self, text: impl Into<LocalizedText>) -> Self {
                let text: LocalizedText = text.into();
                self.attribute(ids::attribute::DISPLAY_NAME, text)
            }

            /// What the node is for.
            pub fn description(self, text: impl Into<LocalizedText>) -> Self {
                let text: LocalizedText = text.into();
                self.attribute(ids::attribute::DESCRIPTION, text)
            }

            /// The browse name, where it is not in the namespace of the id.
            pub fn browse_name(mut self, name: QualifiedName) -> Self {
                self.base.name = name;
                self
            }

            /// Any other attribute; the numbers are in [`ids::attribute`].
            pub fn attribute(mut self, attribute: u32, value: impl Into<Value>) -> Self {
                self.base.attributes.push((attribute, value.into()));
                self
            }
        }
    };
}

impl From<&NodeId> for NodeId {
    fn from(id: &NodeId) -> NodeId {
        id.clone()
    }
}

/// A folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Folder {
    base: Base,
}

impl Folder {
    /// A folder under Objects.
    pub fn new(id: impl Into<NodeId>, name: &str) -> Self {
        Folder {
            base: Base::new(id.into(), name, crate::OBJECTS),
        }
    }
}

common!(Folder);

impl Declare for Folder {
    fn declare(self, change: &host::Change) {
        change.folder(&self.base.id, &self.base.parent, &self.base.name);
        self.base.finish(change);
    }
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    base: Base,
    type_definition: NodeId,
}

impl Object {
    /// An object of BaseObjectType under Objects.
    pub fn new(id: impl Into<NodeId>, name: &str) -> Self {
        Object {
            base: Base::new(id.into(), name, crate::OBJECTS),
            type_definition: NodeId::standard(ids::BASE_OBJECT_TYPE),
        }
    }

    /// The type.
    pub fn of_type(mut self, type_definition: impl Into<NodeId>) -> Self {
        self.type_definition = type_definition.into();
        self
    }
}

common!(Object);

impl Declare for Object {
    fn declare(self, change: &host::Change) {
        change.object(&self.base.id, &self.base.parent, &self.base.name, &self.type_definition);
        self.base.finish(change);
    }
}

/// A variable whose values are `T`.
#[derive(Clone, Debug)]
pub struct Variable<T> {
    base: Base,
    tag: Tag<T>,
    data_type: NodeId,
    initial: DataValue,
    dimensions: Vec<u32>,
    access: u32,
    on_demand: Option<f64>,
    analog: Option<(f64, f64, String)>,
}

impl<T: Typed> Variable<T> {
    /// A readable variable under Objects, without a value yet: clients see `BAD_WAITING_FOR_INITIAL_DATA`.
    pub fn new(tag: Tag<T>, id: impl Into<NodeId>, name: &str) -> Self {
        Variable {
            base: Base::new(id.into(), name, crate::OBJECTS),
            tag,
            data_type: NodeId::standard(T::DATA_TYPE),
            initial: DataValue::bad(crate::StatusCode::BAD_WAITING_FOR_INITIAL_DATA),
            dimensions: Vec::new(),
            access: ids::access::CURRENT_READ,
            on_demand: None,
            analog: None,
        }
    }

    /// The first value.
    pub fn value(mut self, value: impl Into<T>) -> Self {
        let value: T = value.into();
        self.dimensions = value.matrix_dimensions();
        self.initial = DataValue::good(Value::Empty);
        self.initial.value = value.into_value();
        self
    }

    /// The first value, with status and time.
    pub fn initial(mut self, value: DataValue) -> Self {
        self.initial = value;
        self
    }

    /// Clients may write it: `Writer::write` is asked.
    pub fn writable(self) -> Self {
        let access = self.access | ids::access::CURRENT_WRITE;
        self.access(access)
    }

    /// The access level, as the bits of [`ids::access`].
    pub fn access(mut self, access: u32) -> Self {
        self.access = access;
        self
    }

    /// A data type of the plugin's own: a structure (with `Variable<ExtensionObject>`) or an enumeration (with `Variable<i32>`).
    pub fn data_type(mut self, data_type: impl Into<NodeId>) -> Self {
        self.data_type = data_type.into();
        self
    }

    /// The value is asked for (`Reader::read`), at most this often for sampling.
    pub fn on_demand(mut self, minimum_sampling: Duration) -> Self {
        self.on_demand = Some(minimum_sampling.as_secs_f64() * 1000.0);
        self
    }

    /// The normal range of the value (EURange); makes it an AnalogItem.
    pub fn range(mut self, range: RangeInclusive<f64>) -> Self {
        let unit = self.analog.take().map(|(_, _, unit)| unit).unwrap_or_default();
        self.analog = Some((*range.start(), *range.end(), unit));
        self
    }

    /// The unit, as a UNECE common code such as "CEL"; makes it an AnalogItem.
    pub fn unit(mut self, code: &str) -> Self {
        let (low, high, _) = self.analog.take().unwrap_or_default();
        self.analog = Some((low, high, code.to_owned()));
        self
    }

    fn value_rank(&self) -> i32 {
        match i32::try_from(self.dimensions.len()) {
            Ok(0) | Err(_) => T::VALUE_RANK,
            Ok(rank) => rank,
        }
    }
}

common!(Variable<T>, T);

impl<T: Typed> Declare for Variable<T> {
    fn declare(mut self, change: &host::Change) {
        let rank = self.value_rank();
        let id = self.base.id.clone();
        change.variable(
            &id,
            &self.base.parent,
            &self.base.name,
            self.tag.number(),
            &self.data_type,
            &self.initial,
            self.access,
        );
        if rank != -1 {
            self.base.attributes.push((ids::attribute::VALUE_RANK, rank.into()));
        }
        if !self.dimensions.is_empty() {
            self.base
                .attributes
                .push((ids::attribute::ARRAY_DIMENSIONS, self.dimensions.into()));
        }
        self.base.finish(change);
        if let Some(minimum_sampling) = self.on_demand {
            change.on_demand(&id, minimum_sampling);
        }
        if let Some((low, high, unit)) = self.analog {
            change.analog(&id, low, high, &unit);
        }
    }
}

/// A property: something about its parent.
#[derive(Clone, Debug)]
pub struct Property {
    base: Base,
    tag: u32,
    data_type: NodeId,
    value: Value,
    rank: i32,
}

impl Property {
    /// A property that never changes.
    pub fn new<T: Typed>(id: impl Into<NodeId>, parent: impl Into<NodeId>, name: &str, value: T) -> Self {
        Property {
            base: Base::new(id.into(), name, parent.into()),
            tag: 0,
            data_type: NodeId::standard(T::DATA_TYPE),
            rank: T::VALUE_RANK,
            value: value.into_value(),
        }
    }

    /// The plugin will publish new values.
    pub fn tag<T>(mut self, tag: Tag<T>) -> Self {
        self.tag = tag.number();
        self
    }

    /// A data type other than the built-in one.
    pub fn data_type(mut self, data_type: impl Into<NodeId>) -> Self {
        self.data_type = data_type.into();
        self
    }
}

common!(Property);

impl Declare for Property {
    fn declare(mut self, change: &host::Change) {
        let initial = DataValue::good(self.value);
        change.property(
            &self.base.id,
            &self.base.parent,
            &self.base.name,
            self.tag,
            &self.data_type,
            &initial,
        );
        if self.rank != -1 {
            self.base
                .attributes
                .push((ids::attribute::VALUE_RANK, self.rank.into()));
        }
        self.base.finish(change);
    }
}

/// The tag of a method has no type of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invoked {}

/// A method of the object it hangs under.
#[derive(Clone, Debug)]
pub struct Method {
    base: Base,
    tag: Tag<Invoked>,
    inputs: Vec<Argument>,
    outputs: Vec<Argument>,
}

impl Method {
    /// A method without arguments.
    pub fn new(tag: Tag<Invoked>, id: impl Into<NodeId>, name: &str) -> Self {
        Method {
            base: Base::new(id.into(), name, crate::OBJECTS),
            tag,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Adds an input argument of a built-in type, or an array of one.
    pub fn input<T: Typed>(mut self, name: &str, description: &str) -> Self {
        self.inputs.push(argument::<T>(name, description));
        self
    }

    /// Adds an output argument of a built-in type, or an array of one.
    pub fn output<T: Typed>(mut self, name: &str, description: &str) -> Self {
        self.outputs.push(argument::<T>(name, description));
        self
    }

    /// Adds an input argument of a data type of the plugin's own.
    pub fn input_of<T: Scalar>(mut self, name: &str, data_type: impl Into<NodeId>, description: &str) -> Self {
        self.inputs.push(Argument {
            data_type: data_type.into(),
            ..argument::<T>(name, description)
        });
        self
    }

    /// Adds an output argument of a data type of the plugin's own.
    pub fn output_of<T: Scalar>(mut self, name: &str, data_type: impl Into<NodeId>, description: &str) -> Self {
        self.outputs.push(Argument {
            data_type: data_type.into(),
            ..argument::<T>(name, description)
        });
        self
    }
}

fn argument<T: Typed>(name: &str, description: &str) -> Argument {
    Argument {
        name: name.to_owned(),
        data_type: NodeId::standard(T::DATA_TYPE),
        value_rank: T::VALUE_RANK,
        dimensions: Vec::new(),
        description: description.to_owned(),
    }
}

common!(Method);

impl Declare for Method {
    fn declare(self, change: &host::Change) {
        change.method(
            &self.base.id,
            &self.base.parent,
            &self.base.name,
            self.tag.number(),
            &self.inputs,
            &self.outputs,
        );
        self.base.finish(change);
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Object,
    Variable(NodeId),
    Reference(String),
    Data(Vec<u8>),
}

/// A type of the plugin's own.
#[derive(Clone, Debug)]
pub struct Type {
    base: Base,
    kind: Kind,
}

impl Type {
    /// An object type under BaseObjectType.
    pub fn object(id: impl Into<NodeId>, name: &str) -> Self {
        Self::new(id, name, ids::BASE_OBJECT_TYPE, Kind::Object)
    }

    /// A variable type under BaseDataVariableType.
    pub fn variable(id: impl Into<NodeId>, name: &str, data_type: impl Into<NodeId>) -> Self {
        Self::new(id, name, ids::BASE_DATA_VARIABLE_TYPE, Kind::Variable(data_type.into()))
    }

    /// A reference type under References; `inverse` is its name seen from the target.
    pub fn reference(id: impl Into<NodeId>, name: &str, inverse: &str) -> Self {
        Self::new(id, name, ids::REFERENCES, Kind::Reference(inverse.to_owned()))
    }

    /// A structured data type; its supertype is the base of the definition.
    pub fn structure(id: impl Into<NodeId>, name: &str, definition: &StructureDefinition) -> Self {
        Type {
            base: Base::new(id.into(), name, definition.base.clone()),
            kind: Kind::Data(definition.to_bytes()),
        }
    }

    /// An enumeration.
    pub fn enumeration(id: impl Into<NodeId>, name: &str, definition: &EnumDefinition) -> Self {
        Self::new(id, name, ids::ENUMERATION, Kind::Data(definition.to_bytes()))
    }

    fn new(id: impl Into<NodeId>, name: &str, supertype: u32, kind: Kind) -> Self {
        Type {
            base: Base::new(id.into(), name, NodeId::standard(supertype)),
            kind,
        }
    }
}

common!(Type);

impl Declare for Type {
    fn declare(self, change: &host::Change) {
        let Base { id, parent, name, .. } = &self.base;
        match &self.kind {
            Kind::Object => change.object_type(id, parent, name),
            Kind::Variable(data_type) => change.variable_type(id, parent, name, data_type),
            Kind::Reference(inverse) => change.reference_type(id, parent, name, inverse),
            Kind::Data(definition) => change.data_type(id, parent, name, definition),
        }
        self.base.finish(change);
    }
}
