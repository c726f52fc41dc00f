//! backplane-plugin
