//! Sockets: a listener on the loopback address and one task per connection.
//!
//! Owns the buffers. Everything that one receive brings is answered with one write.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::arguments::Arguments;
use crate::channel::{CHUNK, Channel, End, Message, Reply, error_message};

/// Bytes that are taken with one receive: room for the requests a client keeps outstanding, and at least two chunks.
const RECEIVE: usize = 4 * CHUNK;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1_024;
/// Pause when no connection can be accepted, such as without file descriptors.
const PAUSE: Duration = Duration::from_millis(10);

/// Answers the requests of one connection.
pub trait Responder: Send + 'static {
    /// Puts the body of one answer into `reply`.
    fn answer(&mut self, message: Message<'_>, reply: &mut Reply<'_>);
}

/// Listens on 127.0.0.1, prints `READY <url> pid=<pid>` and serves until the process is ended. `responder` is called with the URL first and
/// gives the responder that every connection gets a copy of.
///
/// # Errors
/// A text for people: no runtime, no socket, a `--port` that is none, or what `responder` says.
pub fn serve<R>(arguments: &Arguments, responder: impl FnOnce(&str) -> Result<R, String>) -> Result<(), String>
where
    R: Responder + Clone,
{
    let threads = arguments.threads();
    let port = arguments.port()?;
    let mut runtime = if threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    if threads > 1 {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = listen(port).map_err(|error| format!("127.0.0.1:{port}: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let url = format!("opc.tcp://{address}/");
        let responder = responder(&url)?;
        println!("READY {url} pid={}", std::process::id());
        loop {
            match listener.accept().await {
                Ok((stream, _peer)) => {
                    let responder = responder.clone();
                    tokio::spawn(async move {
                        // A connection that breaks is over, nothing more.
                        let _ = connection(stream, responder).await;
                    });
                }
                Err(error) => {
                    eprintln!("no connection accepted: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    })
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    socket.listen(BACKLOG)
}

async fn connection(mut stream: TcpStream, mut responder: impl Responder) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut channel = Channel::new();
    let mut input = vec![0; RECEIVE];
    let mut filled = 0_usize;
    let mut out = Vec::with_capacity(RECEIVE);
    loop {
        // Never empty: less than one chunk is kept of what came before.
        let room = input.get_mut(filled..).unwrap_or_default();
        let received = stream.read(room).await?;
        if received == 0 {
            return Ok(());
        }
        filled = filled.saturating_add(received);
        let end = match channel.handle(input.get(..filled).unwrap_or_default(), &mut responder, &mut out) {
            Ok(used) => {
                input.copy_within(used..filled, 0);
                filled = filled.saturating_sub(used);
                None
            }
            Err(end) => Some(end),
        };
        if let Some(End::Refused(status)) = end {
            error_message(status, &mut out);
        }
        stream.write_all(&out).await?;
        out.clear();
        if end.is_some() {
            return stream.shutdown().await;
        }
    }
}
