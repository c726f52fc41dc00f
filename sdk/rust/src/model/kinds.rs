//! Methods and types.

use super::{Argument, Base, Declare, common};
use crate::backend::address_space as host;
use crate::binary::{EnumDefinition, StructureDefinition};
use crate::{LocalizedText, NodeId, QualifiedName, Scalar, Tag, Typed, Value, ids};

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

common!(Method, [base]);

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

    /// An event type under BaseEventType. Its fields are the properties that are declared under it.
    pub fn event(id: impl Into<NodeId>, name: &str) -> Self {
        Self::new(id, name, ids::BASE_EVENT_TYPE, Kind::Object)
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

common!(Type, [base]);

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
