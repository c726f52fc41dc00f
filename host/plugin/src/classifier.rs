//! All classifiers of a server as one: who is asked, in which order, and what counts as an answer.
//!
//! Owns the chain of classifiers that callers ask, its generation, and the rules on what an answer may be. It must not know how an instance runs, nor what
//! becomes of a verdict.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use crate::counters::Counters;
use crate::evidence::PeerEvidence;

/// Bytes of an owner key.
pub(crate) const MAX_KEY: usize = 256;

/// What a classifier takes a peer for. Weights and limits come from the operator's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Standing {
    /// Not authenticated yet.
    Bootstrap = 0,
    /// Has an open channel.
    Established = 1,
    /// Was here before and comes back.
    Reconnect = 2,
    /// One of the owners that the operator has named.
    Trusted = 3,
    /// Ends work rather than starts it.
    Control = 4,
}

impl Standing {
    /// By the number in the contract.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Bootstrap,
            1 => Self::Established,
            2 => Self::Reconnect,
            3 => Self::Trusted,
            4 => Self::Control,
            _ => return None,
        })
    }
}

/// The opinion of a classifier.
#[derive(Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The owner, 1 to 256 bytes, without any prefix. Sensitive: not for logs, metrics or errors.
    pub key: String,
    /// What it is taken for.
    pub class: Standing,
}

impl std::fmt::Debug for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verdict")
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

/// Why there is no answer. The peer is to be refused, whichever it is: "no opinion" is not among these. The texts hold no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassifyError {
    /// A file of this name is in the folder, and nothing serves.
    #[error("the classifier {classifier} does not run: {reason}")]
    Down {
        /// Which one.
        classifier: Arc<str>,
        /// Why not.
        reason: Arc<str>,
    },
    /// It trapped over this question, or over one before it.
    #[error("the classifier {classifier} died: {reason}")]
    Died {
        /// Which one.
        classifier: Arc<str>,
        /// Over what.
        reason: Arc<str>,
    },
    /// No answer within `limits.classify`.
    #[error("the classifier {classifier} did not answer in time")]
    TimedOut {
        /// Which one.
        classifier: Arc<str>,
    },
    /// Too many questions wait for it.
    #[error("the mailbox of the classifier {classifier} is full")]
    Busy {
        /// Which one.
        classifier: Arc<str>,
    },
    /// It answered that it cannot tell.
    #[error("the classifier {classifier} answered a fault: {reason}")]
    Fault {
        /// Which one.
        classifier: Arc<str>,
        /// In its own words.
        reason: Arc<str>,
    },
    /// What it answered is no identity.
    #[error("the classifier {classifier} answered {problem}")]
    Invalid {
        /// Which one.
        classifier: Arc<str>,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl ClassifyError {
    /// One word, for metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Down { .. } => "down",
            Self::Died { .. } => "died",
            Self::TimedOut { .. } => "timed-out",
            Self::Busy { .. } => "busy",
            Self::Fault { .. } => "fault",
            Self::Invalid { .. } => "invalid",
        }
    }
}

/// What one question is answered.
pub(crate) type Answer = Result<Option<Verdict>, ClassifyError>;

/// Which function of the contract is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Ingress,
    Established,
}

/// One question to one classifier.
pub(crate) struct Question {
    pub(crate) asked: Asked,
    pub(crate) evidence: Arc<PeerEvidence>,
    /// Nobody waits any longer than this.
    pub(crate) until: Instant,
    pub(crate) reply: oneshot::Sender<Answer>,
}

/// Where questions for one classifier go.
#[derive(Clone)]
pub(crate) enum Route {
    Serving {
        mailbox: mpsc::Sender<Question>,
        /// From asking to the answer.
        wall: Duration,
        counters: Arc<Counters>,
    },
    /// Every question is answered with this reason.
    Down(Arc<str>),
}

/// One classifier among the others.
#[derive(Clone)]
struct Seat {
    /// Tells one set of code and settings of this classifier from the next.
    edition: u64,
    route: Route,
}

type Chain = BTreeMap<Arc<str>, Seat>;

struct Inner {
    chain: ArcSwap<Chain>,
    /// Held while the chain is replaced.
    writing: Mutex<()>,
    generation: AtomicU64,
    changed: watch::Sender<u64>,
}

/// All classifiers of a [`PluginHost`](crate::PluginHost), whichever there are at the time. A copy is the same.
///
/// They are asked in the order of their names until one has an opinion. Without any, the answer is `Ok(None)` at once. A classifier whose file is in the folder and
/// that cannot answer makes an error of every question that comes to it.
#[derive(Clone)]
pub struct Classifier {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Classifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classifier")
            .field("generation", &self.generation())
            .field("names", &self.inner.chain.load().keys().collect::<Vec<_>>())
            .finish()
    }
}

impl Classifier {
    pub(crate) fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                chain: ArcSwap::from_pointee(Chain::new()),
                writing: Mutex::new(()),
                generation: AtomicU64::new(0),
                changed: watch::Sender::new(0),
            }),
        }
    }

    /// Whether there is any, running or not.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !self.inner.chain.load().is_empty()
    }

    /// Counts what may change answers: a classifier that comes or goes, its code, its settings. It stays the same over the restart of one that has trapped. An
    /// answer is good for the same evidence as long as this is what it was before the question was asked.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.inner.generation.load(Ordering::Acquire)
    }

    /// Follows [`generation`](Self::generation).
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    /// Whose work a connection is before anything was said on it. `Ok(None)`: nobody has an opinion.
    ///
    /// # Errors
    /// See [`ClassifyError`]; the connection is to be refused.
    pub async fn ingress(&self, peer: Option<IpAddr>) -> Result<Option<Verdict>, ClassifyError> {
        if !self.is_configured() {
            return Ok(None);
        }
        let evidence = Arc::new(PeerEvidence::of_connection(peer));
        self.ask(Asked::Ingress, &evidence).await
    }

    /// Whose work the requests on an open channel are, with the live session if there is one. `Ok(None)`: nobody has an opinion.
    ///
    /// # Errors
    /// See [`ClassifyError`]; the request is to be refused.
    pub async fn established(&self, evidence: &Arc<PeerEvidence>) -> Result<Option<Verdict>, ClassifyError> {
        if !self.is_configured() {
            return Ok(None);
        }
        self.ask(Asked::Established, evidence).await
    }

    async fn ask(&self, asked: Asked, evidence: &Arc<PeerEvidence>) -> Answer {
        // One chain for the whole question: what is replaced meanwhile finishes it.
        let chain = self.inner.chain.load_full();
        for (name, seat) in chain.iter() {
            if let Some(verdict) = seat.ask(name, asked, evidence).await? {
                return Ok(Some(verdict));
            }
        }
        Ok(None)
    }

    /// Sends questions for `name` there from now on. `edition` tells code and settings apart.
    pub(crate) fn set(&self, name: &Arc<str>, edition: u64, route: Route) {
        self.change(|chain| {
            let before = chain.insert(Arc::clone(name), Seat { edition, route });
            before.is_none_or(|before| before.edition != edition)
        });
    }

    /// Nothing of this name is a classifier any more.
    pub(crate) fn remove(&self, name: &str) {
        self.change(|chain| chain.remove(name).is_some());
    }

    /// Replaces the chain, and counts if `change` says so.
    fn change(&self, change: impl FnOnce(&mut Chain) -> bool) {
        let _writing = self.inner.writing.lock();
        let mut chain = Chain::clone(&self.inner.chain.load());
        let counts = change(&mut chain);
        self.inner.chain.store(Arc::new(chain));
        if counts {
            // After the chain: whoever sees the new number asks the new chain.
            let generation = self.inner.generation.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
            self.inner.changed.send_replace(generation);
        }
    }
}

impl Seat {
    async fn ask(&self, name: &Arc<str>, asked: Asked, evidence: &Arc<PeerEvidence>) -> Answer {
        let classifier = || Arc::clone(name);
        let (mailbox, wall, counters) = match &self.route {
            Route::Serving {
                mailbox,
                wall,
                counters,
            } => (mailbox, *wall, counters),
            Route::Down(reason) => {
                return Err(ClassifyError::Down {
                    classifier: classifier(),
                    reason: Arc::clone(reason),
                });
            }
        };
        let died = || ClassifyError::Died {
            classifier: classifier(),
            reason: "before it answered".into(),
        };
        let now = Instant::now();
        let until = now.checked_add(wall).unwrap_or(now);
        let (reply, answer) = oneshot::channel();
        let question = Question {
            asked,
            evidence: Arc::clone(evidence),
            until,
            reply,
        };
        mailbox.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => {
                counters.turned_away.one();
                ClassifyError::Busy {
                    classifier: classifier(),
                }
            }
            TrySendError::Closed(_) => died(),
        })?;
        match timeout_at(until, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(died()),
            Err(_) => Err(ClassifyError::TimedOut {
                classifier: classifier(),
            }),
        }
    }
}
