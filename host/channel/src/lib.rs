//! backplane-channel
