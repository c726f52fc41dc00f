//! What all themes need: a server process that ends with its test, a peer that may send anything, and a client that behaves.

mod client;
mod flood;
mod guest;
mod peer;
mod raw;
mod secured;
mod server;

pub(crate) use client::{body, connect, fault_of, head, open, read_status, well_behaved};
pub(crate) use flood::{Flood, Latency, latency};
pub(crate) use guest::{GUESTS, Sleeper, guest, waiting_read, with_guests};
pub(crate) use peer::{Answer, Peer, cached_read};
pub(crate) use raw::{Raw, activate_session, create_session, hello, open_chunk, open_request};
pub(crate) use secured::{connect_secured, identity};
pub(crate) use server::{Place, Reachable, Server, Usage, binary, run};

use std::time::Duration;

/// How long a test waits for what must come, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Tests that need the machine for themselves, floods and measurements of time, hold this one after the other.
pub(crate) async fn alone() -> tokio::sync::MutexGuard<'static, ()> {
    static MACHINE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    MACHINE.lock().await
}

/// Bytes that look random and are the same in every run (a linear congruential generator).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}
