//! The connection task: the socket, the channel, and who waits for which response.
//!
//! Owns all three. Knows no service: bodies go out and come back as bytes. Reads and writes at once, so that a server that stops reading
//! until its responses are taken does not wait for ever.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use backplane_channel::{ClientChannel, ClientEvent, Mark};
use backplane_types::{DateTime, Now};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use crate::error::ClientError;

/// Most requests without a response.
const MAX_PENDING: usize = 65_536;
/// Unsent bytes above which no further request is taken.
const HIGH_WATER: usize = 1024 * 1024;
/// Requests taken before the socket is looked at again.
const BATCH: usize = 256;
/// Bytes of the input buffer to begin with.
const INPUT: usize = 256 * 1024;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, ClientError>>;

/// What the client wants of its task.
#[derive(Debug)]
pub(crate) enum Command {
    Call { body: Vec<u8>, reply: Reply<Vec<u8>> },
    Renew { reply: Reply<()> },
    Reconnect { old: OldConnection, reply: Reply<()> },
    Close { reply: oneshot::Sender<()> },
}

/// What becomes of the socket that a client leaves behind when it reconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldConnection {
    /// It is closed first, and the server sees that.
    Closed,
    /// It stays as it is until the new one works, as when the network broke and the server has not noticed.
    Unnoticed,
}

/// Both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Now {
        Now::new(self.start.elapsed(), DateTime::from_system_time(SystemTime::now()))
    }

    fn instant(self, mono: Duration) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.start.checked_add(mono).unwrap_or(self.start))
    }
}

/// See the module.
pub(crate) struct Connection {
    stream: TcpStream,
    state: State,
    address: String,
    connect_timeout: Duration,
}

/// Everything but the socket.
struct State {
    channel: ClientChannel,
    clock: Clock,
    input: Vec<u8>,
    filled: usize,
    out: Vec<u8>,
    sent: usize,
    pending: HashMap<u32, Reply<Vec<u8>>>,
    renewals: Vec<Reply<()>>,
    opened: bool,
}

impl Connection {
    /// Connects and opens the channel.
    pub(crate) async fn open(
        url: &str,
        channel: ClientChannel,
        clock: Clock,
        connect_timeout: Duration,
    ) -> Result<Self, ClientError> {
        let address = address(url)?;
        let stream = connect(&address).await?;
        let state = State {
            channel,
            clock,
            input: vec![0; INPUT],
            filled: 0,
            out: Vec::new(),
            sent: 0,
            pending: HashMap::new(),
            renewals: Vec::new(),
            opened: false,
        };
        let mut connection = Self {
            stream,
            state,
            address,
            connect_timeout,
        };
        let now = connection.state.clock.now();
        connection.state.channel.connect(now, &mut connection.state.out);
        connection.until_open().await?;
        Ok(connection)
    }

    async fn until_open(&mut self) -> Result<(), ClientError> {
        while !self.state.opened {
            self.step(None).await?;
        }
        Ok(())
    }

    /// Leaves the socket and goes on with the same channel over a new one. What was under way is lost.
    async fn reconnect(&mut self, old: OldConnection) -> Result<(), ClientError> {
        self.state.lose();
        if old == OldConnection::Closed {
            self.stream.shutdown().await?;
        }
        let stream = connect(&self.address).await?;
        let left = std::mem::replace(&mut self.stream, stream);
        let state = &mut self.state;
        state.channel.reconnect(state.clock.now(), &mut state.out)?;
        self.until_open().await?;
        drop(left);
        Ok(())
    }

    /// Serves commands until the client is closed or the connection is over.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<Command>, ended: Arc<OnceLock<ClientError>>) {
        let error = loop {
            match self.step(Some(&mut commands)).await {
                Ok(None) => {}
                Ok(Some(End::Close(reply))) => {
                    self.finish().await;
                    self.state.fail_all(&ClientError::Gone);
                    if let Some(reply) = reply {
                        // Nobody may be waiting any more.
                        let _ = reply.send(());
                    }
                    return;
                }
                Ok(Some(End::Reconnect(old, reply))) => {
                    let within = tokio::time::timeout(self.connect_timeout, self.reconnect(old));
                    let result = within.await.unwrap_or(Err(ClientError::Timeout));
                    // Nobody may be waiting any more.
                    drop(reply.send(result.clone()));
                    if let Err(error) = result {
                        break error;
                    }
                }
                Err(error) => break error,
            }
        };
        // Whoever comes later learns the same.
        let _ = ended.set(error.clone());
        self.finish().await;
        self.state.fail_all(&error);
        commands.close();
        while let Some(command) = commands.recv().await {
            // Whoever gave up waiting needs no answer.
            match command {
                Command::Call { reply, .. } => drop(reply.send(Err(error.clone()))),
                Command::Renew { reply } | Command::Reconnect { reply, .. } => drop(reply.send(Err(error.clone()))),
                Command::Close { reply } => drop(reply.send(())),
            }
        }
    }

    /// Closes the channel and writes what is left, if it can be written at once.
    async fn finish(&mut self) {
        let state = &mut self.state;
        state.channel.close(state.clock.now(), &mut state.out);
        let rest = state.out.get(state.sent..).unwrap_or_default();
        let farewell = async {
            self.stream.write_all(rest).await?;
            self.stream.shutdown().await
        };
        // The connection ends either way.
        let _ = tokio::time::timeout(Duration::from_secs(1), farewell).await;
    }

    /// Waits for one thing and does what follows from it.
    async fn step(&mut self, commands: Option<&mut mpsc::Receiver<Command>>) -> Result<Option<End>, ClientError> {
        let state = &mut self.state;
        let (mut read, mut write) = self.stream.split();
        let unsent = state.out.len().saturating_sub(state.sent);
        let deadline = state.channel.poll_timeout().map(|mono| state.clock.instant(mono));
        tokio::select! {
            got = read.read(state.input.get_mut(state.filled..).unwrap_or_default()) => {
                let got = got?;
                if got == 0 {
                    return Err(ClientError::Disconnected);
                }
                state.filled = state.filled.saturating_add(got);
                state.take_input()?;
            }
            wrote = write.write(state.out.get(state.sent..).unwrap_or_default()), if unsent > 0 => {
                state.sent = state.sent.saturating_add(wrote?);
                if state.sent >= state.out.len() {
                    state.out.clear();
                    state.sent = 0;
                }
            }
            command = receive(commands), if unsent < HIGH_WATER => match command {
                None => return Ok(Some(End::Close(None))),
                Some((command, commands)) => return Ok(state.take_commands(command, commands)),
            },
            () = sleep_until(deadline) => {
                let now = state.clock.now();
                if let Some(closed) = state.channel.handle_timeout(now, &mut state.out) {
                    return Err(ClientError::Closed(closed));
                }
            }
        }
        Ok(None)
    }
}

/// The connection is to end, and somebody may want to know when it has.
enum End {
    Close(Option<oneshot::Sender<()>>),
    /// Another one follows.
    Reconnect(OldConnection, Reply<()>),
}

async fn connect(address: &str) -> Result<TcpStream, ClientError> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The next command and where more may be; waits for ever if there is nobody to give any.
async fn receive(commands: Option<&mut mpsc::Receiver<Command>>) -> Option<(Command, &mut mpsc::Receiver<Command>)> {
    match commands {
        None => std::future::pending().await,
        Some(commands) => commands.recv().await.map(|command| (command, commands)),
    }
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl State {
    /// Takes a command and those that are there already, so that they leave in one write.
    fn take_commands(&mut self, first: Command, commands: &mut mpsc::Receiver<Command>) -> Option<End> {
        let mut command = first;
        let mut left = BATCH;
        loop {
            match command {
                Command::Call { body, reply } => self.call(&body, reply),
                Command::Renew { reply } => self.renew(reply),
                Command::Reconnect { old, reply } => return Some(End::Reconnect(old, reply)),
                Command::Close { reply } => return Some(End::Close(Some(reply))),
            }
            left = left.saturating_sub(1);
            if left == 0 {
                return None;
            }
            command = commands.try_recv().ok()?;
        }
    }

    fn call(&mut self, body: &[u8], reply: Reply<Vec<u8>>) {
        if self.pending.len() >= MAX_PENDING {
            // Calls that timed out left their places behind.
            self.pending.retain(|_, waiting| !waiting.is_closed());
        }
        let result = if self.pending.len() >= MAX_PENDING {
            Err(ClientError::TooManyRequests)
        } else {
            let mark = Mark::begin(&mut self.out);
            self.out.extend_from_slice(body);
            self.channel
                .finish_message(self.clock.now(), mark, &mut self.out)
                .map_err(ClientError::from)
        };
        match result {
            Ok(request_id) => drop(self.pending.insert(request_id, reply)),
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn renew(&mut self, reply: Reply<()>) {
        match self.channel.open(self.clock.now(), &mut self.out) {
            Ok(()) => self.renewals.push(reply),
            Err(error) => drop(reply.send(Err(error.into()))),
        }
    }

    fn take_input(&mut self) -> Result<(), ClientError> {
        let mut at = 0;
        let needed = loop {
            let now = self.clock.now();
            let Some(input) = self.input.get_mut(at..self.filled) else {
                break 0;
            };
            let (consumed, event) = self.channel.handle_input(now, input, &mut self.out);
            at = at.saturating_add(consumed);
            match event {
                ClientEvent::NeedMore { bytes } => break bytes,
                ClientEvent::Progress | ClientEvent::ReverseHello(_) => {}
                ClientEvent::Acknowledged => self.channel.open(now, &mut self.out)?,
                ClientEvent::Opened { .. } => {
                    self.opened = true;
                    for reply in self.renewals.drain(..) {
                        drop(reply.send(Ok(())));
                    }
                }
                ClientEvent::Message { request_id, body } => {
                    if let Some(reply) = self.pending.remove(&request_id) {
                        drop(reply.send(Ok(body.into_vec())));
                    }
                }
                ClientEvent::Aborted { request_id, status, .. } => {
                    if let Some(reply) = self.pending.remove(&request_id) {
                        drop(reply.send(Err(ClientError::Aborted(status))));
                    }
                }
                ClientEvent::Closed(closed) => return Err(ClientError::Closed(closed)),
            }
        };
        self.input.copy_within(at..self.filled, 0);
        self.filled = self.filled.saturating_sub(at);
        if needed > self.input.len() {
            // At most the receive buffer size of the limits.
            self.input.resize(needed, 0);
        }
        Ok(())
    }

    /// The socket is gone, with all that was under way on it.
    fn lose(&mut self) {
        self.fail_all(&ClientError::Disconnected);
        self.out.clear();
        self.sent = 0;
        self.filled = 0;
        self.opened = false;
    }

    fn fail_all(&mut self, error: &ClientError) {
        for (_, reply) in self.pending.drain() {
            drop(reply.send(Err(error.clone())));
        }
        for reply in self.renewals.drain(..) {
            drop(reply.send(Err(error.clone())));
        }
    }
}

/// `host:port` of an `opc.tcp` URL; 4840 if it names no port.
fn address(url: &str) -> Result<String, ClientError> {
    let wrong = || ClientError::Url(url.to_owned());
    let rest = url.strip_prefix("opc.tcp://").ok_or_else(wrong)?;
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() {
        return Err(wrong());
    }
    // The colons of an IPv6 address stand inside its brackets.
    let has_port = host.rsplit(']').next().unwrap_or_default().contains(':');
    Ok(if has_port {
        host.to_owned()
    } else {
        format!("{host}:4840")
    })
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_is_taken_from_the_url() {
        for (url, expected) in [
            ("opc.tcp://localhost:4841", "localhost:4841"),
            ("opc.tcp://localhost", "localhost:4840"),
            ("opc.tcp://127.0.0.1:1/a/b:c", "127.0.0.1:1"),
            ("opc.tcp://[::1]:4842/x", "[::1]:4842"),
            ("opc.tcp://[::1]", "[::1]:4840"),
        ] {
            assert_eq!(address(url).unwrap(), expected);
        }
        for url in ["", "localhost:4840", "https://localhost", "opc.tcp://", "opc.tcp:///x"] {
            assert!(address(url).is_err(), "{url}");
        }
    }
}
