//! A host for native tests: the code of a plugin runs in `cargo test`, with a clock that only the test moves.
//!
//! [`FakeHost`] keeps what the plugin declares and publishes, runs its timers, and makes the calls that clients would cause, with the checks that the real
//! host makes first: does the node exist, may it be written, is the value of the right type. It knows nothing of the network, of sessions or of namespace 0
//! beyond the folders where plugins hang their nodes, and does not read nodesets.
//!
//! ```
//! # use backplane_sdk::{Change, Fault, NodeManager, StartReason, Tag, Variable, namespace};
//! # const ANSWER: Tag<i32> = Tag::new(1);
//! # #[derive(Default)] struct Hello;
//! # impl NodeManager for Hello {
//! #     fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
//! #         let ns = namespace("urn:example:hello");
//! #         Change::new().add(Variable::new(ANSWER, ns.id("Answer"), "Answer").value(42)).commit()
//! #     }
//! # }
//! # backplane_sdk::plugin!(Hello);
//! use backplane_sdk::testing::FakeHost;
//!
//! let mut host = FakeHost::<Hello>::new();
//! host.start().expect("starts");
//! let ns = host.namespace("urn:example:hello");
//! assert_eq!(host.value(&ns.id("Answer")).value.get::<i32>(), Some(42));
//! ```

mod fake_host;
mod space;
pub(crate) mod state;

pub use fake_host::{FakeClassifier, FakeHost};
pub use space::{Class, FakeNode};
pub use state::{Caller, Event, PeerEvidence};

pub(crate) use space::Step;
