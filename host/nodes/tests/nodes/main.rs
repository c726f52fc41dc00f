//! The crate as the server and the plugins use it, with the whole of namespace 0.

mod common;
mod ns0;
