//! Accepts connections, as many as the limit allows.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::connection;
use crate::shared::Shared;

/// Pause after accept failed for want of descriptors or memory, so that it is not tried in a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How many connections there are.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: AtomicUsize,
    next: AtomicU64,
    refused: AtomicU64,
}

/// One connection's place; given back when dropped.
struct Place(Arc<Shared>);

impl Place {
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        let limit = shared.limits.connections as usize;
        let open = &shared.connections.open;
        let taken = open.try_update(Ordering::AcqRel, Ordering::Acquire, |open| (open < limit).then_some(open + 1));
        taken.ok().map(|_| Self(Arc::clone(shared)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Accepts until the server stops, then waits for the connections to end, `drain` at the longest.
pub(crate) async fn run(shared: Arc<Shared>, listener: TcpListener, drain: Duration) {
    let mut stop = shared.stopping.subscribe();
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let Some(place) = Place::take(&shared) else {
                        let refused = shared.connections.refused.fetch_add(1, Ordering::Relaxed);
                        if refused.is_power_of_two() || refused == 0 {
                            tracing::warn!(%peer, limit = shared.limits.connections, refused = refused + 1, "too many connections (limits.connections)");
                        }
                        continue;
                    };
                    // Answers leave in one write a turn; holding them back would only add delay.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "no TCP_NODELAY");
                    }
                    let number = shared.connections.next.fetch_add(1, Ordering::Relaxed) + 1;
                    let shared = Arc::clone(&shared);
                    tasks.spawn(async move {
                        connection::serve(shared, stream, peer, number).await;
                        drop(place);
                    });
                }
                Err(error) => accept_failed(&error).await,
            },
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                if let Err(error) = ended && error.is_panic() {
                    tracing::error!(%error, "a connection's task panicked; its client is disconnected");
                }
            }
            _ = stop.changed() => break,
        }
    }
    drop(listener);
    let ended = tokio::time::timeout(drain, async { while tasks.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!(connections = tasks.len(), "connections did not end in time and are cut");
        tasks.shutdown().await;
    }
}

async fn accept_failed(error: &io::Error) {
    match error.kind() {
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted => {}
        _ => {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}
