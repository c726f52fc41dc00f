//! Reads that need managers, many at a time: each manager is asked once for everything that the Reads of a batch want of it.
//!
//! Owns which operation of which request is answered by which value of which call. The Reads of a batch are independent: each is answered as soon as its
//! own managers have answered, and what is wrong with one is no other's affair. It must not know response headers, executors or clocks.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backplane_types::view::{DecodeRef, ReadValueIdBytes};
use backplane_types::{DataValue, DateTime, DecodeLimits, Decoder, Encoder, Now, NumericRange, StatusCode};

use super::read::{self, Answer, check_reader, range_of, refuse};
use super::{ServiceContext, check_size, fan_out, no_diagnostics};
use crate::manager::{BoxFuture, CallContext, Fault};
use crate::model::node::{Handle, Node, Source};
use crate::source::encode_part;
use crate::space::Snapshot;
use crate::timestamps::Stamps;

/// Reads in one batch.
pub const MAX_BATCHED_READS: usize = 256;
/// Tags of a batch from which on it takes no more Reads.
pub const MAX_BATCHED_TAGS: usize = 16_384;
/// Tags in one call of a manager; more are asked for in further calls.
pub const MAX_TAGS_PER_CALL: usize = 4_096;

/// Reads and tags for which there is room from the start.
const USUAL_READS: usize = 64;

/// The deadline of a Read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// On the monotonic clock of `Now`.
    pub mono: Duration,
    /// The same as a time of day.
    pub utc: DateTime,
}

/// Reads of one caller that look at one snapshot. [`push`](Self::push) them, [`ask`](Self::ask) the managers, answer one after the other.
///
/// A batch keeps what it needs of the requests' bodies, in buffers that all of them share: nothing for a Read of whole on-demand values, the body for
/// others.
#[derive(Debug)]
pub struct ReadBatch {
    snapshot: Arc<Snapshot>,
    call: CallContext,
    now: Now,
    decode: DecodeLimits,
    reads: Vec<Pending>,
    /// The operations that managers answer: those of the first Read, then those of the second.
    questions: Vec<Question>,
    groups: Vec<Group>,
    bodies: Vec<u8>,
}

/// One Read.
#[derive(Debug)]
struct Pending {
    stamps: Stamps,
    count: u32,
    questions: Range<usize>,
    /// Empty when all operations are whole on-demand values: then nothing has to be read again.
    body: Range<usize>,
    until: Duration,
    max_response_size: usize,
}

/// An operation that is answered by the value at `index` of a group.
#[derive(Debug, Clone, Copy)]
struct Question {
    operation: u32,
    group: u32,
    index: u32,
}

/// One call of a manager.
#[derive(Debug)]
struct Group {
    slot: u32,
    class: u16,
    /// In ms: the least that a Read of the group asks for.
    max_age: f64,
    /// Its deadline is the latest of all Reads of the group.
    call: CallContext,
    tags: Vec<u32>,
    handles: Vec<Handle>,
    /// The Reads that wait for this call.
    reads: Vec<u32>,
}

/// Values that may be equally old, roughly: Reads whose maxAge has the same power of two share a call, with the least of their maxAges. Those that want a
/// new value (0) and those that take any (Int32's maximum and above: Part 4, 5.11.2.2) are classes of their own.
fn class_of(max_age: f64) -> u16 {
    let max_age = max_age.clamp(0.0, f64::from(i32::MAX));
    if max_age >= f64::from(i32::MAX) {
        return u16::MAX;
    }
    (max_age.to_bits() >> 52) as u16
}

impl ReadBatch {
    /// An empty batch. `call` says who asks; its deadline does not count. `now` is the server time of the answers. `decode`: limits for the bodies.
    #[must_use]
    pub fn new(snapshot: Arc<Snapshot>, call: CallContext, now: Now, decode: DecodeLimits) -> Self {
        Self {
            snapshot,
            call,
            now,
            decode,
            reads: Vec::with_capacity(USUAL_READS),
            questions: Vec::with_capacity(USUAL_READS),
            groups: Vec::new(),
            bodies: Vec::new(),
        }
    }

    /// How many Reads there are: their indexes are below it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Whether there are no Reads.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether no more Reads are taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.reads.len() >= MAX_BATCHED_READS || self.questions.len() >= MAX_BATCHED_TAGS
    }

    /// The snapshot that the Reads look at.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Adds a Read and answers its index. `body` is what follows the request header, `max_response_size` the bytes that its response body may have.
    ///
    /// # Errors
    /// `BadNothingToDo`, `BadTooManyOperations`, `BadMaxAgeInvalid`, `BadTimestampsToReturnInvalid`, those of decoding: the batch is as before, and
    /// the Read is to be answered with a ServiceFault. `BadTooManyOperations` too when the batch [is full](Self::is_full).
    pub fn push(&mut self, body: &[u8], until: Until, max_response_size: usize) -> Result<usize, StatusCode> {
        let pushed = self.push_if(body, until, max_response_size, false)?;
        pushed.ok_or(StatusCode::BAD_INTERNAL_ERROR)
    }

    /// As [`push`](Self::push), but a Read that no manager must be asked for is not added, and answers none.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_asking(
        &mut self,
        body: &[u8],
        until: Until,
        max_response_size: usize,
    ) -> Result<Option<usize>, StatusCode> {
        self.push_if(body, until, max_response_size, true)
    }

    fn push_if(
        &mut self,
        body: &[u8],
        until: Until,
        max_response_size: usize,
        only_asking: bool,
    ) -> Result<Option<usize>, StatusCode> {
        if self.is_full() {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        let before = self.questions.len();
        match self.gather(body) {
            Ok(_) if only_asking && self.questions.len() == before => Ok(None),
            Ok((head, is_plain)) => {
                let body_start = self.bodies.len();
                if !is_plain {
                    self.bodies.extend_from_slice(body);
                }
                self.commit(before, head.max_age, until);
                self.reads.push(Pending {
                    stamps: head.stamps,
                    count: u32::try_from(head.count).unwrap_or(u32::MAX),
                    questions: before..self.questions.len(),
                    body: body_start..self.bodies.len(),
                    until: until.mono,
                    max_response_size,
                });
                Ok(Some(self.reads.len() - 1))
            }
            Err(status) => {
                self.forget(before);
                Err(status)
            }
        }
    }

    /// Finds the questions of a body. Answers too whether they are all there is to it.
    fn gather(&mut self, body: &[u8]) -> Result<(read::Head, bool), StatusCode> {
        let mut decoder = Decoder::new(body, self.decode);
        let head = read::open(&mut decoder, &self.snapshot, self.now)?;
        let class = class_of(head.max_age);
        let mut is_plain = true;
        for number in 0..head.count {
            let operation = match ReadValueIdBytes::usual(&mut decoder) {
                Some(id) => ReadValueIdBytes::whole_value(id),
                None => ReadValueIdBytes::decode_ref(&mut decoder).map_err(StatusCode::from)?,
            };
            // Whose group there is is a reader.
            let is_reader =
                |slot| self.groups.iter().any(|group| group.slot == slot) || check_reader(&self.snapshot, slot).is_ok();
            match question(&self.snapshot, &self.call, &operation, is_reader) {
                Some((slot, handle, tag)) => {
                    let (group, index) = self.place(slot, class, handle, tag);
                    self.questions.push(Question {
                        operation: u32::try_from(number).unwrap_or(u32::MAX),
                        group,
                        index,
                    });
                    is_plain &= operation.index_range.is_empty();
                }
                None => {
                    operation.node_id.check().map_err(StatusCode::from)?;
                    is_plain = false;
                }
            }
        }
        Ok((head, is_plain))
    }

    /// Puts a tag into a call: the last one of its manager and class that has room, or a new one.
    fn place(&mut self, slot: u32, class: u16, handle: Handle, tag: u32) -> (u32, u32) {
        let fits = |group: &Group| group.slot == slot && group.class == class && group.tags.len() < MAX_TAGS_PER_CALL;
        let position = self.groups.iter().rposition(fits).unwrap_or_else(|| {
            self.groups.push(Group {
                slot,
                class,
                max_age: f64::INFINITY,
                call: CallContext {
                    deadline: Duration::ZERO,
                    ..self.call.clone()
                },
                tags: Vec::with_capacity(USUAL_READS),
                handles: Vec::with_capacity(USUAL_READS),
                reads: Vec::with_capacity(USUAL_READS),
            });
            self.groups.len() - 1
        });
        let mut index = 0;
        if let Some(group) = self.groups.get_mut(position) {
            index = group.tags.len();
            group.tags.push(tag);
            group.handles.push(handle);
        }
        (
            u32::try_from(position).unwrap_or(u32::MAX),
            u32::try_from(index).unwrap_or(u32::MAX),
        )
    }

    /// Lets the calls of the Read that is about to be added know of it.
    fn commit(&mut self, first: usize, max_age: f64, until: Until) {
        let number = u32::try_from(self.reads.len()).unwrap_or(u32::MAX);
        for question in self.questions.iter().skip(first) {
            let Some(group) = self.groups.get_mut(question.group as usize) else {
                continue;
            };
            if group.reads.last() == Some(&number) {
                continue;
            }
            group.reads.push(number);
            group.max_age = group.max_age.min(max_age);
            if group.call.deadline <= until.mono {
                group.call.deadline = until.mono;
                group.call.deadline_utc = until.utc;
            }
        }
    }

    /// Takes the questions from `first` on back.
    fn forget(&mut self, first: usize) {
        for question in self.questions.drain(first..).rev() {
            if let Some(group) = self.groups.get_mut(question.group as usize) {
                group.tags.truncate(question.index as usize);
                group.handles.truncate(question.index as usize);
            }
        }
        while self.groups.last().is_some_and(|group| group.tags.is_empty()) {
            self.groups.pop();
        }
    }

    /// Asks all managers, at the same time: one call for each manager and class of maxAge, split above [`MAX_TAGS_PER_CALL`].
    ///
    /// The calls end when what is returned is dropped.
    #[must_use = "nobody is asked unless it is polled"]
    pub fn ask(&self) -> Asking<'_> {
        let mut left = vec![0u32; self.reads.len()];
        let mut calls = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let attached = self.snapshot.attached_at(group.slot);
            calls.push(attached.map(|attached| attached.manager.read(&group.call, &group.tags, group.max_age)));
            for read in group.reads.iter().filter(|_| attached.is_some()) {
                if let Some(left) = left.get_mut(*read as usize) {
                    *left = left.saturating_add(1);
                }
            }
        }
        let ready = (0u32..)
            .zip(&left)
            .filter(|(_, left)| **left == 0)
            .map(|(read, _)| read);
        let ready = ready.collect();
        Asking {
            batch: self,
            calls,
            values: vec![Vec::new(); self.groups.len()],
            ready,
            left,
        }
    }

    fn pending(&self, index: usize) -> Result<&Pending, StatusCode> {
        self.reads.get(index).ok_or(StatusCode::BAD_INTERNAL_ERROR)
    }
}

/// Slot, handle and tag of an operation that a manager must be asked for; none for every other one.
fn question(
    snapshot: &Snapshot,
    call: &CallContext,
    operation: &ReadValueIdBytes<'_>,
    is_reader: impl FnOnce(u32) -> bool,
) -> Option<(u32, Handle, u32)> {
    let found = snapshot.check_read(
        call,
        &operation.node_id,
        operation.attribute_id,
        operation.data_encoding,
    );
    let found = found.ok()?;
    let variable = found.variable?;
    if !matches!(variable.source, Source::OnDemand) {
        return None;
    }
    range_of(operation).ok()?;
    if !is_reader(found.key.slot) {
        return None;
    }
    Some((found.key.slot, found.key.handle, variable.tag))
}

type Call<'b> = BoxFuture<'b, Result<Vec<DataValue>, Fault>>;

/// The managers of a [`ReadBatch`] at work.
pub struct Asking<'b> {
    batch: &'b ReadBatch,
    /// By group; none: it has ended.
    calls: Vec<Option<Call<'b>>>,
    /// By group; empty: not answered yet.
    values: Vec<Vec<DataValue>>,
    /// By Read: calls that it still waits for.
    left: Vec<u32>,
    /// The Reads that no call is missing for, and that were not given out yet.
    ready: VecDeque<u32>,
}

impl std::fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Asking<'_> {
    /// The index of another Read whose managers have all answered; waits for one. None when each was given once. May be dropped and called again.
    pub async fn next(&mut self) -> Option<usize> {
        poll_fn(|context| self.poll(context)).await;
        self.next_ready()
    }

    /// What [`next`](Self::next) would give without waiting, as far as is known: when it is none, it is time to send what has been answered.
    pub fn next_ready(&mut self) -> Option<usize> {
        self.ready.pop_front().map(|read| read as usize)
    }

    /// Whether no call is running any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.calls.iter().all(Option::is_none)
    }

    /// Ready when a Read is, or none will be.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.ready.is_empty() {
            return Poll::Ready(());
        }
        let mut is_running = false;
        for number in 0..self.calls.len() {
            let Some(place) = self.calls.get_mut(number) else { break };
            let Some(call) = place else { continue };
            match call.as_mut().poll(context) {
                Poll::Pending => is_running = true,
                Poll::Ready(answer) => {
                    *place = None;
                    self.settle(number, answer);
                }
            }
        }
        if is_running && self.ready.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Takes the answer of a call.
    fn settle(&mut self, number: usize, answer: Result<Vec<DataValue>, Fault>) {
        let batch = self.batch;
        let Some(group) = batch.groups.get(number) else { return };
        if let (Some(attached), Some(values)) = (batch.snapshot.attached_at(group.slot), self.values.get_mut(number)) {
            let nodes = &attached.model.nodes;
            let variable = |handle: &Handle| nodes.get(*handle).and_then(Node::variable);
            let asked = group.tags.iter().zip(&group.handles);
            let asked = asked.map(|(tag, handle)| (*tag, variable(handle)));
            *values = fan_out::settle(attached, answer, asked, batch.now);
        }
        for read in &group.reads {
            let Some(left) = self.left.get_mut(*read as usize) else {
                continue;
            };
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.ready.push_back(*read);
            }
        }
    }

    /// Appends the response body of a Read: what follows the response header. Values that no manager has given yet are `BadTimeout`. Can be repeated, and
    /// left out. `at`: the present, on the monotonic clock.
    ///
    /// # Errors
    /// A ServiceFault; what was appended is to be dropped. `BadTimeout` after the Read's deadline, `BadResponseTooLarge`, `BadEncodingLimitsExceeded`.
    pub fn answer(&self, index: usize, at: Duration, out: &mut Encoder<'_>) -> Result<(), StatusCode> {
        let pending = self.batch.pending(index)?;
        if at >= pending.until {
            return Err(StatusCode::BAD_TIMEOUT);
        }
        let cx = ServiceContext {
            call: &self.batch.call,
            now: self.batch.now,
            decode: self.batch.decode,
            max_response_size: pending.max_response_size,
        };
        let start = out.position();
        out.i32(i32::try_from(pending.count).unwrap_or(i32::MAX));
        let questions = self.batch.questions.get(pending.questions.clone()).unwrap_or(&[]);
        if pending.body.is_empty() {
            for question in questions {
                self.answer_one(*question, None, pending.stamps, out);
                check_size(out, start, &cx)?;
            }
        } else {
            self.answer_mixed(pending, questions, &cx, start, out)?;
        }
        no_diagnostics(out);
        out.error().map_or(Ok(()), Err)
    }

    /// Answers a Read that has other operations beside whole on-demand values.
    fn answer_mixed(
        &self,
        pending: &Pending,
        questions: &[Question],
        cx: &ServiceContext<'_>,
        start: usize,
        out: &mut Encoder<'_>,
    ) -> Result<(), StatusCode> {
        let snapshot = &self.batch.snapshot;
        let body = self.batch.bodies.get(pending.body.clone()).unwrap_or(&[]);
        let mut decoder = Decoder::new(body, cx.decode);
        let head = read::open(&mut decoder, snapshot, cx.now)?;
        let mut questions = questions.iter().peekable();
        for number in 0..head.count {
            let operation = ReadValueIdBytes::decode_ref(&mut decoder).map_err(StatusCode::from)?;
            match questions.next_if(|question| question.operation as usize == number) {
                Some(question) => {
                    let range = range_of(&operation)?;
                    self.answer_one(*question, range.as_ref(), head.stamps, out);
                }
                None => match read::unusual(snapshot, cx, &operation, None, head.stamps, out)? {
                    Answer::Written => {}
                    // Its manager has become a reader since the Read was taken in.
                    Answer::OnDemand => refuse(StatusCode::BAD_NOT_READABLE, &operation, head.stamps, out)?,
                },
            }
            check_size(out, start, cx)?;
        }
        Ok(())
    }

    fn answer_one(&self, question: Question, range: Option<&NumericRange>, stamps: Stamps, out: &mut Encoder<'_>) {
        let values = self.values.get(question.group as usize);
        match values.and_then(|values| values.get(question.index as usize)) {
            Some(value) => encode_part(&value.value, &value.head(), range, stamps, out),
            None => out.data_value::<backplane_types::Variant>(&stamps.refused(StatusCode::BAD_TIMEOUT), None),
        }
    }
}
