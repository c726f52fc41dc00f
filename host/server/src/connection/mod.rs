//! One connection: its task is the sole owner of its socket and its secure channel.
//!
//! Owns the turn: take what the socket has, answer what can be answered at once straight from those bytes, seal the
//! answers side by side, write them in one go, and let the next one at the gate run. What takes time goes to other tasks
//! and comes back as [`Outbound`]. Knows nothing of what a service does.

mod end;
mod inbox;
mod open;
mod outbox;
mod turn;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use backplane_channel::ServerChannel;
use backplane_types::Now;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use self::end::End;
use self::inbox::Inbox;
use self::outbox::Outbox;
use crate::admission::{ConnectionPlace, Turns};
use crate::channels::Opened;
use crate::link::{Link, Outbound, OutboundSender};
use crate::services::Batch;
use crate::shared::Shared;

/// Late answers that one turn takes.
const TURN_ANSWERS: usize = 64;

/// What a connection is made from.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    /// Its place among the connections; whom its work is charged to until more is known.
    pub(crate) place: ConnectionPlace,
}

/// Serves one accepted connection until it ends, or until it is asked to give way.
pub(crate) async fn serve(shared: Arc<Shared>, accepted: Accepted) {
    let (sender, receiver) = unbounded_channel();
    let now = shared.clock.now();
    let channel = ServerChannel::new(Arc::clone(&shared.channel_config), Arc::clone(&shared.channel_ids), now);
    let mut connection = Connection {
        turns: Turns::new(shared.admission.gate()),
        stream: accepted.stream,
        peer: accepted.peer,
        place: accepted.place,
        channel,
        link: None,
        inbox: Inbox::default(),
        outbox: Outbox::default(),
        batch: Batch::default(),
        sender,
        opening: None,
        now,
        shared,
    };
    let end = connection.run(receiver).await;
    connection.finish(&end).await;
}

struct Connection {
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    place: ConnectionPlace,
    /// Its seat at the gate.
    turns: Turns,
    channel: ServerChannel,
    /// From the moment the channel is open.
    link: Option<Link>,
    inbox: Inbox,
    outbox: Outbox,
    /// Reads of this turn that have to wait for managers.
    batch: Batch,
    sender: OutboundSender,
    opening: Option<JoinHandle<Result<Opened, JoinError>>>,
    /// The time of this turn.
    now: Now,
}

/// What woke a connection up.
enum Wake {
    Socket(io::Result<tokio::io::Ready>),
    Answer(Outbound),
    Opened(Opened),
    Granted,
    Deadline,
    Look,
}

impl Connection {
    async fn run(&mut self, mut answers: UnboundedReceiver<Outbound>) -> End {
        let mut stop = self.shared.stopping.subscribe();
        let mut evidence = self.shared.admission.classifiers().changes();
        let deadline = tokio::time::sleep_until(self.deadline());
        tokio::pin!(deadline);
        loop {
            // A socket that always has something must not hide these.
            if stop.has_changed().unwrap_or(true) {
                return End::Stopping;
            }
            if self.place.was_asked()
                && let Some(end) = self.let_go()
            {
                return end;
            }
            if evidence.has_changed().unwrap_or(false) {
                evidence.mark_unchanged();
                if let Err(end) = self.classify_again().await {
                    return end;
                }
            }
            if let Err(end) = self.take_answers(&mut answers) {
                return end;
            }
            match self.take_turn() {
                Ok(false) => {}
                Ok(true) => {
                    // The next turn is ours already. Sockets are looked at in between.
                    tokio::task::yield_now().await;
                    self.now = self.shared.clock.now();
                    continue;
                }
                Err(end) => return end,
            }
            let wanted = self.deadline();
            if deadline.deadline() != wanted {
                deadline.as_mut().reset(wanted);
            }
            let interest = self.interest();
            let waiting = self.turns.is_waiting();
            let congested = self.outbox.is_congested();
            let wake = tokio::select! {
                biased;
                () = self.turns.granted(), if waiting => Wake::Granted,
                ready = ready(&self.stream, interest) => Wake::Socket(ready),
                Some(answer) = answers.recv(), if !congested => Wake::Answer(answer),
                outcome = opened(&mut self.opening) => Wake::Opened(outcome),
                () = &mut deadline => Wake::Deadline,
                // What these say is seen at the top of the loop.
                Ok(()) = wait_for_change(&mut evidence) => Wake::Look,
                _ = wait_for_change(&mut stop) => Wake::Look,
                () = self.place.asked_to_leave() => Wake::Look,
            };
            self.now = self.shared.clock.now();
            let handled = match wake {
                Wake::Opened(opened) => self.opened(opened).await,
                wake => self.handle(wake),
            };
            if let Err(end) = handled {
                return end;
            }
        }
    }

    fn handle(&mut self, wake: Wake) -> Result<(), End> {
        match wake {
            Wake::Socket(Err(error)) => Err(End::Socket(Err(error))),
            Wake::Socket(Ok(ready)) if ready.is_readable() || ready.is_read_closed() => self.read(),
            Wake::Socket(Ok(_)) | Wake::Granted | Wake::Look | Wake::Opened(_) => Ok(()),
            Wake::Answer(answer) => self.answer(answer),
            Wake::Deadline => match self.channel.handle_timeout(self.now, self.outbox.buffer()) {
                Some(closed) => Err(End::Channel(closed)),
                None => Ok(()),
            },
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

    /// What the socket is watched for: input unless the channel is being opened, a turn is waited for or too many answers
    /// wait; room for output when some waits.
    fn interest(&mut self) -> Option<Interest> {
        let reading = self.opening.is_none() && !self.outbox.is_congested() && !self.turns.is_waiting();
        match (reading, self.outbox.is_empty()) {
            (true, true) => Some(Interest::READABLE),
            (true, false) => Some(Interest::READABLE | Interest::WRITABLE),
            (false, false) => Some(Interest::WRITABLE),
            (false, true) => None,
        }
    }

    fn read(&mut self) -> Result<(), End> {
        if self.opening.is_some() || self.turns.is_waiting() {
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
}

/// Ready when the value is not the one that was seen last; it stays unseen.
async fn wait_for_change<T>(receiver: &mut watch::Receiver<T>) -> Result<(), watch::error::RecvError> {
    let changed = receiver.changed().await;
    receiver.mark_changed();
    changed
}

async fn ready(stream: &TcpStream, interest: Option<Interest>) -> io::Result<tokio::io::Ready> {
    match interest {
        Some(interest) => stream.ready(interest).await,
        None => pending().await,
    }
}

async fn opened(opening: &mut Option<JoinHandle<Result<Opened, JoinError>>>) -> Opened {
    match opening {
        Some(task) => match task.await.and_then(|opened| opened) {
            Ok(opened) => opened,
            Err(error) => {
                // The work panicked: the runtime has reported it.
                tracing::error!(%error, "opening a secure channel failed");
                None
            }
        },
        None => pending().await,
    }
}
