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

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use backplane_channel::ServerChannel;
use backplane_types::Now;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Sleep;

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
        classified: shared.admission.classifiers().generation(),
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
    /// The classifiers' generation that the channel's owners are of.
    classified: u64,
    /// The time of this turn.
    now: Now,
}

/// What woke a connection up.
enum Wake {
    /// Bytes are in the inbox.
    Read,
    /// The peer closed the socket, or it failed.
    Ended(io::Result<()>),
    /// The socket takes bytes again.
    Writable,
    Answer(Outbound),
    Opened(Opened),
    Granted,
    Deadline,
    /// Somebody has asked for something; see the top of the loop.
    Asked,
}

impl Connection {
    async fn run(&mut self, mut answers: UnboundedReceiver<Outbound>) -> End {
        let deadline = tokio::time::sleep_until(self.deadline());
        tokio::pin!(deadline);
        loop {
            // A socket that always has something must not hide this.
            if self.place.was_asked()
                && let Err(end) = Box::pin(self.asked()).await
            {
                return self.last_answers(end, &mut answers);
            }
            if let Err(end) = self.take_answers(&mut answers) {
                return end;
            }
            let next = match self.take_turn() {
                Ok(true) => self.next_turn().await,
                more => more,
            };
            match next {
                Ok(true) => continue,
                Ok(false) => {}
                Err(end) => return end,
            }
            let wanted = self.deadline();
            if deadline.deadline() != wanted {
                deadline.as_mut().reset(wanted);
            }
            let wake = poll_fn(|cx| self.poll_wake(cx, deadline.as_mut(), &mut answers)).await;
            self.now = self.shared.clock.now();
            let handled = match wake {
                // Boxed, as it is rare and large: an idle connection's task is not to have room for it.
                Wake::Opened(opened) => Box::pin(self.opened(opened)).await,
                wake => self.handle(wake),
            };
            if let Err(end) = handled {
                return end;
            }
        }
    }

    /// A server that stops has answered what waited: that is still sent.
    fn last_answers(&mut self, end: End, answers: &mut UnboundedReceiver<Outbound>) -> End {
        if matches!(end, End::Stopping) {
            while let Ok(answer) = answers.try_recv() {
                if let Err(end) = self.answer(answer) {
                    return end;
                }
            }
        }
        end
    }

    /// Waits for whatever comes first. One poll of everything, and no waiter that has to be made and taken back: this runs
    /// once for each receive.
    fn poll_wake(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Pin<&mut Sleep>,
        answers: &mut UnboundedReceiver<Outbound>,
    ) -> Poll<Wake> {
        // A turn that was granted just now is one to be taken as well.
        if !self.turns.is_away() {
            if self.turns.poll_granted(cx).is_ready() {
                return Poll::Ready(Wake::Granted);
            }
        } else if self.opening.is_none()
            && !self.outbox.is_congested()
            && let Poll::Ready(wake) = self.poll_read(cx)
        {
            return Poll::Ready(wake);
        }
        if !self.outbox.is_empty() {
            match self.stream.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(Wake::Writable),
                Poll::Ready(Err(error)) => return Poll::Ready(Wake::Ended(Err(error))),
                Poll::Pending => {}
            }
        }
        if !self.outbox.is_congested()
            && let Poll::Ready(Some(answer)) = answers.poll_recv(cx)
        {
            return Poll::Ready(Wake::Answer(answer));
        }
        if let Some(task) = &mut self.opening
            && let Poll::Ready(opened) = Pin::new(task).poll(cx)
        {
            return Poll::Ready(Wake::Opened(opened_or_failed(opened)));
        }
        if deadline.poll(cx).is_ready() {
            return Poll::Ready(Wake::Deadline);
        }
        self.place.poll_asked(cx).map(|()| Wake::Asked)
    }

    /// Takes what the socket has. Reading less than there is room for tells the runtime that there is nothing more, which
    /// saves a system call.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Wake> {
        let read = pin!(self.stream.read_buf(self.inbox.room())).poll(cx);
        let wake = match read {
            Poll::Ready(Ok(0)) => Wake::Ended(Ok(())),
            Poll::Ready(Ok(_)) => Wake::Read,
            Poll::Ready(Err(error)) => Wake::Ended(Err(error)),
            Poll::Pending => {
                self.inbox.release_if_empty();
                return Poll::Pending;
            }
        };
        Poll::Ready(wake)
    }

    /// Somebody wants something of this connection: the server stops, a classifier has changed, another connection needs the
    /// place or the channel.
    async fn asked(&mut self) -> Result<(), End> {
        if *self.shared.stopping.borrow() {
            return Err(End::Stopping);
        }
        if let Some(end) = self.let_go() {
            return Err(end);
        }
        let generation = self.shared.admission.classifiers().generation();
        if self.classified != generation {
            self.classified = generation;
            self.classify_again().await?;
        }
        Ok(())
    }

    fn handle(&mut self, wake: Wake) -> Result<(), End> {
        match wake {
            Wake::Ended(result) => Err(End::Socket(result)),
            Wake::Read | Wake::Writable | Wake::Granted | Wake::Asked | Wake::Opened(_) => Ok(()),
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

fn opened_or_failed(opened: Result<Result<Opened, JoinError>, JoinError>) -> Opened {
    opened.and_then(|opened| opened).unwrap_or_else(|error| {
        // The work panicked: the runtime has reported it.
        tracing::error!(%error, "opening a secure channel failed");
        None
    })
}
