//! What changes about the server while it runs, and how ServerStatus shows it (Part 5, 12.10).

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use backplane_types::{
    BuildInfo, DateTime, ExtensionObject, LocalizedText, Now, ServerState, ServerStatusDataType, Variant,
};

/// A shutdown that was announced.
#[derive(Debug, Clone)]
struct Shutdown {
    /// When, on the monotonic clock of `Now`.
    at: Duration,
    reason: LocalizedText,
}

/// The state of the server, shared between the server, which sets it, and the Server object, which shows it.
#[derive(Debug)]
pub struct ServerStatus {
    state: AtomicI32,
    service_level: AtomicU8,
    shutdown: ArcSwapOption<Shutdown>,
    start_time: DateTime,
    build_info: BuildInfo,
}

impl ServerStatus {
    /// A server that runs, with ServiceLevel 255.
    #[must_use]
    pub fn new(start_time: DateTime, build_info: BuildInfo) -> Self {
        Self {
            state: AtomicI32::new(ServerState::RUNNING.0),
            service_level: AtomicU8::new(255),
            shutdown: ArcSwapOption::empty(),
            start_time,
            build_info,
        }
    }

    /// Sets State.
    pub fn set_state(&self, state: ServerState) {
        self.state.store(state.0, Ordering::Relaxed);
    }

    /// State.
    #[must_use]
    pub fn state(&self) -> ServerState {
        ServerState(self.state.load(Ordering::Relaxed))
    }

    /// Sets ServiceLevel (Part 4, 6.6.2.4.2).
    pub fn set_service_level(&self, level: u8) {
        self.service_level.store(level, Ordering::Relaxed);
    }

    /// ServiceLevel.
    #[must_use]
    pub fn service_level(&self) -> u8 {
        self.service_level.load(Ordering::Relaxed)
    }

    /// Announces a shutdown at a moment of the monotonic clock: State becomes Shutdown.
    pub fn announce_shutdown(&self, at: Duration, reason: LocalizedText) {
        self.shutdown.store(Some(Arc::new(Shutdown { at, reason })));
        self.set_state(ServerState::SHUTDOWN);
    }

    /// StartTime.
    #[must_use]
    pub fn start_time(&self) -> DateTime {
        self.start_time
    }

    /// BuildInfo.
    #[must_use]
    pub fn build_info(&self) -> &BuildInfo {
        &self.build_info
    }

    /// SecondsTillShutdown; 0 when none was announced.
    #[must_use]
    pub fn seconds_till_shutdown(&self, now: Now) -> u32 {
        self.shutdown.load().as_ref().map_or(0, |shutdown| {
            u32::try_from(shutdown.at.saturating_sub(now.mono).as_secs()).unwrap_or(u32::MAX)
        })
    }

    /// ShutdownReason.
    #[must_use]
    pub fn shutdown_reason(&self) -> LocalizedText {
        self.shutdown
            .load()
            .as_ref()
            .map_or(LocalizedText::NULL, |shutdown| shutdown.reason.clone())
    }

    /// The whole structure.
    #[must_use]
    pub fn value(&self, now: Now) -> Variant {
        Variant::from(ExtensionObject::from_structure(&ServerStatusDataType {
            start_time: self.start_time,
            current_time: now.utc,
            state: self.state(),
            build_info: self.build_info.clone(),
            seconds_till_shutdown: self.seconds_till_shutdown(now),
            shutdown_reason: self.shutdown_reason(),
        }))
    }
}
