//! Accepts connections, as many as the limit allows. When there are as many, the oldest one without an activated session
//! gives way to the next (Part 4 5.6.2.1), so that nobody keeps others out by holding connections.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::connection;
use crate::shared::Shared;

/// Pause after accept failed for want of descriptors or memory, so that it is not tried in a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections above the limit while those that have to give way are ending.
const ENDING: usize = 16;

/// The connections there are.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: AtomicUsize,
    next: AtomicU64,
    crowded: AtomicU64,
    /// How to ask each to give way, by number, which is by age. Those that were asked are not among them.
    live: Mutex<BTreeMap<u64, Arc<Notify>>>,
}

/// One connection's place; given back when dropped.
struct Place {
    shared: Arc<Shared>,
    number: u64,
}

impl Place {
    /// A place and the wish that its connection may end; none when nobody can give way.
    fn take(shared: &Arc<Shared>) -> Option<(Self, Arc<Notify>)> {
        let limit = shared.limits.connections as usize;
        let connections = &shared.connections;
        let most = limit.saturating_add(ENDING);
        let before = connections
            .open
            .try_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                (open < most).then_some(open + 1)
            })
            .ok()?;
        let number = connections.next.fetch_add(1, Ordering::Relaxed) + 1;
        let place = Self {
            shared: Arc::clone(shared),
            number,
        };
        if before >= limit && !make_room(shared) {
            return None;
        }
        let leave = Arc::new(Notify::new());
        connections.live.lock().insert(number, Arc::clone(&leave));
        Some((place, leave))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let connections = &self.shared.connections;
        connections.live.lock().remove(&self.number);
        connections.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Asks the oldest connection without an activated session to end. False when each has one.
fn make_room(shared: &Shared) -> bool {
    let used: HashSet<u64> = shared
        .sessions
        .lock()
        .iter()
        .filter_map(|session| session.snapshot())
        .map(|snapshot| snapshot.channel.0)
        .collect();
    let mut live = shared.connections.live.lock();
    let Some(oldest) = live.keys().find(|number| !used.contains(number)).copied() else {
        return false;
    };
    if let Some(leave) = live.remove(&oldest) {
        leave.notify_one();
    }
    true
}

/// Says in the log that the limit is reached, less and less often.
fn log_crowded(shared: &Shared, peer: SocketAddr) {
    let times = shared.connections.crowded.fetch_add(1, Ordering::Relaxed) + 1;
    if times.is_power_of_two() {
        tracing::warn!(%peer, limit = shared.limits.connections, times, "too many connections, each with a session (limits.connections): refused");
    }
}

/// Accepts until the server stops, then waits for the connections to end, `drain` at the longest.
pub(crate) async fn run(shared: Arc<Shared>, listener: TcpListener, drain: Duration) {
    let mut stop = shared.stopping.subscribe();
    let mut tasks = JoinSet::new();
    // Those that were asked to give way end soon; until then the next wait in the socket's queue.
    let most = (shared.limits.connections as usize).saturating_add(ENDING);
    loop {
        tokio::select! {
            accepted = listener.accept(), if tasks.len() < most => match accepted {
                Ok((stream, peer)) => {
                    let Some((place, leave)) = Place::take(&shared) else {
                        log_crowded(&shared, peer);
                        continue;
                    };
                    // Answers leave in one write a turn; holding them back would only add delay.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "no TCP_NODELAY");
                    }
                    let shared = Arc::clone(&shared);
                    tasks.spawn(async move {
                        connection::serve(shared, stream, peer, place.number, leave).await;
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
