//! One turn of a connection: requests from the input, answers to the output.

use std::sync::Arc;
use std::time::Duration;

use backplane_channel::{Event, Mark, SendError};
use backplane_types::StatusCode;
use tokio::sync::mpsc::UnboundedReceiver;

use super::end::End;
use super::inbox::Inbox;
use super::{Connection, TURN_ANSWERS};
use crate::link::{Answer, Link, Outbound};
use crate::respond::Context;
use crate::services::{self, Progress};

/// Requests that one turn answers before it writes and lets others run.
const TURN_REQUESTS: usize = 64;
/// How long a turn goes on taking requests.
const TURN_TIME: Duration = Duration::from_micros(200);
/// Requests between two looks at the clock.
const CLOCK_INTERVAL: usize = 8;

impl Connection {
    /// Takes the answers that came late, while the client takes what it was sent.
    pub(super) fn take_answers(&mut self, answers: &mut UnboundedReceiver<Outbound>) -> Result<(), End> {
        for _ in 0..TURN_ANSWERS {
            if self.outbox.is_congested() {
                break;
            }
            let Ok(answer) = answers.try_recv() else { break };
            self.answer(answer)?;
        }
        Ok(())
    }

    /// Runs a turn if there is something to do and the gate lets it, then writes. True when there is more to do: what there is
    /// of a turn is kept until [`next_turn`](Self::next_turn).
    pub(super) fn take_turn(&mut self) -> Result<bool, End> {
        if self.opening.is_none() && self.inbox.has_work() && !self.outbox.is_congested() {
            let charge = Arc::clone(self.charge());
            if self.turns.enter(charge.turns()).map_err(|_| End::Crowded)? {
                self.take_input()?;
                if let Some(link) = &self.link {
                    self.batch.submit(&self.shared, link);
                }
            }
        }
        self.write().map_err(|error| End::Socket(Err(error)))?;
        if self.turns.is_waiting() {
            return Ok(false);
        }
        // There may be more to do because the turn is over, or because there is room for answers again.
        if self.opening.is_none() && self.inbox.has_work() && !self.outbox.is_congested() {
            return Ok(true);
        }
        self.turns.leave();
        Ok(false)
    }

    /// Lets others have their turns, and those that have just got something be seen. True when one can go on at once; false
    /// when the next turn has to be waited for.
    pub(super) async fn next_turn(&mut self) -> Result<bool, End> {
        // The runtime looks at its sockets before it comes back here: whoever got a request meanwhile queues before the turn
        // goes to the next of those that have more.
        tokio::task::yield_now().await;
        self.now = self.shared.clock.now();
        let charge = Arc::clone(self.charge());
        self.turns.again(charge.turns()).map_err(|_| End::Crowded)
    }

    /// Answers what has arrived, up to a turn's worth.
    fn take_input(&mut self) -> Result<(), End> {
        let mut inbox = std::mem::take(&mut self.inbox);
        let result = self.take_from(&mut inbox);
        self.inbox = inbox;
        result
    }

    fn take_from(&mut self, inbox: &mut Inbox) -> Result<(), End> {
        let end = self.now.mono.saturating_add(TURN_TIME);
        for count in 1..=TURN_REQUESTS {
            if inbox.is_empty() {
                return Ok(());
            }
            // Requests stay where they are while their answers could not leave: a small one may have a large answer.
            if self.outbox.is_congested() {
                return Ok(());
            }
            let (consumed, event) = self
                .channel
                .handle_input(self.now, inbox.pending(), self.outbox.buffer());
            match event {
                Event::NeedMore { bytes } => {
                    inbox.want(bytes);
                    return Ok(());
                }
                Event::Opening => return Ok(()),
                Event::Progress => {}
                Event::Message { request_id, body } => {
                    self.serve(request_id, &body)?;
                    self.channel.recycle(body);
                }
                Event::Aborted {
                    request_id,
                    status,
                    reason,
                } => {
                    tracing::debug!(peer = %self.peer, request_id, %status, reason = reason.text(), "the client gave a message up");
                }
                Event::Open(work) => self.open(*work)?,
                Event::Closed(closed) => return Err(End::Channel(closed)),
            }
            inbox.consume(consumed);
            self.charge_reassembly()?;
            if count % CLOCK_INTERVAL == 0 && self.shared.clock.now().mono >= end {
                break;
            }
        }
        Ok(())
    }

    /// Memory for a message whose last chunk has not come is charged to its owner; without room the channel ends.
    fn charge_reassembly(&mut self) -> Result<(), End> {
        let held = self.channel.reassembly_bytes();
        if held == 0 {
            self.place.end_reassembly();
            return Ok(());
        }
        let charge = self.link.as_ref().map_or(self.place.charge(), Link::charge);
        let activated = self.link.as_ref().is_some_and(|link| link.bound().is_some());
        let owner = self.shared.admission.reassembly_owner(charge, activated);
        if self.place.charge_reassembly(held, &owner, activated).is_ok() {
            return Ok(());
        }
        tracing::info!(peer = %self.peer, bytes = held, "no room for a message in pieces (isolation stage ReassemblyBytes, limits.reassembly-bytes)");
        Err(End::Channel(
            self.channel
                .close(StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES, self.outbox.buffer()),
        ))
    }

    /// Runs one request to completion, or hands it to whoever will answer it.
    fn serve(&mut self, request_id: u32, message: &[u8]) -> Result<(), End> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let mark = Mark::begin(self.outbox.buffer());
        let out = self.outbox.buffer();
        let progress = services::dispatch(&self.shared, link, &mut self.batch, self.now, request_id, message, out);
        match progress {
            Progress::Done => self.seal(mark, request_id, message),
            Progress::HandedOver => {
                mark.discard(self.outbox.buffer());
                Ok(())
            }
        }
    }

    /// Seals the response that was encoded behind `mark`; one that the client cannot take becomes a fault.
    fn seal(&mut self, mark: Mark, request_id: u32, request: &[u8]) -> Result<(), End> {
        match self
            .channel
            .finish_message(self.now, mark, request_id, self.outbox.buffer())
        {
            Ok(()) => {
                self.outbox.message_done();
                Ok(())
            }
            Err(SendError::TooLarge { size, chunks }) => {
                tracing::debug!(peer = %self.peer, size, chunks, "response too large for the client");
                let request_handle = services::request_handle(request, &self.shared);
                let context = Context {
                    now: self.now,
                    request_handle,
                };
                self.send(request_id, &context.fault_message(StatusCode::BAD_RESPONSE_TOO_LARGE))
            }
            Err(error) => Err(self.broken(error)),
        }
    }

    fn send(&mut self, request_id: u32, message: &[u8]) -> Result<(), End> {
        match self.channel.send(self.now, request_id, message, self.outbox.buffer()) {
            Ok(()) => {
                self.outbox.message_done();
                Ok(())
            }
            Err(SendError::TooLarge { .. }) => {
                let request_handle = services::response_handle(message);
                let fault = Context {
                    now: self.now,
                    request_handle,
                }
                .fault_message(StatusCode::BAD_RESPONSE_TOO_LARGE);
                match self.channel.send(self.now, request_id, &fault, self.outbox.buffer()) {
                    Ok(()) => {
                        self.outbox.message_done();
                        Ok(())
                    }
                    Err(error) => Err(self.broken(error)),
                }
            }
            Err(error) => Err(self.broken(error)),
        }
    }

    /// Nothing more can be sent on this channel.
    fn broken(&mut self, error: SendError) -> End {
        tracing::warn!(peer = %self.peer, %error, "closing the channel");
        End::Channel(
            self.channel
                .close(StatusCode::BAD_TCP_INTERNAL_ERROR, self.outbox.buffer()),
        )
    }

    /// Sends answers that come late.
    pub(super) fn answer(&mut self, answer: Outbound) -> Result<(), End> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let Outbound {
            answer,
            activated,
            held,
        } = answer;
        if let Some(session) = activated {
            link.bind(&self.shared, session);
            self.channel.set_limits_authenticated();
        }
        match answer {
            Answer::One { request_id, message } => self.send(request_id, &message)?,
            Answer::Many { parts, bytes } => {
                for (request_id, range) in parts {
                    self.send(request_id, bytes.get(range).unwrap_or_default())?;
                }
            }
        }
        // Only now: a client that does not read is charged for what waits for it.
        drop(held);
        Ok(())
    }
}
