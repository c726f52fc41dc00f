//! What a caller may do with a node: RolePermissions and AccessRestrictions (Part 3, 5.2.9 to 5.2.11; Part 4, 5.11).
//!
//! Owns the rules, not the roles: those come with the call.

use backplane_types::{MessageSecurityMode, StatusCode, ids};

use crate::manager::CallContext;
use crate::model::node::Node;

/// Bits of PermissionType (Part 3, 8.55).
pub(crate) mod permission {
    pub(crate) const BROWSE: u32 = 1;
    pub(crate) const READ_ROLE_PERMISSIONS: u32 = 1 << 1;
    pub(crate) const READ: u32 = 1 << 5;
    pub(crate) const WRITE: u32 = 1 << 6;
    pub(crate) const CALL: u32 = 1 << 12;
}

const SIGNING_REQUIRED: u16 = 1;
const ENCRYPTION_REQUIRED: u16 = 1 << 1;
const APPLY_RESTRICTIONS_TO_BROWSE: u16 = 1 << 3;

/// The permissions that the caller's roles have on a node; all of them for a node without RolePermissions.
pub(crate) fn permissions(node: &Node, call: &CallContext) -> u32 {
    let Some(granted) = node.extra.as_ref().and_then(|extra| extra.role_permissions.as_ref()) else {
        return u32::MAX;
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

fn restrictions(node: &Node) -> u16 {
    node.extra
        .as_ref()
        .and_then(|extra| extra.access_restrictions)
        .unwrap_or(0)
}

fn is_secure_enough(restrictions: u16, call: &CallContext) -> bool {
    let mode = call.caller.security_mode;
    let signed = mode == MessageSecurityMode::SIGN || mode == MessageSecurityMode::SIGN_AND_ENCRYPT;
    let encrypted = mode == MessageSecurityMode::SIGN_AND_ENCRYPT;
    call.internal
        || ((restrictions & SIGNING_REQUIRED == 0 || signed) && (restrictions & ENCRYPTION_REQUIRED == 0 || encrypted))
}

/// # Errors
/// `BadSecurityModeInsufficient`, `BadUserAccessDenied`.
#[inline]
pub(crate) fn check(node: &Node, call: &CallContext, wanted: u32) -> Result<(), StatusCode> {
    if node.extra.is_none() {
        return Ok(());
    }
    check_restricted(node, call, wanted)
}

fn check_restricted(node: &Node, call: &CallContext, wanted: u32) -> Result<(), StatusCode> {
    if !is_secure_enough(restrictions(node), call) {
        return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    }
    if permissions(node, call) & wanted != wanted {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    Ok(())
}

/// Whether the node may be seen in a Browse.
pub(crate) fn is_visible(node: &Node, call: &CallContext) -> bool {
    if node.extra.is_none() {
        return true;
    }
    let restrictions = restrictions(node);
    let hidden = restrictions & APPLY_RESTRICTIONS_TO_BROWSE != 0 && !is_secure_enough(restrictions, call);
    !hidden && permissions(node, call) & permission::BROWSE != 0
}
