//! Every message that left the core, for comparison with what clients got.
//!
//! It must not know how messages are made, nor who got them.

use std::collections::BTreeMap;

use backplane_types::DataValue;

/// A message with data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sent {
    /// Client handle and value.
    pub(crate) data: Vec<(u32, DataValue)>,
    /// Republish still has it.
    pub(crate) available: bool,
}

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    messages: BTreeMap<(u32, u32), Sent>,
    /// Subscriptions that are over: nobody has to have their messages.
    over: Vec<u32>,
}

impl Ledger {
    pub(crate) fn sent(&mut self, subscription: u32, sequence: u32, data: Vec<(u32, DataValue)>) {
        let available = true;
        self.messages.insert((subscription, sequence), Sent { data, available });
    }

    pub(crate) fn find(&self, subscription: u32, sequence: u32) -> Option<&Sent> {
        self.messages.get(&(subscription, sequence))
    }

    /// A message was acknowledged or gave way to newer ones.
    pub(crate) fn unavailable(&mut self, subscription: u32, sequence: u32) {
        if let Some(sent) = self.messages.get_mut(&(subscription, sequence)) {
            sent.available = false;
        }
    }

    /// A subscription is over.
    pub(crate) fn forget(&mut self, subscription: u32) {
        self.over.push(subscription);
    }

    pub(crate) fn is_over(&self, subscription: u32) -> bool {
        self.over.contains(&subscription)
    }

    /// The messages of a subscription.
    pub(crate) fn of(&self, subscription: u32) -> impl Iterator<Item = (u32, &Sent)> {
        self.messages
            .range((subscription, 0)..=(subscription, u32::MAX))
            .map(|((_, sequence), sent)| (*sequence, sent))
    }
}
