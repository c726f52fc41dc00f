//! Node managers whose every call is answered when the world says so: at once, late, never, or after their instance is gone.
//!
//! Owns the open calls. It must not know time or chance; the world decides.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use backplane_nodes::{BoxFuture, CallContext, CallOutcome, Facets, Fault, NodeManager, WriteOperation, Writes};
use backplane_types::{DataValue, NodeId, StatusCode, Variant};

/// How a generation tags its nodes: another one may give the same tag to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbering {
    pub(crate) count: u32,
    pub(crate) shift: u32,
}

impl Numbering {
    pub(crate) fn tag(self, number: u32) -> u32 {
        (number + self.shift) % self.count + 1
    }

    pub(crate) fn number(self, tag: u32) -> u32 {
        (tag + self.count * 2 - 1 - self.shift) % self.count
    }
}

/// What a call asks for.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    Read(Vec<u32>),
    Write(Vec<WriteOperation>),
    Invoke,
}

/// What it is answered.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Values(Vec<DataValue>),
    Statuses(Vec<StatusCode>),
    Outcome,
}

/// A call that a manager has not answered.
#[derive(Debug)]
pub(crate) struct Open {
    /// Which manager, and how the generation that was asked numbers its nodes.
    pub(crate) manager: usize,
    pub(crate) numbering: Numbering,
    pub(crate) asked: Asked,
    answer: Option<Result<Answer, Fault>>,
}

/// The open calls of all managers.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    next: u64,
    open: BTreeMap<u64, Open>,
    /// Calls that the world has not seen yet.
    fresh: Vec<u64>,
    /// Complaints of the host about answers.
    pub(crate) complaints: Vec<String>,
}

/// Most calls open at a time; more would be a leak.
pub(crate) const MAX_OPEN: usize = 512;

impl Calls {
    pub(crate) fn take_fresh(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.fresh)
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Open> {
        self.open.get(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn answer(&mut self, id: u64, answer: Result<Answer, Fault>) {
        // It may have been given up.
        if let Some(open) = self.open.get_mut(&id) {
            open.answer = Some(answer);
        }
    }

    /// The calls of a manager that wait for an answer.
    pub(crate) fn of(&self, manager: usize) -> Vec<u64> {
        self.open
            .iter()
            .filter(|(_, open)| open.manager == manager && open.answer.is_none())
            .map(|(id, _)| *id)
            .collect()
    }
}

/// Locks what all managers share; there is one thread.
pub(crate) fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call, seen from the host: ready when the world has answered it.
struct Answering {
    calls: Arc<Mutex<Calls>>,
    id: u64,
}

impl Future for Answering {
    type Output = Result<Answer, Fault>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut calls = lock(&self.calls);
        let answer = calls.open.get_mut(&self.id).and_then(|open| open.answer.take());
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        lock(&self.calls).open.remove(&self.id);
    }
}

/// One generation of a manager.
#[derive(Debug)]
pub(crate) struct Manager {
    pub(crate) number: usize,
    pub(crate) numbering: Numbering,
    pub(crate) calls: Arc<Mutex<Calls>>,
}

impl Manager {
    fn ask(&self, asked: Asked) -> Answering {
        let mut calls = lock(&self.calls);
        let id = calls.next;
        calls.next += 1;
        calls.fresh.push(id);
        calls.open.insert(
            id,
            Open {
                manager: self.number,
                numbering: self.numbering,
                asked,
                answer: None,
            },
        );
        Answering {
            calls: Arc::clone(&self.calls),
            id,
        }
    }
}

impl NodeManager for Manager {
    fn name(&self) -> &str {
        "simulated"
    }

    fn facets(&self) -> Facets {
        Facets {
            reader: true,
            writes: Writes::ToManager,
            methods: true,
            demand: false,
        }
    }

    fn read<'a>(
        &'a self,
        _call: &'a CallContext,
        tags: &'a [u32],
        _max_age: f64,
    ) -> BoxFuture<'a, Result<Vec<DataValue>, Fault>> {
        let answering = self.ask(Asked::Read(tags.to_vec()));
        Box::pin(async move {
            match answering.await? {
                Answer::Values(values) => Ok(values),
                _ => Err(Fault::new(StatusCode::BAD_INTERNAL_ERROR, "not an answer to a read")),
            }
        })
    }

    fn write<'a>(
        &'a self,
        _call: &'a CallContext,
        writes: Vec<WriteOperation>,
    ) -> BoxFuture<'a, Result<Vec<StatusCode>, Fault>> {
        let answering = self.ask(Asked::Write(writes));
        Box::pin(async move {
            match answering.await? {
                Answer::Statuses(statuses) => Ok(statuses),
                _ => Err(Fault::new(StatusCode::BAD_INTERNAL_ERROR, "not an answer to a write")),
            }
        })
    }

    fn call<'a>(
        &'a self,
        _call: &'a CallContext,
        _object: &'a NodeId,
        _tag: u32,
        _inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        let answering = self.ask(Asked::Invoke);
        Box::pin(async move { answering.await.map(|_| CallOutcome::default()) })
    }

    fn misbehaved(&self, detail: &str) {
        lock(&self.calls).complaints.push(detail.to_owned());
    }
}
