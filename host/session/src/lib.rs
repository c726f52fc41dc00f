//! backplane-session
