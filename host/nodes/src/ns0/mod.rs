//! Namespace 0.

pub mod table;
