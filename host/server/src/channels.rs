//! Secure channels that may go on over another connection (Part 6 6.7.2.4 and 7.1 of version 1.04): those that have a
//! connection, and those whose connection broke.
//!
//! Owns who is asked for a channel. What a channel proves before it moves, and in which order it does, is the channel
//! crate's. Only channels with security are in here: without, nothing would prove that it is the same client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_channel::{ChannelError, ChannelEvidence, DetachedChannel, OpenOutcome, OpenWork, Reattachment};
use backplane_crypto::SystemRandom;
use backplane_types::Now;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{JoinError, spawn_blocking};

use crate::admission::Leave;
use crate::link::Link;
use crate::shared::Shared;

/// How long a channel waits for its client to come back; never longer than its token lives.
const PARKED: Duration = Duration::from_secs(120);
/// How long a connection has to let its channel go.
const LETTING_GO: Duration = Duration::from_secs(1);

/// A channel without a connection, and what the server knew of it.
pub(crate) struct Parked {
    pub(crate) detached: DetachedChannel,
    pub(crate) moved: Moved,
}

/// What a channel takes along beside its cryptographic state.
pub(crate) struct Moved {
    /// The number under which sessions know the channel.
    pub(crate) number: u64,
    pub(crate) link: Link,
}

/// The wish that a connection gives its channel to another one.
pub(crate) struct Takeover {
    pub(crate) reattachment: Reattachment,
    pub(crate) reply: oneshot::Sender<Result<(Reattachment, Parked), Box<Refused>>>,
}

/// A wish that was not granted; nothing has happened to the channel.
pub(crate) struct Refused {
    pub(crate) reattachment: Reattachment,
    /// None: the channel is not known any more.
    pub(crate) error: Option<ChannelError>,
}

impl Refused {
    fn outcome(self) -> OpenOutcome {
        match self.error {
            Some(error) => self.reattachment.refuse(error),
            None => self.reattachment.refuse_unknown(),
        }
    }
}

/// Boxed, as a request is large.
pub(crate) fn refused(reattachment: Reattachment, error: Option<ChannelError>) -> Box<Refused> {
    Box::new(Refused { reattachment, error })
}

enum Place {
    Connected {
        evidence: Arc<ChannelEvidence>,
        leave: Arc<Leave>,
    },
    Parked {
        until: Duration,
        parked: Box<Parked>,
    },
}

/// See the module text.
#[derive(Default)]
pub(crate) struct Channels(Mutex<HashMap<u32, Place>>);

impl Channels {
    /// A channel with security has a connection now.
    pub(crate) fn connected(&self, evidence: &Arc<ChannelEvidence>, leave: &Arc<Leave>) {
        if !evidence.policy.is_none() {
            let place = Place::Connected {
                evidence: Arc::clone(evidence),
                leave: Arc::clone(leave),
            };
            self.0.lock().insert(evidence.channel_id, place);
        }
    }

    /// The channel is over, if this is still its connection.
    pub(crate) fn remove(&self, channel: u32, from: &Arc<Leave>) {
        let mut places = self.0.lock();
        if matches!(places.get(&channel), Some(Place::Connected { leave, .. }) if Arc::ptr_eq(leave, from)) {
            places.remove(&channel);
        }
    }

    /// The connection broke; the client may come back for its channel. At most `limit` channels wait: the one that would be
    /// over first makes room.
    pub(crate) fn park(&self, now: Now, parked: Parked, limit: usize) {
        let channel = parked.detached.evidence().channel_id;
        let until = parked.detached.end().min(now.mono.saturating_add(PARKED));
        let mut places = self.0.lock();
        places.retain(|_, place| !matches!(place, Place::Parked { until, .. } if *until <= now.mono));
        let ends = places.iter().filter_map(|(id, place)| match place {
            Place::Parked { until, .. } => Some((*until, *id)),
            Place::Connected { .. } => None,
        });
        let ends: Vec<(Duration, u32)> = ends.collect();
        if ends.len() >= limit
            && let Some((_, first)) = ends.into_iter().min()
        {
            places.remove(&first);
        }
        let parked = Box::new(parked);
        places.insert(channel, Place::Parked { until, parked });
    }

    fn evidence(&self, channel: u32) -> Option<Arc<ChannelEvidence>> {
        match self.0.lock().get(&channel)? {
            Place::Connected { evidence, .. } => Some(Arc::clone(evidence)),
            Place::Parked { parked, .. } => Some(Arc::clone(parked.detached.evidence())),
        }
    }

    /// Takes a channel from where it is. None: its connection ended in the middle of it.
    async fn take(&self, now: Now, reattachment: Reattachment) -> Option<Result<(Reattachment, Parked), Box<Refused>>> {
        let channel = reattachment.channel_id();
        let (reply, answer) = oneshot::channel();
        let leave = {
            let mut places = self.0.lock();
            match places.get(&channel) {
                None => {
                    return Some(Err(refused(reattachment, None)));
                }
                Some(Place::Parked { parked, until }) => {
                    if *until <= now.mono {
                        places.remove(&channel);
                        return Some(Err(refused(reattachment, None)));
                    }
                    if let Err(error) = parked.detached.admits(now, &reattachment) {
                        return Some(Err(refused(reattachment, Some(error))));
                    }
                    return match places.remove(&channel) {
                        Some(Place::Parked { parked, .. }) => Some(Ok((reattachment, *parked))),
                        _ => None,
                    };
                }
                Some(Place::Connected { leave, .. }) => Arc::clone(leave),
            }
        };
        leave.ask_for_channel(Takeover { reattachment, reply });
        match tokio::time::timeout(LETTING_GO, answer).await {
            Ok(answer) => answer.ok(),
            // It has not even looked: take the wish back.
            Err(_) => leave
                .takeover()
                .map(|takeover| Err(refused(takeover.reattachment, None))),
        }
    }
}

/// What came of an OpenSecureChannel request: the outcome for the channel core, and what a channel that came from another
/// connection brings along. None when the channel's old connection ended in the middle of it.
pub(crate) type Opened = Option<(OpenOutcome, Option<Box<Moved>>)>;

/// Runs an OpenSecureChannel request on blocking threads.
///
/// # Errors
/// When that panicked.
pub(crate) async fn open(shared: Arc<Shared>, work: OpenWork) -> Result<Opened, JoinError> {
    let known = work.reattaches().and_then(|channel| shared.channels.evidence(channel));
    let Some(evidence) = known else {
        let outcome =
            spawn_blocking(move || work.run(&shared.identity, shared.trust.as_ref(), &mut SystemRandom)).await?;
        return Ok(Some((outcome, None)));
    };
    let own = Arc::clone(&shared);
    let verified = spawn_blocking(move || work.verify(&evidence, &own.identity, own.trust.as_ref(), &mut SystemRandom));
    let reattachment = match verified.await? {
        Ok(reattachment) => reattachment,
        Err(outcome) => return Ok(Some((outcome, None))),
    };
    match shared.channels.take(shared.clock.now(), reattachment).await {
        None => Ok(None),
        Some(Err(refused)) => Ok(Some((refused.outcome(), None))),
        Some(Ok((reattachment, parked))) => {
            let Parked { detached, moved } = parked;
            let completed = spawn_blocking(move || {
                reattachment.complete(shared.clock.now(), detached, &shared.identity, &mut SystemRandom)
            });
            Ok(Some((completed.await?, Some(Box::new(moved)))))
        }
    }
}
