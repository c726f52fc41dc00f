//! bad-plugins
