//! The well-known roles (Part 18 4.2) and what a session's user is to the address space.

use std::sync::Arc;

use backplane_nodes::{Caller, Role};
use backplane_session::{Identity, IdentityKind, ValidatedSession};
use backplane_types::{MessageSecurityMode, NodeId};

use crate::config::UserEntry;
use crate::users::Users;

/// Anonymous: everybody.
pub(crate) const ANONYMOUS: u32 = 15_644;
/// AuthenticatedUser: everybody who gave proof.
pub(crate) const AUTHENTICATED_USER: u32 = 15_656;
/// SecurityAdmin: may see audit events.
pub(crate) const SECURITY_ADMIN: u32 = 15_704;

/// Roles that a user of the configuration can have, by name.
const NAMED: [(&str, u32); 8] = [
    ("Anonymous", ANONYMOUS),
    ("AuthenticatedUser", AUTHENTICATED_USER),
    ("Observer", 15_668),
    ("Operator", 15_680),
    ("Supervisor", 15_692),
    ("SecurityAdmin", SECURITY_ADMIN),
    ("ConfigureAdmin", 15_716),
    ("Engineer", 16_036),
];

/// The role with this name.
#[must_use]
pub(crate) fn by_name(name: &str) -> Option<NodeId> {
    NAMED
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, id)| NodeId::numeric(0, *id))
}

/// The name of a role; its id when it has none.
pub(crate) fn name(role: &NodeId) -> Arc<str> {
    let named = NAMED.iter().find(|(_, id)| *role == NodeId::numeric(0, *id));
    named.map_or_else(|| role.to_string().into(), |(name, _)| Arc::from(*name))
}

/// The names for messages.
#[must_use]
pub(crate) fn names() -> String {
    NAMED.map(|(name, _)| name).join(", ")
}

fn role(id: &NodeId) -> Role {
    let known = NAMED.iter().find(|(_, number)| *id == NodeId::numeric(0, *number));
    Role {
        id: id.clone(),
        name: Arc::from(known.map_or("", |(name, _)| *name)),
    }
}

/// The roles of a user of the configuration.
pub(crate) fn of_user(user: &UserEntry) -> Vec<NodeId> {
    let everybody = [ANONYMOUS, AUTHENTICATED_USER].map(|id| NodeId::numeric(0, id));
    let granted = user.roles.iter().filter_map(|name| by_name(name));
    everybody.into_iter().chain(granted).collect()
}

/// What node services and plugins learn of somebody whose session is over, after a restart: the roles are those that the configuration gives today. None: there
/// is no such user any more.
pub(crate) fn absent(identity: &Identity, mode: MessageSecurityMode, users: &Users) -> Option<Caller> {
    let (user, roles) = match identity.kind {
        IdentityKind::Anonymous => (None, vec![NodeId::numeric(0, ANONYMOUS)]),
        IdentityKind::UserName => {
            let entry = users.entry(identity.client_user_id.text())?;
            (Some(Arc::from(entry.name.as_str())), of_user(entry))
        }
        IdentityKind::Certificate | IdentityKind::IssuedToken => return None,
    };
    Some(Caller {
        user,
        roles: roles.iter().map(role).collect(),
        security_mode: mode,
        ..Caller::anonymous()
    })
}

/// What node services and plugins learn of a session.
pub(crate) fn caller(session: &ValidatedSession, mode: MessageSecurityMode) -> Caller {
    let snapshot = &session.snapshot;
    let user = match snapshot.identity.kind {
        IdentityKind::Anonymous => None,
        _ => snapshot.identity.client_user_id.as_str().map(Arc::from),
    };
    Caller {
        number: session.handle.number(),
        client: Arc::from(format!("client-{}", session.handle.number())),
        user,
        roles: snapshot.roles.iter().map(role).collect(),
        locales: Arc::clone(&snapshot.locales),
        isolation_owner: Arc::from(""),
        security_mode: mode,
    }
}
