//! backplane-types
