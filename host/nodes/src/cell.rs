//! The cell that holds one variable's current value.
//!
//! It owns the value, its status and its times, and hands out consistent copies of all four without ever making a reader wait for a lock: a
//! sequence number that is odd during a write tells a reader to look again. Values of up to eight bytes live in the cell; larger ones sit behind
//! one atomic pointer. The cell must not know which node it belongs to, who writes it, or what time it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

use arc_swap::ArcSwapOption;
use backplane_types::{BuiltInType, DataValue, DataValueHead, DateTime, Encoder, PlainValue, StatusCode, Variant};

use crate::timestamps::Stamps;
use crate::watch::{ChangeFeed, Watchers};

/// Kind 0: the value is `Empty`.
const KIND_EMPTY: u8 = 0;
/// Kind of a value that is behind the pointer; other kinds are the numbers of the built-in types (Part 6, 5.1.2).
const KIND_LARGE: u8 = 0xff;

const FLAG_SOURCE: u8 = 1;
const FLAG_SERVER: u8 = 1 << 1;
/// Somebody other than the declaration of the node has set the value.
const FLAG_PUBLISHED: u8 = 1 << 2;
/// The status was put over the value from outside (`degrade`), and holds until the next value.
const FLAG_DEGRADED: u8 = 1 << 3;

/// How often a reader looks again at once before it gives the rest of its time slice away.
const SPINS: u32 = 64;

/// A value too large for the cell, or with picoseconds.
#[derive(Debug)]
struct Large {
    value: Variant,
    source_picoseconds: Option<u16>,
}

/// The current value of one variable: see the module text.
///
/// Writers are serialised among themselves by the same sequence number; they hold it for a few stores.
#[derive(Debug)]
pub struct ValueCell {
    /// Even: stable. Half of it counts the writes.
    sequence: AtomicU64,
    /// Status in the upper 32 bits, flags in bits 8 to 15, kind in bits 0 to 7.
    head: AtomicU64,
    bits: AtomicU64,
    source: AtomicI64,
    server: AtomicI64,
    /// Set if and only if the kind is large.
    large: ArcSwapOption<Large>,
    watchers: Watchers,
}

/// One consistent look at a cell.
struct Look {
    sequence: u64,
    kind: u8,
    flags: u8,
    status: StatusCode,
    bits: u64,
    source: i64,
    server: i64,
    large: Option<arc_swap::Guard<Option<Arc<Large>>>>,
}

/// A write that has begun.
struct Writing {
    /// The even number before it.
    sequence: u64,
    /// Somebody wants to hear of it.
    is_watched: bool,
}

/// One consistent look at a cell that holds a Good value itself.
struct Inside {
    kind: BuiltInType,
    bits: u64,
    /// Ticks; 0 if there is no source time.
    source: i64,
}

impl Look {
    fn variant(&self) -> Variant {
        match &self.large {
            Some(guard) => guard.as_ref().map_or(Variant::Empty, |large| large.value.clone()),
            None => unpack(self.kind, self.bits),
        }
    }

    fn picoseconds(&self) -> Option<u16> {
        self.large
            .as_ref()
            .and_then(|guard| guard.as_ref().and_then(|large| large.source_picoseconds))
    }

    fn head(&self) -> DataValueHead {
        DataValueHead {
            status: self.status,
            source_timestamp: (self.flags & FLAG_SOURCE != 0).then_some(DateTime::from_ticks(self.source)),
            source_picoseconds: self.picoseconds(),
            server_timestamp: (self.flags & FLAG_SERVER != 0).then_some(DateTime::from_ticks(self.server)),
            server_picoseconds: None,
        }
    }
}

impl Default for ValueCell {
    fn default() -> Self {
        Self::waiting()
    }
}

impl ValueCell {
    /// A cell that nobody has written yet: reads answer `BadWaitingForInitialData`.
    #[must_use]
    pub fn waiting() -> Self {
        Self::declared(DataValue {
            status: Some(StatusCode::BAD_WAITING_FOR_INITIAL_DATA),
            ..DataValue::default()
        })
    }

    /// A cell with a first value, as the declaration of a node gives it. An empty value with a good status counts as "no value yet".
    #[must_use]
    pub fn new(value: DataValue) -> Self {
        if is_nothing(&value) {
            Self::waiting()
        } else {
            Self::declared(value)
        }
    }

    fn declared(value: DataValue) -> Self {
        let packed = Packed::new(value, 0);
        Self {
            sequence: AtomicU64::new(0),
            head: AtomicU64::new(packed.head),
            bits: AtomicU64::new(packed.bits),
            source: AtomicI64::new(packed.source),
            server: AtomicI64::new(packed.server),
            large: ArcSwapOption::new(packed.large),
            watchers: Watchers::default(),
        }
    }

    /// Counts the writes. Two equal answers mean that nothing was written in between.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.sequence.load(Ordering::Acquire) >> 1
    }

    /// The value, its status and its times, as they were written.
    #[must_use]
    pub fn read(&self) -> DataValue {
        self.read_versioned().1
    }

    /// What [`read`](Self::read) answers, with the [`version`](Self::version) it belongs to.
    #[must_use]
    pub fn read_versioned(&self) -> (u64, DataValue) {
        let look = self.look();
        let head = look.head();
        let value = DataValue {
            value: look.variant(),
            status: (head.status != StatusCode::GOOD).then_some(head.status),
            source_timestamp: head.source_timestamp,
            source_picoseconds: head.source_picoseconds,
            server_timestamp: head.server_timestamp,
            server_picoseconds: None,
        };
        (look.sequence >> 1, value)
    }

    /// As [`read`](Self::read) for a Good value that is in the cell itself, with `now` as its server time; none for another one.
    #[inline]
    pub(crate) fn read_plain(&self, now: DateTime) -> Option<PlainValue> {
        let Inside { kind, bits, source } = self.look_inside()?;
        PlainValue::new(kind, bits, source, now.ticks())
    }

    /// The status alone.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode((self.head.load(Ordering::Acquire) >> 32) as u32)
    }

    /// Whether a value has been set since the node was declared.
    #[must_use]
    pub fn is_published(&self) -> bool {
        flags_of(self.head.load(Ordering::Acquire)) & FLAG_PUBLISHED != 0
    }

    /// Whether the status was put over the value by [`degrade`](Self::degrade) and no value came since.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        flags_of(self.head.load(Ordering::Acquire)) & FLAG_DEGRADED != 0
    }

    /// Sets value, status and times.
    pub fn write(&self, value: DataValue) {
        let packed = Packed::new(value, FLAG_PUBLISHED);
        let writing = self.begin();
        self.store(writing, packed);
    }

    /// Sets a Good scalar in the form of [`Variant::to_bits`].
    #[inline]
    pub(crate) fn write_scalar(&self, kind: BuiltInType, bits: u64, source: DateTime, server: DateTime) {
        let packed = Packed {
            head: head(kind.id(), FLAG_PUBLISHED | FLAG_SOURCE | FLAG_SERVER, None),
            bits,
            source: source.ticks(),
            server: server.ticks(),
            large: None,
        };
        let writing = self.begin();
        self.store(writing, packed);
    }

    /// Sets value, status and times if nothing was written since `version`. Answers whether it did.
    #[must_use]
    pub fn write_if(&self, version: u64, value: DataValue) -> bool {
        self.store_if(version, Packed::new(value, FLAG_PUBLISHED))
    }

    fn store_if(&self, version: u64, packed: Packed) -> bool {
        let writing = self.begin();
        if writing.sequence >> 1 != version {
            // Nothing has changed, so the readers may as well see the same number again.
            self.sequence.store(writing.sequence, Ordering::Release);
            return false;
        }
        self.store(writing, packed);
        true
    }

    /// Puts a status over the value, which stays, as does its source time. Holds until the next write.
    pub fn degrade(&self, status: StatusCode, now: DateTime) {
        let writing = self.begin();
        let old = self.head.load(Ordering::Relaxed);
        let flags = flags_of(old) | FLAG_DEGRADED | FLAG_SERVER;
        self.head
            .store(head(kind_of(old), flags, Some(status)), Ordering::Relaxed);
        self.server.store(now.ticks(), Ordering::Relaxed);
        self.end(&writing);
    }

    /// Lets a watcher hear of writes: once after each [`arm`](Self::arm), as `token` in its feed. `number` is the watcher's, below
    /// [`MAX_WATCHERS`](crate::MAX_WATCHERS).
    pub fn watch(&self, number: u8, token: u32, feed: &Arc<ChangeFeed>) {
        self.watchers.add(number, token, feed);
    }

    /// The token that a watcher has given.
    #[must_use]
    pub fn watch_token(&self, number: u8) -> Option<u32> {
        self.watchers.token(number)
    }

    /// Lets a watcher hear of nothing any more.
    pub fn unwatch(&self, number: u8) {
        self.watchers.remove(number);
    }

    /// Lets a watcher hear of the next write. False when the cell has been written since `version`: then the watcher has to look again, and may hear of
    /// that write or of the next one all the same.
    #[inline]
    #[must_use]
    pub fn arm(&self, number: u8, version: u64) -> bool {
        self.watchers.arm(number);
        // An odd number is a write that may not have seen the arm.
        self.sequence.load(Ordering::SeqCst) == version.wrapping_shl(1)
    }

    /// Takes over what a newer declaration of the same node says: its value counts only where nobody has set one, or while the old one is
    /// degraded. Answers whether the value changed.
    pub fn redeclare(&self, value: DataValue) -> bool {
        let (version, current) = self.read_versioned();
        let keeps = self.is_published() && !self.is_degraded();
        if is_nothing(&value) || keeps || (current.value == value.value && current.status == value.status) {
            return false;
        }
        self.store_if(version, Packed::new(value, 0))
    }

    /// Appends the DataValue to `encoder`, with the times that `stamps` asks for. Allocates nothing of its own.
    ///
    /// A value with a bad status is left out, as Part 4, 7.11.1 asks. The server time of a good value is the present, because a value that is
    /// reported by exception is known to be accurate for as long as nothing else is reported (7.11.4).
    pub fn encode(&self, encoder: &mut Encoder<'_>, stamps: Stamps) {
        match self.look_inside() {
            Some(Inside { kind, bits, source }) => {
                encoder.scalar_data_value(kind, bits, stamps.shown_source(source), stamps.shown_now());
            }
            None => self.encode_other(encoder, stamps),
        }
    }

    fn encode_other(&self, encoder: &mut Encoder<'_>, stamps: Stamps) {
        let look = self.look();
        let head = stamps.head(&look.head());
        if look.status.is_bad() || look.kind == KIND_EMPTY {
            encoder.data_value::<Variant>(&head, None);
            return;
        }
        match &look.large {
            Some(guard) => {
                let value = guard.as_ref().map(|large| &large.value);
                encoder.data_value(&head, value.filter(|value| !value.is_empty()));
            }
            None => encoder.data_value(&head, Some(&look.variant())),
        }
    }

    /// Hands the value, without a copy of it, and the rest of the DataValue to a function.
    pub fn inspect<T>(&self, look_at: impl FnOnce(&Variant, &DataValueHead) -> T) -> T {
        let look = self.look();
        match &look.large {
            Some(guard) => look_at(
                guard.as_ref().map_or(&Variant::Empty, |large| &large.value),
                &look.head(),
            ),
            None => look_at(&unpack(look.kind, look.bits), &look.head()),
        }
    }

    /// Looks until no write came in between.
    fn look(&self) -> Look {
        let mut spins = 0u32;
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            if before & 1 == 0 {
                let head = self.head.load(Ordering::Relaxed);
                let bits = self.bits.load(Ordering::Relaxed);
                let source = self.source.load(Ordering::Relaxed);
                let server = self.server.load(Ordering::Relaxed);
                let large = (kind_of(head) == KIND_LARGE).then(|| self.large.load());
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == before {
                    return Look {
                        sequence: before,
                        kind: kind_of(head),
                        flags: flags_of(head),
                        status: StatusCode((head >> 32) as u32),
                        bits,
                        source,
                        server,
                        large,
                    };
                }
            }
            spins = wait_a_little(spins);
        }
    }

    /// As [`look`](Self::look) for a Good value that is in the cell itself; none for another one.
    #[inline]
    fn look_inside(&self) -> Option<Inside> {
        let mut spins = 0u32;
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            if before & 1 == 0 {
                let head = self.head.load(Ordering::Relaxed);
                let is_good = head >> 32 == u64::from(StatusCode::GOOD.0);
                let kind = BuiltInType::from_id(kind_of(head)).filter(|_| is_good)?;
                let bits = self.bits.load(Ordering::Relaxed);
                let source = self.source.load(Ordering::Relaxed);
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == before {
                    return Some(Inside { kind, bits, source });
                }
            }
            spins = wait_a_little(spins);
        }
    }

    /// Makes the sequence odd.
    ///
    /// Then it asks for watchers: all of this is sequentially consistent, as [`arm`](Self::arm) is, so either the writer sees a watcher's arm or that
    /// watcher sees the odd number. The write itself needs no such order.
    #[inline]
    fn begin(&self) -> Writing {
        let mut spins = 0u32;
        loop {
            let sequence = self.sequence.load(Ordering::Relaxed);
            if sequence & 1 == 0
                && self
                    .sequence
                    .compare_exchange_weak(sequence, sequence | 1, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok()
            {
                let is_watched = self.watchers.are_armed();
                // The odd number must be visible before any of the stores that follow.
                fence(Ordering::Release);
                return Writing { sequence, is_watched };
            }
            spins = wait_a_little(spins);
        }
    }

    /// Makes the sequence even again, and tells who wanted to hear of it.
    #[inline]
    fn end(&self, writing: &Writing) {
        self.sequence.store(writing.sequence.wrapping_add(2), Ordering::Release);
        if writing.is_watched {
            self.watchers.tell();
        }
    }

    /// Stores everything and makes the sequence even again.
    #[inline]
    fn store(&self, writing: Writing, packed: Packed) {
        let was_large = kind_of(self.head.load(Ordering::Relaxed)) == KIND_LARGE;
        self.head.store(packed.head, Ordering::Relaxed);
        self.bits.store(packed.bits, Ordering::Relaxed);
        self.source.store(packed.source, Ordering::Relaxed);
        self.server.store(packed.server, Ordering::Relaxed);
        // The old value is dropped after the sequence is even: freeing it may take a while.
        let replaces = packed.large.is_some() || was_large;
        let old = if replaces { self.large.swap(packed.large) } else { None };
        self.end(&writing);
        drop(old);
    }
}

fn wait_a_little(spins: u32) -> u32 {
    if spins < SPINS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
    spins.saturating_add(1)
}

fn head(kind: u8, flags: u8, status: Option<StatusCode>) -> u64 {
    u64::from(status.unwrap_or(StatusCode::GOOD).0) << 32 | u64::from(flags) << 8 | u64::from(kind)
}

fn kind_of(head: u64) -> u8 {
    (head & 0xff) as u8
}

fn flags_of(head: u64) -> u8 {
    (head >> 8 & 0xff) as u8
}

fn time_flags(value: &DataValue) -> u8 {
    let source = if value.source_timestamp.is_some() {
        FLAG_SOURCE
    } else {
        0
    };
    let server = if value.server_timestamp.is_some() {
        FLAG_SERVER
    } else {
        0
    };
    source | server
}

/// Whether a declared value says "none yet".
fn is_nothing(value: &DataValue) -> bool {
    matches!(value.value, Variant::Empty) && value.status.is_none_or(|status| status.is_good())
}

/// A value split into what the cell stores. Made before the sequence turns odd, because it may allocate.
struct Packed {
    head: u64,
    bits: u64,
    source: i64,
    server: i64,
    large: Option<Arc<Large>>,
}

impl Packed {
    fn new(value: DataValue, flags: u8) -> Self {
        let flags = flags | time_flags(&value);
        let small = if value.source_picoseconds.is_none() {
            pack(&value.value)
        } else {
            None
        };
        let (kind, bits) = small.unwrap_or((KIND_LARGE, 0));
        let large = (kind == KIND_LARGE).then(|| {
            Arc::new(Large {
                value: value.value,
                source_picoseconds: value.source_picoseconds,
            })
        });
        Self {
            head: head(kind, flags, value.status),
            bits,
            source: value.source_timestamp.map_or(0, DateTime::ticks),
            server: value.server_timestamp.map_or(0, DateTime::ticks),
            large,
        }
    }
}

/// Kind and bits of a value that fits into the cell.
fn pack(value: &Variant) -> Option<(u8, u64)> {
    match value {
        Variant::Empty => Some((KIND_EMPTY, 0)),
        other => other.to_bits().map(|(kind, bits)| (kind.id(), bits)),
    }
}

/// The inverse of [`pack`] for values inside the cell.
fn unpack(kind: u8, bits: u64) -> Variant {
    BuiltInType::from_id(kind)
        .and_then(|kind| Variant::from_bits(kind, bits))
        .unwrap_or(Variant::Empty)
}
