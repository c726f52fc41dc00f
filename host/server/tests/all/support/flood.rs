//! A flood of Reads, and how long somebody else waits meanwhile.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::{Peer, Place, body, cached_read};

/// Reads that one connection has outstanding.
const OUTSTANDING: u32 = 1_000;
/// The id of the first.
const FIRST: u32 = 1_000_000;

/// A flood that goes on until it is stopped.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    connections: Vec<JoinHandle<()>>,
}

impl Flood {
    /// `connections` connections from one address, each with 1,000 Reads outstanding all the time. Returns when all of them have answers.
    pub(crate) async fn from(place: &Place, source: Ipv4Addr, connections: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let peer = Peer::from(place, source).await;
            tasks.push(tokio::spawn(pour(peer, Arc::clone(&stop), Arc::clone(&answered))));
        }
        let full = connections as u64 * u64::from(OUTSTANDING);
        while answered.load(Ordering::Relaxed) < full {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Self {
            stop,
            answered,
            connections: tasks,
        }
    }

    /// Reads answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for connection in self.connections {
            connection.await.unwrap();
        }
    }
}

async fn pour(mut peer: Peer, stop: Arc<AtomicBool>, answered: Arc<AtomicU64>) {
    let mut request = cached_read();
    request.request_header = peer.header(1, 0);
    let body = body(&request);
    let (mut next, mut wanted) = (FIRST, OUTSTANDING);
    let (mut bytes, mut part) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        bytes.clear();
        peer.raw.pipeline(next, wanted, &body, &mut bytes);
        peer.raw.send(&bytes).await;
        next += wanted;
        wanted = u32::try_from(peer.raw.count_messages(&mut part).await).unwrap();
        answered.fetch_add(wanted.into(), Ordering::Relaxed);
    }
}

/// How long single Reads take.
#[derive(Clone, Copy)]
pub(crate) struct Latency {
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
}

impl std::fmt::Debug for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "median {:?}, p99 {:?}", self.median, self.p99)
    }
}

/// Reads one value after the other from a thread of its own, so that it waits for nobody else of this process.
pub(crate) fn latency(place: &Place, source: Ipv4Addr, reads: usize) -> JoinHandle<Latency> {
    let place = place.clone();
    tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let mut peer = Peer::from(&place, source).await;
            let mut times = Vec::with_capacity(reads);
            for _ in 0..reads {
                let start = Instant::now();
                peer.read_cached().await;
                times.push(start.elapsed());
            }
            times.sort_unstable();
            Latency {
                median: times[reads / 2],
                p99: times[reads * 99 / 100],
            }
        })
    })
}
