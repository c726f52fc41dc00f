//! backplane-crypto
