//! What the fake host of this thread knows. One at a time, because a plugin has no handle to its host.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use super::space::Space;
use crate::{DateTime, Mark, NodeId, StatusCode, Update, Value};

thread_local! {
    static HOST: RefCell<State> = RefCell::new(State::default());
}

/// Runs something on the fake host of this thread.
pub(crate) fn with<R>(run: impl FnOnce(&mut State) -> R) -> R {
    HOST.with_borrow_mut(run)
}

/// Who makes the calls of a test.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Caller {
    /// The pseudonym of the session.
    pub client: String,
    /// The user.
    pub user: Option<String>,
    /// The roles.
    pub roles: Vec<String>,
    /// The locales.
    pub locales: Vec<String>,
}

/// What a classifier sees of a peer; see [`crate::Peer`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the same as the functions of Peer")]
pub struct PeerEvidence {
    pub address: Option<String>,
    pub endpoint_url: Option<String>,
    pub security_policy: Option<String>,
    pub security_mode: u32,
    pub application_uri: Option<String>,
    pub certificate_sha256: Option<Vec<u8>>,
    pub certificate_sha1: Option<Vec<u8>>,
    pub certificate: Option<Vec<u8>>,
    pub session: Option<String>,
    pub user_token_type: Option<u32>,
    pub user: Option<String>,
    pub roles: Vec<String>,
}

/// An event that the plugin emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The node it comes from.
    pub source: NodeId,
    /// Its type.
    pub event_type: NodeId,
    /// Its fields by browse path.
    pub fields: Vec<(String, Value)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Timer {
    pub(crate) token: u64,
    pub(crate) due: f64,
    pub(crate) period: Option<f64>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) namespaces: Vec<String>,
    pub(crate) space: Space,
    pub(crate) timers: Vec<Timer>,
    /// Milliseconds since the test began.
    pub(crate) now: f64,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) store: BTreeMap<String, Vec<u8>>,
    pub(crate) logs: Vec<(u8, String)>,
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) events: Vec<Event>,
    pub(crate) caller: Caller,
    pub(crate) peer: Option<PeerEvidence>,
    /// The number of the call that runs; 0 between calls.
    pub(crate) running: u32,
    pub(crate) calls: u32,
    /// Tags published during the call that runs.
    pub(crate) published: HashSet<u32>,
}

impl Default for State {
    fn default() -> Self {
        State {
            namespaces: vec!["http://opcfoundation.org/UA/".to_owned()],
            space: Space::default(),
            timers: Vec::new(),
            now: 0.0,
            settings: BTreeMap::new(),
            secrets: BTreeMap::new(),
            store: BTreeMap::new(),
            logs: Vec::new(),
            metrics: BTreeMap::new(),
            events: Vec::new(),
            caller: Caller {
                client: "test".to_owned(),
                ..Caller::default()
            },
            peer: None,
            running: 0,
            calls: 0,
            published: HashSet::new(),
        }
    }
}

impl State {
    /// Tests begin on 2026-01-01.
    const BEGIN: DateTime = DateTime::from_unix_seconds(1_767_225_600);

    pub(crate) fn utc(&self) -> i64 {
        // A test that runs for longer than i64 ticks does not exist; the cast saturates anyway.
        Self::BEGIN.0.saturating_add((self.now * 10_000.0) as i64)
    }

    pub(crate) fn namespace(&mut self, uri: &str) -> u16 {
        let index = self
            .namespaces
            .iter()
            .position(|known| known == uri)
            .unwrap_or_else(|| {
                self.namespaces.push(uri.to_owned());
                self.namespaces.len() - 1
            });
        u16::try_from(index).expect("fewer than 65,536 namespaces")
    }

    pub(crate) fn caller(&self, call: u32) -> Option<&Caller> {
        (call != 0 && call == self.running).then_some(&self.caller)
    }

    pub(crate) fn set_timer(&mut self, token: u64, delay: f64, repeat: bool) {
        self.timers.retain(|timer| timer.token != token);
        self.timers.push(Timer {
            token,
            due: self.now + delay,
            period: repeat.then_some(delay),
        });
    }

    /// Takes the timer that is due first, not after `end`, and moves the clock there.
    pub(crate) fn next_timer(&mut self, end: f64) -> Option<u64> {
        let first = self
            .timers
            .iter_mut()
            .filter(|timer| timer.due <= end)
            .min_by(|a, b| a.due.total_cmp(&b.due))?;
        let token = first.token;
        self.now = self.now.max(first.due);
        match first.period {
            Some(period) => first.due += period,
            None => self.timers.retain(|timer| timer.token != token),
        }
        Some(token)
    }

    pub(crate) fn publish(&mut self, update: &Update) -> Result<(), StatusCode> {
        let now = self.utc();
        let mut value = update.value.clone();
        if value.source_time == 0 {
            value.source_time = now;
        }
        self.space.set_by_tag(update.tag, value)?;
        self.published.insert(update.tag);
        Ok(())
    }

    pub(crate) fn degrade(&mut self, mark: &Mark) {
        let wanted: Option<HashSet<u32>> = mark.tags.as_ref().map(|tags| tags.iter().copied().collect());
        self.space.mark(wanted.as_ref(), StatusCode(mark.status));
    }
}
