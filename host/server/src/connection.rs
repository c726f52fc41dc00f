//! One connection: its task is the sole owner of its socket and its secure channel.
//!
//! Owns the turn: take what the socket has, answer what can be answered at once straight from those bytes, seal the
//! answers side by side, write them in one go. What takes time goes to other tasks and comes back as [`Outbound`]. Knows
//! nothing of what a service does.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use backplane_channel::{Closed, Event, Mark, OpenOutcome, OpenWork, SendError, ServerChannel};
use backplane_crypto::SystemRandom;
use backplane_types::{Now, StatusCode};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

use crate::inbox::Inbox;
use crate::link::{Link, Outbound, OutboundSender};
use crate::outbox::Outbox;
use crate::respond::Context;
use crate::services::{self, Progress};
use crate::shared::Shared;

/// Requests that one turn answers before it writes and lets others run.
const TURN_REQUESTS: usize = 64;
/// Late answers that one turn takes.
const TURN_ANSWERS: usize = 64;

/// Serves one accepted connection until it ends, or until `leave` asks it to give way.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr, number: u64, leave: Arc<Notify>) {
    let (sender, receiver) = unbounded_channel();
    let now = shared.clock.now();
    let channel = ServerChannel::new(Arc::clone(&shared.channel_config), Arc::clone(&shared.channel_ids), now);
    let mut connection = Connection {
        stream,
        peer,
        number,
        leave,
        channel,
        link: None,
        inbox: Inbox::default(),
        outbox: Outbox::default(),
        sender,
        opening: None,
        now,
        shared,
    };
    let end = connection.run(receiver).await;
    connection.finish(&end).await;
}

/// Why a connection ended.
enum End {
    /// The peer closed the socket, or it failed.
    Socket(io::Result<()>),
    /// The channel is over.
    Channel(Closed),
    /// The server stops.
    Stopping,
    /// Another connection needs the place.
    Crowded,
}

struct Connection {
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    /// Never used twice in this process.
    number: u64,
    /// Set when another connection needs the place.
    leave: Arc<Notify>,
    channel: ServerChannel,
    /// From the moment the channel is open.
    link: Option<Link>,
    inbox: Inbox,
    outbox: Outbox,
    sender: OutboundSender,
    opening: Option<JoinHandle<OpenOutcome>>,
    /// The time of this turn.
    now: Now,
}

/// What woke a connection up.
enum Wake {
    Socket(io::Result<tokio::io::Ready>),
    Answer(Outbound),
    Opened(OpenOutcome),
    Deadline,
    Stop,
    Leave,
}

impl Connection {
    async fn run(&mut self, mut answers: UnboundedReceiver<Outbound>) -> End {
        let mut stop = self.shared.stopping.subscribe();
        let deadline = tokio::time::sleep_until(self.deadline());
        tokio::pin!(deadline);
        loop {
            let more = match self.take_input() {
                Ok(more) => more,
                Err(end) => return end,
            };
            for _ in 0..TURN_ANSWERS {
                let Ok(answer) = answers.try_recv() else { break };
                if let Err(end) = self.answer(answer) {
                    return end;
                }
            }
            if let Err(error) = self.write() {
                return End::Socket(Err(error));
            }
            if more && !self.outbox.is_congested() {
                tokio::task::yield_now().await;
                self.now = self.shared.clock.now();
                continue;
            }
            let wanted = self.deadline();
            if deadline.deadline() != wanted {
                deadline.as_mut().reset(wanted);
            }
            let interest = self.interest();
            let wake = tokio::select! {
                ready = ready(&self.stream, interest) => Wake::Socket(ready),
                Some(answer) = answers.recv() => Wake::Answer(answer),
                outcome = opened(&mut self.opening) => Wake::Opened(outcome),
                () = &mut deadline => Wake::Deadline,
                _ = stop.changed() => Wake::Stop,
                () = self.leave.notified() => Wake::Leave,
            };
            self.now = self.shared.clock.now();
            if let Err(end) = self.handle(wake) {
                return end;
            }
        }
    }

    fn handle(&mut self, wake: Wake) -> Result<(), End> {
        match wake {
            Wake::Socket(Err(error)) => Err(End::Socket(Err(error))),
            Wake::Socket(Ok(ready)) if ready.is_readable() || ready.is_read_closed() => self.read(),
            Wake::Socket(Ok(_)) => Ok(()),
            Wake::Answer(answer) => self.answer(answer),
            Wake::Opened(outcome) => self.opened(outcome),
            Wake::Deadline => match self.channel.handle_timeout(self.now, self.outbox.buffer()) {
                Some(closed) => Err(End::Channel(closed)),
                None => Ok(()),
            },
            Wake::Stop => Err(End::Stopping),
            Wake::Leave => Err(End::Crowded),
        }
    }

    /// When the channel's next deadline is; far away when it has none.
    fn deadline(&self) -> tokio::time::Instant {
        const NEVER: std::time::Duration = std::time::Duration::from_secs(86_400);
        self.shared.clock.instant(
            self.channel
                .poll_timeout()
                .unwrap_or_else(|| self.now.mono.saturating_add(NEVER)),
        )
    }

    /// What the socket is watched for: input unless the channel is being opened or too many answers wait, room for output
    /// when some waits.
    fn interest(&mut self) -> Option<Interest> {
        let reading = self.opening.is_none() && !self.outbox.is_congested();
        match (reading, self.outbox.is_empty()) {
            (true, true) => Some(Interest::READABLE),
            (true, false) => Some(Interest::READABLE | Interest::WRITABLE),
            (false, false) => Some(Interest::WRITABLE),
            (false, true) => None,
        }
    }

    fn read(&mut self) -> Result<(), End> {
        if self.opening.is_some() {
            return Ok(());
        }
        match self.stream.try_read_buf(self.inbox.room()) {
            Ok(0) => Err(End::Socket(Ok(()))),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.inbox.release_if_empty();
                Ok(())
            }
            Err(error) => Err(End::Socket(Err(error))),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.outbox.is_empty() {
            match self.stream.try_write(self.outbox.pending()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.outbox.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Answers what has arrived, up to a turn's worth. True when more is there.
    fn take_input(&mut self) -> Result<bool, End> {
        let mut inbox = std::mem::take(&mut self.inbox);
        let result = self.take_from(&mut inbox);
        self.inbox = inbox;
        result
    }

    fn take_from(&mut self, inbox: &mut Inbox) -> Result<bool, End> {
        for _ in 0..TURN_REQUESTS {
            if inbox.is_empty() {
                return Ok(false);
            }
            // Requests stay where they are while their answers could not leave: a small one may have a large answer.
            if self.outbox.is_congested() {
                return Ok(true);
            }
            let (consumed, event) = self
                .channel
                .handle_input(self.now, inbox.pending(), self.outbox.buffer());
            match event {
                Event::NeedMore { bytes } => {
                    inbox.want(bytes);
                    return Ok(false);
                }
                Event::Opening => return Ok(false),
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
                Event::Open(work) => self.open(*work),
                Event::Closed(closed) => return Err(End::Channel(closed)),
            }
            inbox.consume(consumed);
        }
        Ok(!inbox.is_empty())
    }

    /// Opens or renews the channel: RSA work, on a blocking thread.
    fn open(&mut self, work: OpenWork) {
        let shared = Arc::clone(&self.shared);
        self.opening = Some(tokio::task::spawn_blocking(move || {
            work.run(&shared.identity, shared.trust.as_ref(), &mut SystemRandom)
        }));
    }

    fn opened(&mut self, outcome: OpenOutcome) -> Result<(), End> {
        self.opening = None;
        if let Some(error) = outcome.error() {
            tracing::warn!(peer = %self.peer, status = %error.reason, reason = error.context, "secure channel refused");
        }
        let opened = self.channel.handle_opened(self.now, outcome, self.outbox.buffer());
        self.outbox.message_done();
        opened.map_err(End::Channel)?;
        if self.link.is_none()
            && let Some(evidence) = self.channel.evidence()
        {
            tracing::debug!(peer = %self.peer, channel = evidence.channel_id, policy = evidence.policy.name(), mode = ?evidence.mode, "secure channel open");
            let limit = self.shared.limits.waiting_requests_per_connection as usize;
            self.link = Some(Link::new(
                self.number,
                Arc::clone(evidence),
                self.peer,
                self.sender.clone(),
                limit,
            ));
        }
        Ok(())
    }

    /// Runs one request to completion, or hands it to whoever will answer it.
    fn serve(&mut self, request_id: u32, message: &[u8]) -> Result<(), End> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let mark = Mark::begin(self.outbox.buffer());
        let progress = services::dispatch(&self.shared, link, self.now, request_id, message, self.outbox.buffer());
        match progress {
            Progress::Done => self.seal(mark, request_id, message),
            Progress::HandedOver => {
                mark.discard(self.outbox.buffer());
                Ok(())
            }
            Progress::Later { context, guard, future } => {
                mark.discard(self.outbox.buffer());
                match services::start_later(&self.shared, link, request_id, context, guard, future) {
                    Some(refusal) => self.send(request_id, &refusal),
                    None => Ok(()),
                }
            }
            Progress::Cancelled(requests) => {
                mark.discard(self.outbox.buffer());
                for (id, request_handle) in requests {
                    let context = Context {
                        now: self.now,
                        request_handle,
                    };
                    self.send(id, &context.fault_message(StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST))?;
                }
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

    /// Sends an answer that comes late.
    fn answer(&mut self, answer: Outbound) -> Result<(), End> {
        let Some(link) = &mut self.link else { return Ok(()) };
        if answer.waited && !link.answered(answer.request_id) {
            return Ok(());
        }
        if let Some(session) = answer.activated {
            link.bind(&self.shared, session);
            self.channel.set_limits_authenticated();
        }
        self.send(answer.request_id, &answer.message)
    }

    /// Says goodbye as far as the socket takes it, and tells those who have to know.
    async fn finish(&mut self, end: &End) {
        match end {
            End::Socket(Ok(())) | End::Channel(Closed::ByPeer) => {
                tracing::debug!(peer = %self.peer, "connection closed by the client")
            }
            End::Socket(Err(error)) => tracing::debug!(peer = %self.peer, %error, "connection lost"),
            End::Channel(Closed::PeerError { status, reason }) => {
                tracing::info!(peer = %self.peer, %status, reason = reason.text(), "the client reports an error");
            }
            End::Channel(Closed::Error(error)) => {
                tracing::info!(peer = %self.peer, status = %error.reason, reason = error.context, "channel closed");
            }
            End::Stopping => {
                self.channel.close(StatusCode::BAD_SERVER_HALTED, self.outbox.buffer());
            }
            End::Crowded => {
                tracing::debug!(peer = %self.peer, "closed for another connection: it has no session");
                self.channel
                    .close(StatusCode::BAD_TCP_SERVER_TOO_BUSY, self.outbox.buffer());
                // Who is asked to make room does not get more time.
                let _ = self.write();
            }
        }
        if !matches!(end, End::Socket(_) | End::Crowded) {
            let drained = tokio::time::timeout(self.shared.goodbye(), self.drain()).await;
            if drained.is_err() {
                tracing::debug!(peer = %self.peer, "the client does not read; its last answers are dropped");
            }
        }
        self.shared.connection_closed(self.number);
    }

    async fn drain(&mut self) {
        while !self.outbox.is_empty() {
            if self.stream.writable().await.is_err() || self.write().is_err() {
                return;
            }
        }
        // The client sees the Error message before the end of the stream; a failure here means it is gone already.
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut self.stream).await;
    }
}

async fn ready(stream: &TcpStream, interest: Option<Interest>) -> io::Result<tokio::io::Ready> {
    match interest {
        Some(interest) => stream.ready(interest).await,
        None => pending().await,
    }
}

async fn opened(opening: &mut Option<JoinHandle<OpenOutcome>>) -> OpenOutcome {
    match opening {
        Some(task) => match task.await {
            Ok(outcome) => outcome,
            Err(error) => {
                // The work panicked: the runtime has reported it. The deadline of the channel ends the connection.
                tracing::error!(%error, "opening a secure channel failed");
                *opening = None;
                pending().await
            }
        },
        None => pending().await,
    }
}
