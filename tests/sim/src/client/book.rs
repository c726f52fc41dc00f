//! What a client knows of its subscriptions, and the notifications it got, in the order of their sequence numbers.

use std::collections::{BTreeMap, BTreeSet};

use backplane_types::DataValue;

use super::Asked;
use crate::log::{Log, Rule};

/// What a client got of one item, oldest first: value and status as text.
pub(crate) type Stream = BTreeMap<(u32, u32), Vec<String>>;

/// One subscription as its client knows it.
#[derive(Debug, Default)]
pub(crate) struct Subscribed {
    /// The number of the next message.
    pub(crate) expected: u32,
    /// Numbers below that did not come yet.
    pub(crate) missing: BTreeSet<u32>,
    /// Asked for again, not answered.
    pub(crate) asked_again: BTreeSet<u32>,
    /// Received and not acknowledged.
    pub(crate) to_acknowledge: Vec<u32>,
    /// What came.
    pub(crate) received: BTreeMap<u32, Vec<(u32, DataValue)>>,
    /// Gone from the server before it was asked for again.
    pub(crate) lost: BTreeSet<u32>,
    /// Monitored items by id, with their client handles.
    pub(crate) items: BTreeMap<u32, u32>,
    pub(crate) ended: bool,
    /// It is being deleted, or may have been.
    pub(crate) doubtful: bool,
}

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) subscriptions: BTreeMap<u32, Subscribed>,
    /// Subscriptions of former sessions.
    pub(crate) former: BTreeMap<u32, Subscribed>,
    pub(crate) next_client_handle: u32,
    unanswered_creates: u32,
}

impl Book {
    pub(crate) fn created(&mut self, id: u32) {
        let fresh = Subscribed {
            expected: 1,
            ..Subscribed::default()
        };
        self.subscriptions.insert(id, fresh);
    }

    /// A subscription that speaks: perhaps one whose making was not answered, because the connection broke.
    pub(crate) fn adopt(&mut self, id: u32, sequence: u32) {
        if self.unanswered_creates > 0 && !self.subscriptions.contains_key(&id) {
            let stranger = Subscribed {
                expected: sequence,
                doubtful: true,
                ..Subscribed::default()
            };
            self.subscriptions.insert(id, stranger);
        }
    }

    pub(crate) fn alive(&self) -> Vec<u32> {
        let alive = |it: &(&u32, &Subscribed)| !it.1.ended && !it.1.doubtful;
        self.subscriptions.iter().filter(alive).map(|(id, _)| *id).collect()
    }

    pub(crate) fn asks_again(&mut self, id: u32, sequence: u32) {
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.asked_again.insert(sequence);
        }
    }

    /// A request was not answered because its connection broke.
    pub(crate) fn unanswered(&mut self, asked: &Asked) {
        let (id, sequence) = asked.about;
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.asked_again.remove(&sequence);
        }
        if asked.kind == backplane_types::service::RequestKind::CreateSubscription {
            self.unanswered_creates += 1;
        }
        match &asked.detail {
            super::Detail::Subscriptions(ids) => {
                for id in ids {
                    if let Some(subscription) = self.subscriptions.get_mut(id) {
                        subscription.doubtful = true;
                    }
                }
            }
            super::Detail::Items(_) | super::Detail::Handles(_) | super::Detail::Nothing => {}
        }
    }

    /// The session is over, and a new one begins.
    pub(crate) fn new_session(&mut self) {
        self.former.append(&mut self.subscriptions);
    }

    /// A message with data, by Publish (`again` false) or by Republish.
    pub(crate) fn message(
        &mut self,
        log: &mut Log,
        name: &str,
        (id, sequence): (u32, u32),
        data: Vec<(u32, DataValue)>,
        again: bool,
    ) {
        let sent = log.ledger.find(id, sequence).map(|sent| sent.data == data);
        log.check(
            sent == Some(true),
            if sent.is_none() {
                Rule::SequenceNumbers
            } else {
                Rule::WrongValue
            },
            format_args!("{name}: message {id}/{sequence} is not the one that was sent"),
        );
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            log.broken(
                Rule::Answers,
                format_args!("{name}: a message of subscription {id}, which it does not have"),
            );
            return;
        };
        let twice = subscription.received.contains_key(&sequence);
        log.check(
            !twice,
            Rule::Doubled,
            format_args!("{name}: message {id}/{sequence} came twice"),
        );
        if again {
            subscription.asked_again.remove(&sequence);
            log.check(
                subscription.missing.remove(&sequence),
                Rule::Available,
                format_args!("{name}: message {id}/{sequence} was not missing"),
            );
        } else {
            log.check(
                sequence >= subscription.expected,
                Rule::SequenceNumbers,
                format_args!("{name}: message {id}/{sequence} instead of {}", subscription.expected),
            );
            subscription.missing.extend(subscription.expected..sequence);
            subscription.expected = sequence + 1;
        }
        subscription.received.insert(sequence, data);
        subscription.to_acknowledge.push(sequence);
    }

    /// A keep-alive: it has the number of the next message.
    pub(crate) fn keep_alive(&mut self, log: &mut Log, name: &str, id: u32, sequence: u32) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            log.broken(
                Rule::Answers,
                format_args!("{name}: a keep-alive of subscription {id}, which it does not have"),
            );
            return;
        };
        log.check(
            sequence >= subscription.expected,
            Rule::SequenceNumbers,
            format_args!(
                "{name}: keep-alive {id}/{sequence} instead of {}",
                subscription.expected
            ),
        );
        subscription.missing.extend(subscription.expected..sequence);
        subscription.expected = subscription.expected.max(sequence);
    }

    /// Republish said that there is no such message.
    pub(crate) fn not_available(&mut self, log: &mut Log, name: &str, id: u32, sequence: u32) {
        let kept = log.ledger.find(id, sequence).is_some_and(|sent| sent.available) && !log.ledger.is_over(id);
        log.check(
            !kept,
            Rule::Available,
            format_args!("{name}: message {id}/{sequence} is kept, but not republished"),
        );
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.asked_again.remove(&sequence);
            if subscription.missing.remove(&sequence) {
                subscription.lost.insert(sequence);
            }
        }
    }

    /// Everything that left the core for a subscription that lives has come, or was gone before it could be asked for.
    pub(crate) fn check_settled(&self, log: &mut Log, name: &str) {
        for (id, subscription) in &self.subscriptions {
            if subscription.ended || subscription.doubtful || log.ledger.is_over(*id) {
                continue;
            }
            let had =
                |sequence: &u32| subscription.received.contains_key(sequence) || subscription.lost.contains(sequence);
            let never: Vec<u32> = log
                .ledger
                .of(*id)
                .map(|(sequence, _)| sequence)
                .filter(|it| !had(it))
                .collect();
            log.check(
                never.is_empty(),
                Rule::Lost,
                format_args!("{name}: messages {never:?} of subscription {id} never came"),
            );
        }
    }

    /// What came for each item of all subscriptions that were not cut short, by subscription and client handle.
    pub(crate) fn streams(&self) -> Stream {
        let mut streams = Stream::new();
        // Ids depend on what other clients do; the order in which this one made its subscriptions does not.
        let all = self.former.values().chain(self.subscriptions.values());
        for (place, subscription) in all.enumerate() {
            for data in subscription.received.values() {
                for (handle, value) in data {
                    let place = u32::try_from(place).unwrap_or(u32::MAX);
                    let text = format!("{:?} {}", value.value, value.status());
                    streams.entry((place, *handle)).or_default().push(text);
                }
            }
        }
        streams
    }
}
