//! Compares the core's answers to Publish requests with those that follow from the rules, and says which rule a difference breaks.

use std::sync::Arc;

use backplane_session::PublishReply;
use backplane_types::{
    DataChangeNotification, DataValue, DecodeLimits, Decoder, NotificationMessage, Now, StatusChangeNotification,
    StatusCode,
};

use super::subscription::Notified;
use super::{Content, Expected, SessionOracle};
use crate::log::{Log, Rule};

/// A NotificationMessage, decoded.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) sequence: u32,
    pub(crate) data: Vec<(u32, DataValue)>,
    pub(crate) ended: Option<StatusCode>,
}

impl Seen {
    pub(crate) fn is_keep_alive(&self) -> bool {
        self.data.is_empty() && self.ended.is_none()
    }

    /// The content of a message; none when it is no valid one.
    pub(crate) fn of(message: &NotificationMessage) -> Option<Self> {
        let mut seen = Self {
            sequence: message.sequence_number,
            ..Self::default()
        };
        for part in &message.notification_data {
            if part.is::<DataChangeNotification>() {
                let part: DataChangeNotification = part.decode_as().ok()?;
                let items = part.monitored_items.into_iter();
                seen.data.extend(items.map(|it| (it.client_handle, it.value)));
            } else {
                let part: StatusChangeNotification = part.decode_as().ok()?;
                seen.ended = Some(part.status);
            }
        }
        Some(seen)
    }
}

impl SessionOracle {
    /// The core answered a Publish request.
    pub(crate) fn replied(&mut self, log: &mut Log, now: Now, ticket: u64, reply: &PublishReply) {
        let session = self.session;
        let Some((wanted, expected)) = self.expected.pop_front() else {
            log.broken(
                unexpected(reply),
                format_args!("session {session}: an answer that nothing asks for: {reply:?}"),
            );
            return;
        };
        log.check(
            ticket == wanted,
            Rule::Answers,
            format_args!("session {session}: request {ticket} is answered instead of {wanted}"),
        );
        match (expected, reply) {
            (Expected::Fault(wanted), PublishReply::Fault(status)) => log.check(
                wanted == *status,
                Rule::StateTable,
                format_args!("session {session}: answered {status} instead of {wanted}"),
            ),
            (expected @ Expected::Message { .. }, PublishReply::Message(_)) => {
                self.compare(log, now, expected, reply);
            }
            (expected, reply) => log.broken(
                Rule::StateTable,
                format_args!("session {session}: expected {expected:?}, the core says {reply:?}"),
            ),
        }
    }

    /// The core has nothing more to say: everything expected was said.
    pub(crate) fn settled(&mut self, log: &mut Log) {
        for (ticket, expected) in std::mem::take(&mut self.expected) {
            let rule = match &expected {
                Expected::Message {
                    content: Content::Data(_),
                    ..
                } => Rule::Lost,
                _ => Rule::StateTable,
            };
            log.broken(
                rule,
                format_args!("no answer to request {ticket}, which must be {expected:?}"),
            );
        }
    }

    fn compare(&mut self, log: &mut Log, now: Now, expected: Expected, reply: &PublishReply) {
        let Expected::Message {
            subscription,
            sequence,
            available,
            more,
            results,
            content,
        } = expected
        else {
            return;
        };
        let PublishReply::Message(message) = reply else { return };
        let mut decoder = Decoder::new(&message.message, DecodeLimits::TRUSTED);
        let decoded: Option<NotificationMessage> = decoder.get().ok();
        let Some(seen) = decoded.as_ref().and_then(Seen::of) else {
            log.broken(Rule::Answers, format_args!("a message that cannot be decoded"));
            return;
        };
        // The last message of a subscription was made when it ended.
        let is_last = matches!(content, Content::Ended(_));
        log.check(
            decoded.is_some_and(|it| it.publish_time == now.utc || (is_last && it.publish_time <= now.utc)),
            Rule::WrongValue,
            format_args!("publishTime is not the present"),
        );
        log.check(
            message.subscription_id == subscription,
            Rule::StateTable,
            format_args!(
                "subscription {} speaks instead of {subscription}",
                message.subscription_id
            ),
        );
        log.check(
            seen.sequence == sequence,
            Rule::SequenceNumbers,
            format_args!(
                "subscription {subscription}: number {} instead of {sequence}",
                seen.sequence
            ),
        );
        log.check(
            message.available_sequence_numbers == available,
            Rule::Available,
            format_args!(
                "subscription {subscription}: available {:?} instead of {available:?}",
                message.available_sequence_numbers
            ),
        );
        log.check(
            message.results == results,
            Rule::Answers,
            format_args!("acknowledged with {:?} instead of {results:?}", message.results),
        );
        log.check(
            message.more_notifications == more,
            Rule::StateTable,
            format_args!("moreNotifications is {}", message.more_notifications),
        );
        self.compare_content(log, subscription, &content, seen, &message.message);
    }

    fn compare_content(&mut self, log: &mut Log, id: u32, content: &Content, seen: Seen, bytes: &Arc<[u8]>) {
        match content {
            Content::Data(wanted) => {
                log.stats.messages += 1;
                log.stats.notifications += u64::try_from(seen.data.len()).unwrap_or(u64::MAX);
                if let Some((rule, what)) = difference(wanted, &seen.data) {
                    log.broken(
                        rule,
                        format_args!("subscription {id}, message {}: {what}", seen.sequence),
                    );
                }
                log.say(
                    "core",
                    format_args!("subscription {id} message {}: {}", seen.sequence, listed(&seen.data)),
                );
                if let Some(subscription) = self.find(id)
                    && let Some(kept) = subscription
                        .kept
                        .iter_mut()
                        .find(|(number, _)| *number == seen.sequence)
                {
                    kept.1 = Arc::clone(bytes);
                }
                log.ledger.sent(id, seen.sequence, seen.data);
            }
            Content::KeepAlive => {
                log.stats.keep_alives += 1;
                log.say("core", format_args!("subscription {id} keep-alive {}", seen.sequence));
                log.check(
                    seen.is_keep_alive(),
                    Rule::StateTable,
                    format_args!("subscription {id}: {seen:?} instead of a keep-alive"),
                );
            }
            Content::Ended(status) => {
                log.say("core", format_args!("subscription {id} ended {}", seen.sequence));
                log.check(
                    seen.ended == Some(*status),
                    Rule::StateTable,
                    format_args!("subscription {id}: {seen:?} instead of StatusChange {status}"),
                );
            }
        }
    }
}

/// The rule that an answer breaks for which there is no reason.
fn unexpected(reply: &PublishReply) -> Rule {
    match reply {
        PublishReply::Message(message) => {
            let decoded: Option<NotificationMessage> = Decoder::new(&message.message, DecodeLimits::TRUSTED).get().ok();
            match decoded.as_ref().and_then(Seen::of) {
                Some(seen) if !seen.data.is_empty() => Rule::Doubled,
                _ => Rule::StateTable,
            }
        }
        PublishReply::Fault(_) => Rule::StateTable,
    }
}

/// What is wrong with the notifications of a message.
fn difference(wanted: &[Notified], seen: &[(u32, DataValue)]) -> Option<(Rule, String)> {
    let plain: Vec<(u32, DataValue)> = wanted.iter().map(|it| (it.handle, it.value.clone())).collect();
    if plain == seen {
        return None;
    }
    let what = |said: &str| format!("{said}: {} instead of {}", listed(seen), listed(&plain));
    let count = |list: &[(u32, DataValue)], one: &(u32, DataValue)| list.iter().filter(|it| *it == one).count();
    if let Some(one) = seen
        .iter()
        .find(|one| count(seen, one) > count(&plain, one) && count(&plain, one) > 0)
    {
        return Some((
            Rule::Doubled,
            what(&format!("{} twice", listed(std::slice::from_ref(one)))),
        ));
    }
    if seen.len() > plain.len() {
        return Some((Rule::Doubled, what("too much")));
    }
    if seen.len() < plain.len() {
        return Some((Rule::Lost, what("too little")));
    }
    Some((Rule::WrongValue, what("something else")))
}

/// Notifications as short text.
pub(crate) fn listed(data: &[(u32, DataValue)]) -> String {
    let one = |(handle, value): &(u32, DataValue)| match value.status {
        None => format!("{handle}={:?}", value.value),
        Some(status) => format!("{handle}={:?}/{status}", value.value),
    };
    let all: Vec<String> = data.iter().map(one).collect();
    format!("[{}]", all.join(" "))
}
