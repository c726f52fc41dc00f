//! Events (Part 3, 4.7; Part 4, 7.7 and 7.22.3; Part 5, 6.4): what happened, who wants to know it, and in which words.
//!
//! It owns event records, filters over them and their queues. It must not know nodes, notifiers, plugins or clocks: which types and fields there
//! are is asked of [`EventTypes`], which items an event reaches is the caller's to say, time and ids are handed in.

mod content;
mod convert;
mod event;
mod filter;
mod like;
mod operators;
mod queue;
mod saved;
mod select;
mod time;
mod types;
mod work;

pub use event::{Event, EventBuilder, EventIds};
pub use filter::FilterLimits;
pub use types::{BaseEventTypes, EventField, EventTypes};

pub(crate) use filter::{Filter, Refused};
pub(crate) use queue::{EventQueue, Queued};
pub(crate) use saved::SavedEvent;

#[cfg(test)]
mod tests;
