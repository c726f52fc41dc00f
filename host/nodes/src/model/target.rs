//! The short way of a scalar into the cell of its variable, for managers that publish the same variables again and again.
//!
//! Owns what has to be known for it: the cell and the one type that needs no closer look. It must not know tags or who publishes.

use std::sync::Arc;

use backplane_types::{BuiltInType, DateTime, Variant};

use super::Model;
use super::node::Source;
use crate::cell::ValueCell;
use crate::typing;

/// A variable that the host keeps a scalar of one type for. It stays what it was when the model is replaced.
#[derive(Debug, Clone)]
pub struct ScalarTarget {
    cell: Arc<ValueCell>,
    kind: BuiltInType,
}

impl ScalarTarget {
    /// Sets a Good value in the form of [`Variant::to_bits`], as [`Model::publish`] would. False for another type than the declared one: nothing
    /// has happened then.
    #[inline]
    #[must_use]
    pub fn publish(&self, kind: BuiltInType, bits: u64, source: DateTime, now: DateTime) -> bool {
        let is_declared = kind == self.kind;
        if is_declared {
            self.cell.write_scalar(kind, bits, source, now);
        }
        is_declared
    }
}

impl Model {
    /// The target of a variable that is declared as a scalar of at most eight bytes and whose value the host keeps.
    #[must_use]
    pub fn scalar_target(&self, tag: u32) -> Option<ScalarTarget> {
        let variable = self.tagged(tag)?.variable()?;
        let Source::Cell(cell) = &variable.source else {
            return None;
        };
        let kind = variable.rule.built_in()?;
        let has_bits = Variant::from_bits(kind, 0).is_some();
        (has_bits && typing::declares_scalar(kind, variable.rule, variable.rank)).then(|| ScalarTarget {
            cell: Arc::clone(cell),
            kind,
        })
    }
}
