//! backplane-client
