//! What a client makes of the responses, and what it checks of each.

use std::time::Duration;

use backplane_types::service::RequestKind;
use backplane_types::{
    BinaryDecode, CreateMonitoredItemsResponse, CreateSessionResponse, CreateSubscriptionResponse, DecodeLimits,
    Decoder, NodeId, NotificationMessage, Now, PublishResponse, ReadResponse, RepublishResponse, ResponseHeader,
    ServiceFault, StatusCode, Structure,
};

use super::{Asked, Client, Detail, Phase};
use crate::log::{Log, Rule};
use crate::oracle::Seen;

fn decode<T: Structure>(message: &[u8]) -> Option<T> {
    let mut decoder = Decoder::new(message, DecodeLimits::TRUSTED);
    let _: NodeId = decoder.get().ok()?;
    let decoded = decoder.get().ok()?;
    decoder.is_empty().then_some(decoded)
}

impl Client {
    /// A response came.
    pub(super) fn answered(&mut self, log: &mut Log, now: Now, request_id: u32, message: &[u8]) {
        let Some(asked) = self.outstanding.remove(&request_id) else {
            log.broken(
                Rule::Answers,
                format_args!(
                    "{}: an answer to {request_id}, which was not asked or was answered before",
                    self.name
                ),
            );
            return;
        };
        let mut decoder = Decoder::new(message, DecodeLimits::TRUSTED);
        let head: Option<(NodeId, ResponseHeader)> = decoder
            .get()
            .ok()
            .and_then(|id: NodeId| Some((id, ResponseHeader::decode(&mut decoder).ok()?)));
        let Some((id, header)) = head else {
            log.broken(
                Rule::Answers,
                format_args!("{}: response {request_id} cannot be decoded", self.name),
            );
            return;
        };
        log.check(
            header.request_handle == asked.handle,
            Rule::Answers,
            format_args!(
                "{}: response {request_id} has handle {} instead of {}",
                self.name, header.request_handle, asked.handle
            ),
        );
        let status = header.service_result;
        if id == NodeId::numeric(0, ServiceFault::ENCODING_ID) {
            log.say(
                &self.name,
                format_args!("gets {request_id} {:?} fault {status}", asked.kind),
            );
            self.faulted(log, now, &asked, status);
            return;
        }
        log.check(
            id == NodeId::numeric(0, asked.kind.response_encoding_id()),
            Rule::Answers,
            format_args!("{}: {:?} is answered with {id}", self.name, asked.kind),
        );
        if asked.kind != RequestKind::Publish {
            log.say(&self.name, format_args!("gets {request_id} {:?}", asked.kind));
        }
        if self.understood(log, now, &asked, message).is_none() {
            log.broken(
                Rule::Answers,
                format_args!("{}: {:?} has a response that is none", self.name, asked.kind),
            );
        }
    }

    /// A good response. None if it cannot be understood.
    fn understood(&mut self, log: &mut Log, now: Now, asked: &Asked, message: &[u8]) -> Option<()> {
        match asked.kind {
            RequestKind::CreateSession => {
                let response: CreateSessionResponse = decode(message)?;
                self.token = Some(response.authentication_token);
                self.activate(log, now);
            }
            RequestKind::ActivateSession => {
                self.phase = Phase::Up;
                self.next_act = now.mono + Duration::from_millis(self.dice.between(1, 50));
            }
            RequestKind::CloseSession => {
                self.session_over();
                if self.phase == Phase::Leaving {
                    if let Some(line) = &mut self.line {
                        line.channel.close(now, &mut line.out);
                        line.ended = true;
                    }
                } else {
                    self.phase = Phase::Entering;
                    self.enter(log, now);
                }
            }
            RequestKind::CreateSubscription => {
                let response: CreateSubscriptionResponse = decode(message)?;
                self.book.created(response.subscription_id);
            }
            RequestKind::CreateMonitoredItems => {
                let response: CreateMonitoredItemsResponse = decode(message)?;
                self.count(log, asked, response.results.len());
                let Detail::Handles(handles) = &asked.detail else {
                    return Some(());
                };
                if let Some(subscription) = self.book.subscriptions.get_mut(&asked.about.0) {
                    for (handle, result) in handles.iter().zip(&response.results) {
                        if result.status_code == StatusCode::GOOD {
                            subscription.items.insert(result.monitored_item_id, *handle);
                        }
                    }
                }
            }
            RequestKind::DeleteMonitoredItems => {
                let Detail::Items(items) = &asked.detail else {
                    return Some(());
                };
                if let Some(subscription) = self.book.subscriptions.get_mut(&asked.about.0) {
                    subscription.items.retain(|id, _| !items.contains(id));
                }
            }
            RequestKind::DeleteSubscriptions => {
                let Detail::Subscriptions(ids) = &asked.detail else {
                    return Some(());
                };
                for id in ids {
                    if let Some(subscription) = self.book.subscriptions.get_mut(id) {
                        subscription.ended = true;
                    }
                }
            }
            RequestKind::Read => {
                let response: ReadResponse = decode(message)?;
                self.count(log, asked, response.results.len());
            }
            RequestKind::Publish => self.published(log, now, asked, &decode(message)?),
            RequestKind::Republish => {
                let response: RepublishResponse = decode(message)?;
                let seen = Seen::of(&response.notification_message)?;
                log.stats.republished += 1;
                log.check(
                    seen.sequence == asked.about.1,
                    Rule::Available,
                    format_args!(
                        "{}: Republish gave message {} instead of {}",
                        self.name, seen.sequence, asked.about.1
                    ),
                );
                self.book.message(log, &self.name, asked.about, seen.data, true);
            }
            _ => {}
        }
        Some(())
    }

    fn count(&self, log: &mut Log, asked: &Asked, results: usize) {
        log.check(
            results == asked.count,
            Rule::Answers,
            format_args!(
                "{}: {:?} has {results} results for {} operations",
                self.name, asked.kind, asked.count
            ),
        );
    }

    fn published(&mut self, log: &mut Log, now: Now, asked: &Asked, response: &PublishResponse) {
        self.count(log, asked, response.results.len());
        let message: &NotificationMessage = &response.notification_message;
        let Some(seen) = Seen::of(message) else {
            log.broken(Rule::Answers, format_args!("{}: a message that is none", self.name));
            return;
        };
        let (id, sequence) = (response.subscription_id, seen.sequence);
        log.say(
            &self.name,
            format_args!("gets message {id}/{sequence} {}", crate::oracle::listed(&seen.data)),
        );
        self.book.adopt(id, sequence);
        if seen.ended.is_some() {
            log.check(
                log.ledger.is_over(id),
                Rule::StateTable,
                format_args!("{}: subscription {id} is said to be over", self.name),
            );
            if let Some(subscription) = self.book.subscriptions.get_mut(&id) {
                subscription.ended = true;
            }
        } else if seen.is_keep_alive() {
            self.book.keep_alive(log, &self.name, id, sequence);
        } else {
            log.check(
                response.available_sequence_numbers.contains(&sequence),
                Rule::Available,
                format_args!("{}: message {id}/{sequence} is not among the available ones", self.name),
            );
            self.book.message(log, &self.name, (id, sequence), seen.data, false);
        }
        self.ask_for_missing(log, now, id);
    }

    pub(super) fn ask_for_missing(&mut self, log: &mut Log, now: Now, id: u32) {
        let Some(subscription) = self.book.subscriptions.get(&id) else {
            return;
        };
        let wanted: Vec<u32> = subscription
            .missing
            .difference(&subscription.asked_again)
            .copied()
            .take(8)
            .collect();
        for sequence in wanted {
            self.republish(log, now, id, sequence);
        }
    }

    fn faulted(&mut self, log: &mut Log, now: Now, asked: &Asked, status: StatusCode) {
        let session_over = [
            StatusCode::BAD_SESSION_ID_INVALID,
            StatusCode::BAD_SESSION_CLOSED,
            StatusCode::BAD_SESSION_NOT_ACTIVATED,
        ];
        match asked.kind {
            RequestKind::CreateSession => self.pause(now, 500),
            // What it asked in a session that it has closed.
            _ if asked.session != self.session => {}
            _ if session_over.contains(&status) => {
                self.book.unanswered(asked);
                if self.phase == Phase::Leaving {
                    if let Some(line) = &mut self.line {
                        line.ended = true;
                    }
                } else if self.token.is_some() {
                    self.session_over();
                    self.phase = Phase::Entering;
                    self.enter(log, now);
                }
            }
            RequestKind::Publish => {
                if status == StatusCode::BAD_NO_SUBSCRIPTION {
                    self.nothing_there(log);
                }
                self.silent_until = self.silent_until.max(now.mono + Duration::from_millis(50));
            }
            RequestKind::Republish => {
                let (id, sequence) = asked.about;
                self.book.not_available(log, &self.name, id, sequence);
            }
            RequestKind::DeleteSubscriptions => self.book.unanswered(asked),
            _ => {
                if status == StatusCode::BAD_SUBSCRIPTION_ID_INVALID {
                    let id = asked.about.0;
                    let is_over = log.ledger.is_over(id);
                    log.check(
                        is_over,
                        Rule::StateTable,
                        format_args!("{}: subscription {id} is unknown to the server", self.name),
                    );
                    if let Some(subscription) = self.book.subscriptions.get_mut(&id) {
                        subscription.ended = true;
                    }
                }
            }
        }
    }

    /// The server says that this session has no subscription.
    fn nothing_there(&mut self, log: &mut Log) {
        for (id, subscription) in &mut self.book.subscriptions {
            let over = log.ledger.is_over(*id);
            log.check(
                over || subscription.ended || subscription.doubtful,
                Rule::StateTable,
                format_args!("{}: subscription {id} is there, but the server has none", self.name),
            );
            subscription.ended |= over;
        }
    }

    fn pause(&mut self, now: Now, ms: u64) {
        self.next_act = now.mono + Duration::from_millis(ms);
    }
}
