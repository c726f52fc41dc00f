//! backplane-nodes
pub mod ns0;
