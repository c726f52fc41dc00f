//! backplane
