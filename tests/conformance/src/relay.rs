//! A way to the server that loses things: a client goes through it, and the harness cuts its connections, or lets what the server
//! says next fall on the floor.
//!
//! Owns a listener and the connections through it. Knows nothing of OPC UA: what is dropped is whatever comes next, so a client has to
//! wait for all answers before it asks for that.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Bytes that are carried at a time.
const PIECE: usize = 64 * 1024;

/// What happens to the connections.
#[derive(Clone, Copy, Default)]
struct Orders {
    /// The next that the server says is dropped, and its connection with it.
    drop_next: bool,
    /// How many times all connections have been cut.
    cuts: u64,
}

/// A running relay; its connections end when it is dropped.
pub(crate) struct Relay {
    url: String,
    orders: Arc<watch::Sender<Orders>>,
    _runtime: Runtime,
}

impl Relay {
    /// A way to the server at `url` (`opc.tcp://HOST:PORT`, and a path perhaps) on a port of its own.
    pub(crate) fn start(url: &str) -> Result<Self, String> {
        let address = url.strip_prefix("opc.tcp://").unwrap_or(url);
        let address = address.split('/').next().unwrap_or(address).to_owned();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_io()
            .build()
            .map_err(|error| error.to_string())?;
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let orders = Arc::new(watch::Sender::new(Orders::default()));
        runtime.spawn(accept(listener, address, Arc::clone(&orders)));
        Ok(Self {
            url: format!("opc.tcp://127.0.0.1:{port}"),
            orders,
            _runtime: runtime,
        })
    }

    /// Where clients go.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The next that the server says to any client is dropped, then that connection is reset at both ends.
    pub(crate) fn drop_next(&self) {
        self.orders.send_modify(|orders| orders.drop_next = true);
    }

    /// All connections are reset at both ends, now. New ones may come.
    pub(crate) fn cut(&self) {
        self.orders.send_modify(|orders| orders.cuts += 1);
    }
}

async fn accept(listener: TcpListener, address: String, orders: Arc<watch::Sender<Orders>>) {
    while let Ok((near, _)) = listener.accept().await {
        // A server that is not there any more: the client finds its connection closed.
        if let Ok(far) = TcpStream::connect(&address).await {
            tokio::spawn(connection(near, far, Arc::clone(&orders)));
        }
    }
}

async fn connection(mut near: TcpStream, mut far: TcpStream, orders: Arc<watch::Sender<Orders>>) {
    match carry(&mut near, &mut far, &orders).await {
        // An end of one side, or an error there: the other one finds out when both are dropped.
        Ok(End::Closed) | Err(_) => {}
        Ok(End::Reset) => {
            for socket in [&near, &far] {
                if let Err(error) = socket.set_zero_linger() {
                    eprintln!("conformance: a connection is closed instead of reset: {error}");
                }
            }
        }
    }
}

/// Why a connection ends.
enum End {
    Closed,
    Reset,
}

async fn carry(near: &mut TcpStream, far: &mut TcpStream, orders: &watch::Sender<Orders>) -> std::io::Result<End> {
    let (mut up, mut down) = (vec![0; PIECE], vec![0; PIECE]);
    let mut news = orders.subscribe();
    let cuts = news.borrow().cuts;
    loop {
        tokio::select! {
            read = near.read(&mut up) => match read? {
                0 => return Ok(End::Closed),
                count => far.write_all(&up[..count]).await?,
            },
            read = far.read(&mut down) => match read? {
                0 => return Ok(End::Closed),
                _ if orders.send_if_modified(|orders| std::mem::take(&mut orders.drop_next)) => return Ok(End::Reset),
                count => near.write_all(&down[..count]).await?,
            },
            _ = news.changed() => if news.borrow_and_update().cuts != cuts {
                return Ok(End::Reset);
            },
        }
    }
}
