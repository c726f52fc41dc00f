//! backplane-nodes
