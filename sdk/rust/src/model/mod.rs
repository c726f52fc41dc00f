//! Describing nodes: builders that turn into the steps of one change of the address space. Owns the defaults (where a
//! node hangs, what it is called); the host owns the nodes and checks everything at `commit`.

mod kinds;
mod variable;

pub use kinds::{Invoked, Method, Type};
pub use variable::{Property, Variable};

use crate::backend::address_space as host;
pub use crate::bindings::backplane::host::address_space::Argument;
use crate::{Fault, LocalizedText, NodeId, QualifiedName, Tag, Value, ids};

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

    fn set(&mut self, attribute: u32, value: Value) {
        self.attributes.push((attribute, value));
    }

    fn finish(&self, change: &host::Change) {
        if !self.attributes.is_empty() {
            change.attributes(&self.id, &self.attributes);
        }
    }
}

/// The methods that the builders of all kinds of nodes have. `$base` is where the [`Base`] is.
macro_rules! common {
    ($type:ty, [$($base:ident).+] $(, $generic:ident)?) => {
        impl $(<$generic: Typed>)? $type {
            /// The parent; the Objects folder (types: the base type) unless set.
            pub fn under(mut self, parent: impl Into<NodeId>) -> Self {
                self.$($base).+.parent = parent.into();
                self
            }

            /// What people are shown; the browse name unless set.
            pub fn display_name(mut self, text: impl Into<LocalizedText>) -> Self {
                self.$($base).+.set(ids::attribute::DISPLAY_NAME, Value::Localized(text.into()));
                self
            }

            /// What the node is for.
            pub fn description(mut self, text: impl Into<LocalizedText>) -> Self {
                self.$($base).+.set(ids::attribute::DESCRIPTION, Value::Localized(text.into()));
                self
            }

            /// The browse name, where it is not in the namespace of the id.
            pub fn browse_name(mut self, name: QualifiedName) -> Self {
                self.$($base).+.name = name;
                self
            }

            /// Any other attribute; the numbers are in [`ids::attribute`].
            pub fn attribute(mut self, attribute: u32, value: impl Into<Value>) -> Self {
                self.$($base).+.set(attribute, value.into());
                self
            }
        }
    };
}

use common;

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

common!(Folder, [base]);

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

common!(Object, [base]);

impl Declare for Object {
    fn declare(self, change: &host::Change) {
        change.object(&self.base.id, &self.base.parent, &self.base.name, &self.type_definition);
        self.base.finish(change);
    }
}
