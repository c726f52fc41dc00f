//! backplane-sdk
