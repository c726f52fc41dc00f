//! Accepts connections: classified, counted against the rate and the plan, and served by a task of their own. When all
//! places are taken, the oldest connection without an activated session gives way to the next (Part 4 5.6.2.1), so that
//! nobody keeps others out by holding connections.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use backplane_queue::isolation::{Lease, Owner, RETRY_AFTER, Reason, Refused, Stage};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::admission::{ConnectionPlace, Leave};
use crate::connection::{self, Accepted};
use crate::shared::Shared;

/// Pause after accept failed for want of descriptors or memory, so that it is not tried in a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections above the limit while those that have to give way are ending.
const ENDING: usize = 16;

/// How long a new connection waits for the one that gives way.
const GIVING_WAY: Duration = Duration::from_secs(1);

/// The connections there are.
#[derive(Default)]
pub(crate) struct Connections {
    next: AtomicU64,
    refused: AtomicU64,
    /// How to ask each to give way, by number, which is by age. Those that were asked are not among them.
    live: Mutex<BTreeMap<u64, Arc<Leave>>>,
    /// How to tell all of them that there is something to look at.
    all: Mutex<HashMap<u64, Arc<Leave>>>,
    /// New ones that wait for a place, in the order in which they came: who comes last is the last one to be asked to leave.
    door: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
    /// Tells those that wait for a place that one has become free.
    pub(crate) room: Notify,
}

impl Connections {
    /// A number for a connection.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A connection is there.
    pub(crate) fn add(&self, number: u64, leave: &Arc<Leave>) {
        self.live.lock().insert(number, Arc::clone(leave));
        self.all.lock().insert(number, Arc::clone(leave));
    }

    /// Lets every connection look at what is asked of it.
    pub(crate) fn tell_all(&self) {
        let all: Vec<Arc<Leave>> = self.all.lock().values().cloned().collect();
        for leave in all {
            leave.tell();
        }
    }

    /// A connection has ended.
    pub(crate) fn remove(&self, number: u64) {
        self.live.lock().remove(&number);
        self.all.lock().remove(&number);
    }
}

/// Tells all connections when the server stops or a classifier has changed, until the server stops.
pub(crate) async fn spread_news(shared: Arc<Shared>) {
    let mut stop = shared.stopping.subscribe();
    let mut classifiers = shared.admission.classifiers().changes();
    loop {
        tokio::select! {
            Ok(()) = classifiers.changed() => {}
            _ = stop.changed() => {}
        }
        shared.connections.tell_all();
        if *stop.borrow() {
            return;
        }
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
        leave.ask();
    }
    true
}

/// Counts a new connection that waits.
struct Waiting<'a>(&'a Connections);

impl<'a> Waiting<'a> {
    fn new(connections: &'a Connections) -> Self {
        connections.waiting.fetch_add(1, Ordering::AcqRel);
        Self(connections)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Says in the log that connections are refused, less and less often.
fn log_refused(shared: &Shared, peer: SocketAddr, reason: &str) {
    let times = shared.connections.refused.fetch_add(1, Ordering::Relaxed) + 1;
    if times.is_power_of_two() {
        tracing::warn!(%peer, limit = shared.limits.connections, times, "connection refused: {reason}");
    }
}

/// The leases of a new connection. When there are as many as the plan allows, another one is asked to give way first.
async fn leases(shared: &Shared, owner: &Owner) -> Result<[Lease; 2], Refused> {
    let take = || {
        shared
            .admission
            .acquire_all(owner, [(Stage::Connection, 1), (Stage::Handshake, 1)])
    };
    let connections = &shared.connections;
    // Who comes while others wait does not get the place that is made for them.
    if connections.waiting.load(Ordering::Acquire) == 0 {
        match take() {
            Err(refused) if refused.reason == Reason::Capacity => {}
            result => return result,
        }
    }
    let _waiting = Waiting::new(connections);
    let room = async {
        let _first = connections.door.lock().await;
        loop {
            let free = connections.room.notified();
            tokio::pin!(free);
            free.as_mut().enable();
            match take() {
                Err(refused) if refused.reason == Reason::Capacity => {
                    if !make_room(shared) {
                        return Err(refused);
                    }
                }
                result => return result,
            }
            free.await;
        }
    };
    let busy = Refused {
        reason: Reason::Capacity,
        retry_after: RETRY_AFTER,
    };
    tokio::time::timeout(GIVING_WAY, room).await.unwrap_or(Err(busy))
}

/// Finds out whose connection it is and whether there is a place for it. `number` is its age: that of its arrival, whoever gets a
/// place first of those that wait.
async fn admit(shared: &Arc<Shared>, number: u64, peer: SocketAddr) -> Option<ConnectionPlace> {
    let admission = &shared.admission;
    let charge = match admission.classify_connection(peer.ip()).await {
        Ok(charge) => charge,
        Err(error) => {
            log_refused(shared, peer, &error.to_string());
            return None;
        }
    };
    let now = shared.clock.now().mono;
    if admission.rate().try_take(now, charge.owner()).is_err() {
        log_refused(shared, peer, "too many new connections (isolation.rate)");
        return None;
    }
    match leases(shared, charge.owner()).await {
        Ok(leases) => Some(ConnectionPlace::new(shared, number, charge, leases)),
        Err(refused) => {
            let reason = format!(
                "{} (limits.connections, isolation stages Connection and Handshake)",
                refused.reason
            );
            log_refused(shared, peer, &reason);
            None
        }
    }
}

async fn serve(shared: Arc<Shared>, number: u64, stream: TcpStream, peer: SocketAddr) {
    // Answers leave in one write a turn; holding them back would only add delay.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "no TCP_NODELAY");
    }
    // Boxed, so that the task of the connection has no room for it.
    if let Some(place) = Box::pin(admit(&shared, number, peer)).await {
        connection::serve(shared, Accepted { stream, peer, place }).await;
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
                    let number = shared.connections.number();
                    tasks.spawn(serve(Arc::clone(&shared), number, stream, peer));
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
