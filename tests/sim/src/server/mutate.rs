//! What mutants do to the answers of the core.

use std::sync::Arc;

use backplane_session::{PublishMessage, PublishReply};
use backplane_types::{DataChangeNotification, DecodeLimits, Decoder, Encoder, ExtensionObject, NotificationMessage};

use crate::mutant::Mutant;

/// Changes an answer on its way out of the core. False when it is swallowed.
pub(crate) fn reply(mutant: Mutant, reply: &mut PublishReply) -> bool {
    let PublishReply::Message(message) = reply else {
        return true;
    };
    let Some(mut decoded) = decode(&message.message) else {
        return true;
    };
    match mutant {
        Mutant::SwallowsKeepAlive => return !decoded.notification_data.is_empty(),
        Mutant::HidesAvailable => {
            message.available_sequence_numbers.pop();
        }
        Mutant::LosesNotification => {
            change_items(&mut decoded, |items| {
                items.pop();
            });
        }
        Mutant::DoublesNotification => {
            change_items(&mut decoded, |items| {
                if let Some(first) = items.first().cloned() {
                    items.insert(0, first);
                }
            });
        }
        _ => return true,
    }
    message.message = encode(&decoded);
    true
}

/// Sends the message before once more, in answer to another request.
pub(crate) fn again(last: &mut Option<PublishMessage>, reply: &mut PublishReply) {
    let PublishReply::Message(message) = reply else { return };
    let has_data = decode(&message.message).is_some_and(|it| !it.notification_data.is_empty());
    match last {
        Some(last) if last.subscription_id == message.subscription_id => {
            let results = std::mem::take(&mut message.results);
            *message = PublishMessage {
                results,
                ..last.clone()
            };
        }
        _ if has_data => *last = Some(message.clone()),
        _ => {}
    }
}

/// The message with the next sequence number.
pub(crate) fn skip_number(message: &Arc<[u8]>) -> Arc<[u8]> {
    match decode(message) {
        Some(mut decoded) => {
            decoded.sequence_number += 1;
            encode(&decoded)
        }
        None => Arc::clone(message),
    }
}

fn decode(bytes: &[u8]) -> Option<NotificationMessage> {
    Decoder::new(bytes, DecodeLimits::TRUSTED).get().ok()
}

fn encode(message: &NotificationMessage) -> Arc<[u8]> {
    let mut bytes = Vec::new();
    Encoder::new(&mut bytes).put(message);
    Arc::from(bytes)
}

fn change_items(
    message: &mut NotificationMessage,
    change: impl FnOnce(&mut Vec<backplane_types::MonitoredItemNotification>),
) {
    let Some(part) = message.notification_data.first_mut() else {
        return;
    };
    let Ok(mut data) = part.decode_as::<DataChangeNotification>() else {
        return;
    };
    change(&mut data.monitored_items);
    *part = ExtensionObject::from_structure(&data);
}
