//! Between a request's arrival and its answer: who may have it done, when its turn comes, and how it ends.
//!
//! Three parts, generic over what the work is and who sends it. They know neither OPC UA nor each other; the server puts them together.
//!
//! | part | answers | holds |
//! |---|---|---|
//! | [`isolation`] | who is charged for work, and is there room for it? | accounts of each owner in each stage, floors, leases |
//! | [`fair`] | whose work is next? | the bounded queue, served in weighted turns |
//! | [`lifetime`] | how did it end? | the table of waiting requests, each of which ends once |
//!
//! The server admits a request by acquiring what it costs in [`isolation`] and queueing it in [`fair`] under its owner's key and weight. The
//! queue offers it when its turn has come; the server acquires its execution, and an owner that is refused is passed over until
//! [`isolation`] signals capacity. What must wait for somebody else is registered in [`lifetime`]. When a request ends, dropping it gives
//! everything back.
//!
//! No part has a clock, a task or a runtime: time is handed in, and workers wait as futures. What several threads touch is built on the types of
//! one module, so that model checkers run the code that the server runs.

pub mod fair;
pub mod isolation;
pub mod lifetime;
mod sync;
