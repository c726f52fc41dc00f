//! What a namespace says about rights for those of its nodes that say nothing themselves: DefaultRolePermissions and DefaultAccessRestrictions of its
//! NamespaceMetadata (Part 3, 5.2.9 and 5.2.11; Part 5, 6.3.13).
//!
//! Owns finding the metadata and reading it. The values may change while the structure stands; who looks sees the present one. A manager's metadata
//! counts for its own nodes only. It must not know callers.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use backplane_types::{ArrayValues, ExtensionObject, NodeId, RolePermissionType, Variant, ids};

use crate::cell::ValueCell;
use crate::graph::{Graph, NodeKey};
use crate::model::node::{Node, Source};
use crate::namespace::NamespaceTable;

/// The defaults of one namespace.
#[derive(Debug)]
pub(crate) struct Defaults {
    pub(crate) namespace: u16,
    role_permissions: Option<RolePermissions>,
    access_restrictions: Option<Origin>,
}

/// Where a property has its value. Those that managers are asked for, and those without a value, count as absent.
#[derive(Debug)]
enum Origin {
    Cell(Arc<ValueCell>),
    Fixed(Variant),
}

impl Origin {
    fn of(node: &Node) -> Option<Self> {
        match &node.variable()?.source {
            Source::Cell(cell) => Some(Self::Cell(Arc::clone(cell))),
            Source::Static(value) if !value.value.is_empty() => Some(Self::Fixed(value.value.clone())),
            Source::Static(_) | Source::OnDemand | Source::Live(_) => None,
        }
    }

    fn look<T>(&self, look_at: impl FnOnce(&Variant) -> T) -> T {
        match self {
            Self::Cell(cell) => cell.inspect(|value, _| look_at(value)),
            Self::Fixed(value) => look_at(value),
        }
    }

    fn may_change(&self) -> bool {
        matches!(self, Self::Cell(_))
    }

    fn version(&self) -> u64 {
        match self {
            Self::Cell(cell) => cell.version(),
            Self::Fixed(_) => 0,
        }
    }
}

/// DefaultRolePermissions, read once for each value that it has.
#[derive(Debug)]
struct RolePermissions {
    origin: Origin,
    known: ArcSwap<Granted>,
}

impl RolePermissions {
    /// None if nothing is said, for good.
    fn of(origin: Origin) -> Option<Self> {
        let known = Granted::of(&origin);
        (known.entries.is_some() || origin.may_change()).then(|| Self {
            origin,
            known: ArcSwap::from_pointee(known),
        })
    }
}

/// The role permissions of one version of a value.
#[derive(Debug)]
pub(crate) struct Granted {
    version: u64,
    /// None: nothing is said.
    pub(crate) entries: Option<Vec<RolePermissionType>>,
}

impl Granted {
    /// The version is that from before the value was looked at: if another value came in between, it is looked at again.
    fn of(origin: &Origin) -> Self {
        Self {
            version: origin.version(),
            entries: origin.look(entries),
        }
    }
}

/// An empty list says as little as no list does: it is the value of the property while nothing is configured. What cannot be read grants nothing.
fn entries(value: &Variant) -> Option<Vec<RolePermissionType>> {
    let read = |objects: &[ExtensionObject]| {
        objects
            .iter()
            .map(ExtensionObject::decode_as)
            .collect::<Result<Vec<_>, _>>()
    };
    match value {
        Variant::Empty => None,
        Variant::Array(array) => match &array.values {
            ArrayValues::ExtensionObject(objects) if objects.is_empty() => None,
            ArrayValues::ExtensionObject(objects) => Some(read(objects).unwrap_or_default()),
            _ => Some(Vec::new()),
        },
        _ => Some(Vec::new()),
    }
}

fn restrictions(origin: &Origin) -> u16 {
    origin.look(|value| match value {
        Variant::UInt16(bits) => *bits,
        _ => 0,
    })
}

impl Defaults {
    /// The role permissions as they are now; none if every role has every permission.
    pub(crate) fn role_permissions(&self) -> Option<Guard<Arc<Granted>>> {
        let own = self.role_permissions.as_ref()?;
        let known = own.known.load();
        let granted = if known.version == own.origin.version() {
            known
        } else {
            // What is returned is what was read here: somebody slower may store what is older by now.
            let read = Arc::new(Granted::of(&own.origin));
            own.known.store(Arc::clone(&read));
            Guard::from_inner(read)
        };
        granted.entries.is_some().then_some(granted)
    }

    /// The access restrictions as they are now; 0 is none.
    pub(crate) fn access_restrictions(&self) -> u16 {
        self.access_restrictions.as_ref().map_or(0, restrictions)
    }

    /// Grows whenever one of them may have changed.
    pub(crate) fn version(&self) -> u64 {
        let granted = self.role_permissions.as_ref().map_or(0, |own| own.origin.version());
        let restricted = self.access_restrictions.as_ref().map_or(0, Origin::version);
        granted.wrapping_add(restricted)
    }

    /// The defaults of every part of a graph, in the order of the parts.
    pub(crate) fn find(graph: &Graph, namespaces: &NamespaceTable, parts: usize) -> Vec<Vec<Self>> {
        let mut found: Vec<Vec<Self>> = (0..parts).map(|_| Vec::new()).collect();
        let Some(all) = graph.find(&NodeId::numeric(0, ids::object::SERVER_NAMESPACES)) else {
            return found;
        };
        for (_, edge) in graph.edges(all, 0).filter(|(_, edge)| edge.forward) {
            if let Some(defaults) = Self::of_metadata(graph, edge.target, namespaces)
                && let Some(part) = found.get_mut(edge.target.slot as usize)
                && part.iter().all(|known| known.namespace != defaults.namespace)
            {
                part.push(defaults);
            }
        }
        found
    }

    /// None for an object that says nothing about rights, or not for which nodes.
    fn of_metadata(graph: &Graph, key: NodeKey, namespaces: &NamespaceTable) -> Option<Self> {
        let property = |name: &str| graph.property(key, name).and_then(Origin::of);
        let role_permissions = property("DefaultRolePermissions").and_then(RolePermissions::of);
        let access_restrictions = property("DefaultAccessRestrictions");
        let access_restrictions = access_restrictions.filter(|origin| origin.may_change() || restrictions(origin) != 0);
        if role_permissions.is_none() && access_restrictions.is_none() {
            return None;
        }
        let namespace = property("NamespaceUri")?.look(|value| match value {
            Variant::String(uri) => namespaces.index(uri.text()),
            _ => None,
        })?;
        Some(Self {
            namespace,
            role_permissions,
            access_restrictions,
        })
    }
}
