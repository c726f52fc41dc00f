//! What a caller may do with a node: RolePermissions and AccessRestrictions (Part 3, 5.2.9 to 5.2.11; Part 4, 5.11).
//!
//! Owns the rules, not the roles: those come with the call. Nothing of a node is looked at but what they need: its two attributes, or the defaults of its
//! namespace.

use std::sync::Arc;

use arc_swap::Guard;
use backplane_types::{MessageSecurityMode, RolePermissionType, StatusCode, ids};

use crate::defaults::Granted;
use crate::graph::Graph;
use crate::manager::CallContext;
use crate::model::node::Node;

/// Bits of PermissionType (Part 3, 8.55).
pub(crate) mod permission {
    pub(crate) const BROWSE: u32 = 1;
    pub(crate) const READ_ROLE_PERMISSIONS: u32 = 1 << 1;
    pub(crate) const READ: u32 = 1 << 5;
    pub(crate) const WRITE: u32 = 1 << 6;
    pub(crate) const RECEIVE_EVENTS: u32 = 1 << 11;
    pub(crate) const CALL: u32 = 1 << 12;
}

const SIGNING_REQUIRED: u16 = 1;
const ENCRYPTION_REQUIRED: u16 = 1 << 1;
const APPLY_RESTRICTIONS_TO_BROWSE: u16 = 1 << 3;

/// The rules for one node.
struct Rules<'g> {
    granted: Grants<'g>,
    restrictions: u16,
}

enum Grants<'g> {
    /// Nothing is said: every role has every permission.
    All,
    Own(&'g [RolePermissionType]),
    Default(Guard<Arc<Granted>>),
}

impl<'g> Rules<'g> {
    /// Those of a node of the part `slot`: its own ones, else its namespace's.
    fn of(graph: &'g Graph, slot: u32, node: &'g Node) -> Self {
        let extra = node.extra.as_ref();
        let defaults = graph.defaults(slot, node.id.namespace);
        let own = extra.and_then(|extra| extra.role_permissions.as_deref());
        let granted = match own {
            Some(own) => Grants::Own(own),
            None => defaults
                .and_then(|defaults| defaults.role_permissions())
                .map_or(Grants::All, Grants::Default),
        };
        let restrictions = extra.and_then(|extra| extra.access_restrictions);
        Self {
            granted,
            restrictions: restrictions.unwrap_or_else(|| defaults.map_or(0, |defaults| defaults.access_restrictions())),
        }
    }

    /// The permissions that the caller's roles have.
    fn permissions(&self, call: &CallContext) -> u32 {
        let granted = match &self.granted {
            Grants::All => return u32::MAX,
            Grants::Own(entries) => entries,
            Grants::Default(granted) => granted.entries.as_deref().unwrap_or(&[]),
        };
        if call.internal {
            return u32::MAX;
        }
        // Every session has the Anonymous role, whatever else it has (Part 18, 4.2).
        let has_role = |role: &backplane_types::NodeId| {
            role.as_standard() == Some(ids::object::WELL_KNOWN_ROLE_ANONYMOUS)
                || call.caller.roles.iter().any(|own| own.id == *role)
        };
        granted
            .iter()
            .filter(|entry| has_role(&entry.role_id))
            .fold(0, |all, entry| all | entry.permissions.0)
    }

    fn is_secure_enough(&self, call: &CallContext) -> bool {
        let mode = call.caller.security_mode;
        let signed = mode == MessageSecurityMode::SIGN || mode == MessageSecurityMode::SIGN_AND_ENCRYPT;
        let encrypted = mode == MessageSecurityMode::SIGN_AND_ENCRYPT;
        call.internal
            || ((self.restrictions & SIGNING_REQUIRED == 0 || signed)
                && (self.restrictions & ENCRYPTION_REQUIRED == 0 || encrypted))
    }
}

/// Whether everybody may do everything with a node of the part `slot`, because nothing is said about it.
#[inline]
pub(crate) fn is_open(graph: &Graph, slot: u32, node: &Node) -> bool {
    node.extra.is_none() && !graph.has_defaults(slot)
}

/// Whether the caller may do what is `wanted` with a node of the part `slot`.
///
/// # Errors
/// `BadSecurityModeInsufficient`, `BadUserAccessDenied`.
#[inline]
pub(crate) fn check(graph: &Graph, slot: u32, node: &Node, call: &CallContext, wanted: u32) -> Result<(), StatusCode> {
    if is_open(graph, slot, node) {
        return Ok(());
    }
    check_restricted(&Rules::of(graph, slot, node), call, wanted)
}

fn check_restricted(rules: &Rules<'_>, call: &CallContext, wanted: u32) -> Result<(), StatusCode> {
    if !rules.is_secure_enough(call) {
        return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    }
    if rules.permissions(call) & wanted != wanted {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    Ok(())
}

/// Whether a node of the part `slot` may be seen in a Browse.
pub(crate) fn is_visible(graph: &Graph, slot: u32, node: &Node, call: &CallContext) -> bool {
    if is_open(graph, slot, node) {
        return true;
    }
    let rules = Rules::of(graph, slot, node);
    let hidden = rules.restrictions & APPLY_RESTRICTIONS_TO_BROWSE != 0 && !rules.is_secure_enough(call);
    !hidden && rules.permissions(call) & permission::BROWSE != 0
}
