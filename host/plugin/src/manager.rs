//! A plugin as the address space sees it: one `NodeManager` over all its instances and generations.
//!
//! Owns the route to the instance that serves. It must not know how instances come and go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use backplane_nodes::{BoxFuture, CallContext, CallOutcome, Caller, Facets, Fault, NodeManager, WriteOperation};
use backplane_types::{DataValue, NodeId, Now, StatusCode, Variant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::actor::{Envelope, Reply, Work};
use crate::counters::Counters;
use crate::demand::Watched;
use crate::state::{Cancelled, Clock};

/// See the module text.
pub(crate) struct PluginManager {
    name: Arc<str>,
    clock: Clock,
    counters: Arc<Counters>,
    route: ArcSwapOption<mpsc::Sender<Envelope>>,
    /// Kept while nothing serves: a plugin that is away has not lost its abilities, it does not answer.
    facets: ArcSwap<Facets>,
    /// What somebody monitors. It outlives instances: a new one is told all of it.
    watched: watch::Sender<Watched>,
}

/// Tells the guest, when it asks, that the caller has gone.
struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl PluginManager {
    pub(crate) fn new(name: Arc<str>, clock: Clock, counters: Arc<Counters>) -> Self {
        Self {
            name,
            clock,
            counters,
            route: ArcSwapOption::empty(),
            facets: ArcSwap::from_pointee(Facets::default()),
            watched: watch::Sender::new(Watched::default()),
        }
    }

    /// Sends calls to this mailbox from now on. The old one gets no more, and ends when it is empty.
    pub(crate) fn connect(&self, mailbox: mpsc::Sender<Envelope>, facets: Facets) {
        self.take_up(facets);
        self.route.store(Some(Arc::new(mailbox)));
    }

    /// Another generation is behind the same mailbox.
    pub(crate) fn take_up(&self, facets: Facets) {
        self.facets.store(Arc::new(facets));
    }

    /// What somebody monitors, now and later.
    pub(crate) fn watched(&self) -> watch::Receiver<Watched> {
        self.watched.subscribe()
    }

    /// Nothing serves.
    pub(crate) fn disconnect(&self) {
        self.route.store(None);
    }

    /// Lets the instance that serves die when its turn comes.
    pub(crate) fn break_it(&self) {
        let now = (self.clock)();
        let context = call_of_the_host(now, Duration::from_secs(60));
        if let Some(mailbox) = &*self.route.load() {
            // A mailbox that is full is one that dies of something else.
            let _ = mailbox.try_send(Envelope {
                context,
                cancelled: Cancelled::default(),
                work: Work::Break,
            });
        }
    }

    async fn ask<T>(
        &self,
        call: &CallContext,
        unknown: StatusCode,
        work: impl FnOnce(Reply<T>) -> Work,
    ) -> Result<T, Fault> {
        let away = || Fault::new(StatusCode::BAD_NO_COMMUNICATION, "the plugin does not run");
        let cancelled = Cancelled::new(AtomicBool::new(false));
        let _guard = CancelOnDrop(Arc::clone(&cancelled));
        let (reply, answer) = oneshot::channel();
        {
            // Held no longer than this: a mailbox ends with its last sender.
            let mailbox = self.route.load();
            let mailbox = mailbox.as_ref().ok_or_else(away)?;
            let envelope = Envelope {
                context: call.clone(),
                cancelled,
                work: work(reply),
            };
            mailbox.try_send(envelope).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => {
                    self.counters.turned_away.one();
                    Fault::new(StatusCode::BAD_SERVER_TOO_BUSY, "the plugin's mailbox is full")
                }
                mpsc::error::TrySendError::Closed(_) => away(),
            })?;
        }
        let left = call.deadline.saturating_sub((self.clock)().mono);
        match tokio::time::timeout(left, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Fault::new(unknown, "the plugin died before it answered")),
            Err(_) => Err(Fault::new(
                StatusCode::BAD_TIMEOUT,
                "the plugin did not answer before the deadline",
            )),
        }
    }
}

fn call_of_the_host(now: Now, bound: Duration) -> CallContext {
    CallContext {
        caller: Arc::new(Caller::anonymous()),
        deadline: now.mono.saturating_add(bound),
        deadline_utc: now.utc.saturating_add(bound),
        trace_parent: None,
        internal: true,
    }
}

impl NodeManager for PluginManager {
    fn name(&self) -> &str {
        &self.name
    }

    fn facets(&self) -> Facets {
        **self.facets.load()
    }

    fn read<'a>(
        &'a self,
        call: &'a CallContext,
        tags: &'a [u32],
        max_age: f64,
    ) -> BoxFuture<'a, Result<Vec<DataValue>, Fault>> {
        Box::pin(async move {
            self.ask(call, StatusCode::BAD_NO_COMMUNICATION, |reply| Work::Read {
                tags: tags.to_vec(),
                max_age,
                reply,
                home: Handle::try_current().ok(),
            })
            .await
        })
    }

    fn write<'a>(
        &'a self,
        call: &'a CallContext,
        writes: Vec<WriteOperation>,
    ) -> BoxFuture<'a, Result<Vec<StatusCode>, Fault>> {
        Box::pin(async move {
            self.ask(call, StatusCode::BAD_UNEXPECTED_ERROR, |reply| Work::Write {
                writes,
                reply,
            })
            .await
        })
    }

    fn call<'a>(
        &'a self,
        call: &'a CallContext,
        object: &'a NodeId,
        tag: u32,
        inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        Box::pin(async move {
            let object = object.clone();
            self.ask(call, StatusCode::BAD_UNEXPECTED_ERROR, |reply| Work::Call {
                object,
                tag,
                inputs,
                reply,
            })
            .await
        })
    }

    fn watched(&self, tags: Arc<BTreeMap<u32, f64>>) {
        self.watched.send_if_modified(|old| {
            let changed = *old != tags;
            if changed {
                *old = tags;
            }
            changed
        });
    }

    fn misbehaved(&self, detail: &str) {
        self.counters.misbehaviour.one();
        tracing::warn!(target: "plugin", plugin = &*self.name, "{detail}");
    }
}
