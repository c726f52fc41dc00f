//! sub: one writer, many subscriptions; how many notifications come, and how long after the write.

use std::os::fd::AsRawFd;
use std::time::Duration;

use backplane_types::{MonitoredItemNotification, NodeId, TimestampsToReturn};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::subscriber::{Subscriber, Wanted};
use super::to_usize;
use super::variables::{Variables, number};
use crate::client::words;
use crate::clock::Clock;
use crate::closed::{Edge, Outcome, Problems};
use crate::error::{LoadError, setup};
use crate::histogram::Histogram;
use crate::link::Link;
use crate::report::Row;
use crate::requests::{Ask, prepare};
use crate::run::{Meter, Run};
use crate::transport::{SCRATCH, Transport};
use crate::verify::Verifier;

/// Written values begin here, so that they are told from the first ones.
const FIRST: i32 = 1_000_000;
/// Writes of which the time is kept.
const MOST_WRITES: usize = 4_000_000;
/// How often the time is looked at when nothing comes.
const TICK: Duration = Duration::from_millis(20);

/// What is watched, and what is written meanwhile.
#[derive(Clone, Copy, Debug)]
struct Shape {
    subscriptions: u32,
    items: u32,
    publishing_ms: f64,
    sampling_ms: f64,
    write_every_ms: f64,
    written: u32,
}

impl Shape {
    /// A shape with the switches that were given.
    fn of(run: &Run<'_>, unless_given: Self) -> Self {
        let load = run.load;
        let items = load.items.unwrap_or(unless_given.items);
        Self {
            subscriptions: load.subs.unwrap_or(unless_given.subscriptions),
            items,
            publishing_ms: load.publishing.unwrap_or(unless_given.publishing_ms),
            sampling_ms: load.sampling.unwrap_or(unless_given.sampling_ms),
            write_every_ms: load.write_every.unwrap_or(unless_given.write_every_ms),
            written: load.write_nodes.unwrap_or(unless_given.written).min(items),
        }
    }

    /// Notifications in a second; a value that is written twice between two publishings is told once.
    fn expected(&self, sessions: u32) -> f64 {
        let rate = 1_000.0 / self.publishing_ms.max(self.sampling_ms).max(self.write_every_ms);
        f64::from(sessions) * f64::from(self.subscriptions) * f64::from(self.written) * rate
    }
}

const SUB: Shape = Shape {
    subscriptions: 5,
    items: 100,
    publishing_ms: 100.0,
    sampling_ms: 0.0,
    write_every_ms: 50.0,
    written: u32::MAX,
};

pub(crate) fn run(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    Ok(vec![watched(run, Shape::of(run, SUB))?])
}

/// latency: as `sub`, at the shortest publishing interval; an interval and 2 ms are allowed.
pub(crate) fn latency(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let unless_given = Shape {
        subscriptions: 1,
        publishing_ms: 10.0,
        ..SUB
    };
    let shape = Shape::of(run, unless_given);
    let mut row = watched(run, shape)?;
    let allowed = shape.publishing_ms + 2.0;
    let verdict = if row.p99_us <= allowed * 1_000.0 {
        "PASS"
    } else {
        "FAIL"
    };
    row.note = Some(format!(
        "{verdict}: 99 % within {:.1} ms of the write, {allowed} ms allowed",
        row.p99_us / 1_000.0
    ));
    Ok(vec![row])
}

/// changes: many items of which few change, then the few alone.
pub(crate) fn changes(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let unless_given = Shape {
        subscriptions: 1,
        items: 1_000,
        publishing_ms: 50.0,
        sampling_ms: 50.0,
        write_every_ms: 50.0,
        written: 20,
    };
    let many = Shape::of(run, unless_given);
    let few = Shape {
        items: many.written,
        ..many
    };
    let mut rows = Vec::new();
    for shape in [few, many] {
        let mut row = watched(run, shape)?;
        row.peer = format!("{} {} of {}", run.name, shape.written, shape.items);
        rows.push(row);
    }
    let costs: Vec<f64> = rows.iter().filter_map(|row| row.server_cpu_percent).collect();
    if let ([alone, beside], Some(row)) = (costs.as_slice(), rows.last_mut()) {
        let ratio = beside / alone.max(1e-9);
        row.cost_ratio = Some(ratio);
        row.note = Some(format!(
            "{ratio:.2} times the CPU of a subscription of the {} alone",
            few.items
        ));
    }
    Ok(rows)
}

/// items: what an item takes in memory, and whether every change of some of them comes.
pub(crate) fn items(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let unless_given = Shape {
        subscriptions: 1,
        items: 10_000,
        publishing_ms: 1_000.0,
        sampling_ms: 1_000.0,
        // Two cycles apart: a value that does not come was missed.
        write_every_ms: 2_000.0,
        written: 100,
    };
    Ok(vec![watched(run, Shape::of(run, unless_given))?])
}

/// Watches and writes for as long as the command line says.
fn watched(run: &Run<'_>, shape: Shape) -> Result<Row, LoadError> {
    let load = run.load;
    let (sessions, _, _) = load.shape(run.scenario);
    let variables = Variables::find(&run.target, "v", shape.items.max(load.variables))?;
    let nodes = variables.ids.get(..to_usize(shape.items)).unwrap_or_default();
    let wanted = Wanted {
        subscriptions: shape.subscriptions,
        nodes,
        publishing_ms: shape.publishing_ms,
        sampling_ms: shape.sampling_ms,
        lifetime_count: 100,
        keep_alive_count: 10,
        queue: load.item_queue,
        timestamps: TimestampsToReturn::BOTH,
    };
    // What the first session makes a server allocate is no item's.
    let first = Link::with_session(&run.target)?;
    let before = run.sample();
    let mut subscribers = Vec::new();
    for _ in 0..sessions {
        subscribers.push(Subscriber::open(&run.target, &wanted)?);
    }
    let written = nodes.get(..to_usize(shape.written)).unwrap_or_default();
    let every = Duration::from_secs_f64(shape.write_every_ms / 1_000.0);
    let writer = Writer::open(run, &variables, written, every)?;
    let mut meter = Meter::new(run);
    let watching = Watching::new(subscribers, writer, run.target.clock)?;
    let outcome = watching.run(load.warmup, load.seconds, &mut |edge| meter.edge(edge))?;
    drop(first);
    let after = run.sample();
    let mut row = run.row(&outcome, &meter.cost);
    let items = f64::from(sessions) * f64::from(shape.subscriptions) * f64::from(shape.items);
    row.rss_per_item_bytes = before.zip(after).map(|(before, after)| {
        // KiB of a process are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let grown = after.rss.saturating_sub(before.rss) as f64;
        grown * 1_024.0 / items.max(1.0)
    });
    let expected = shape.expected(sessions);
    row.expected_per_s = Some(expected);
    row.note = Some(format!(
        "{:.1} % of {expected:.0} notifications/s; {:.0} bytes of memory for each of {items:.0} items",
        row.requests_per_s / expected.max(1.0) * 100.0,
        row.rss_per_item_bytes.unwrap_or_default()
    ));
    Ok(row)
}

/// Writes an ever higher number to all its nodes.
struct Writer<'a> {
    transport: Transport,
    token: NodeId,
    variables: &'a Variables,
    nodes: &'a [NodeId],
    every: Duration,
    verifier: Verifier,
    next: i32,
    /// When number `FIRST + index` was written.
    times: Vec<u64>,
    under_way: bool,
}

impl<'a> Writer<'a> {
    fn open(run: &Run<'_>, variables: &'a Variables, nodes: &'a [NodeId], every: Duration) -> Result<Self, LoadError> {
        let link = Link::with_session(&run.target)?;
        let token = link.token().clone();
        let size = prepare(Ask::Write, &token, nodes, &variables.value(FIRST)).size();
        Ok(Self {
            transport: link.into_transport(size)?,
            token,
            variables,
            nodes,
            every,
            verifier: Verifier::new(Ask::Write, nodes.len()),
            next: FIRST,
            times: Vec::new(),
            under_way: false,
        })
    }

    fn write(&mut self, clock: Clock) -> Result<(), LoadError> {
        // A server that is slower than the writer gets the next number when it has answered.
        if self.under_way || self.times.len() >= MOST_WRITES {
            return Ok(());
        }
        let value = self.variables.value(self.next);
        let request = prepare(Ask::Write, &self.token, self.nodes, &value);
        self.transport.queue(&request, 0)?;
        self.next = self.next.saturating_add(1);
        self.times.push(clock.nanos());
        self.under_way = true;
        self.transport.flush().map(drop)
    }

    /// Reads once; true if there may be more to read.
    fn take(&mut self, scratch: &mut [u8], problems: &mut Problems) -> Result<bool, LoadError> {
        let (verifier, under_way) = (&mut self.verifier, &mut self.under_way);
        self.transport.receive(scratch, |_, body| {
            *under_way = false;
            if let (_, Err(wrong)) = verifier.check(body) {
                problems.add(1, || format!("Write: {}", words(wrong)));
            }
            Ok(())
        })
    }
}

/// When the value was written; `None` for one that was there before.
fn written_at(times: &[u64], item: &MonitoredItemNotification) -> Option<u64> {
    let index = number(&item.value.value)?.checked_sub(i64::from(FIRST))?;
    times.get(usize::try_from(index).ok()?).copied()
}

/// The event loop over all subscribers and the writer.
struct Watching<'a> {
    subscribers: Vec<Subscriber>,
    writer: Writer<'a>,
    clock: Clock,
    poll: Poll,
    scratch: Vec<u8>,
    notifications: u64,
    latency: Histogram,
    problems: Problems,
}

impl<'a> Watching<'a> {
    fn new(subscribers: Vec<Subscriber>, writer: Writer<'a>, clock: Clock) -> Result<Self, LoadError> {
        let poll = Poll::new()?;
        let transports = subscribers.iter().map(Subscriber::transport);
        for (index, transport) in transports.chain(std::iter::once(&writer.transport)).enumerate() {
            watch(&poll, transport, index)?;
        }
        Ok(Self {
            subscribers,
            writer,
            clock,
            poll,
            scratch: vec![0; SCRATCH],
            notifications: 0,
            latency: Histogram::default(),
            problems: Problems::default(),
        })
    }

    fn run(mut self, warm_up: f64, window: f64, edge: &mut dyn FnMut(Edge)) -> Result<Outcome, LoadError> {
        for subscriber in &mut self.subscribers {
            subscriber.publish()?;
        }
        let warm = self.clock.elapsed().saturating_add(Duration::from_secs_f64(warm_up));
        self.turn_until(warm)?;
        edge(Edge::Begin);
        self.notifications = 0;
        self.latency.clear();
        let began = self.clock.elapsed();
        self.turn_until(began.saturating_add(Duration::from_secs_f64(window)))?;
        let time = self.clock.elapsed().saturating_sub(began);
        edge(Edge::End);
        if self.notifications == 0 {
            return Err(setup("no notification came"));
        }
        Ok(Outcome {
            requests: self.notifications,
            time,
            latency: self.latency,
            problems: self.problems,
        })
    }

    fn turn_until(&mut self, end: Duration) -> Result<(), LoadError> {
        let mut events = Events::with_capacity(1_024);
        let mut next_write = self.clock.elapsed();
        loop {
            let now = self.clock.elapsed();
            if now >= end {
                return Ok(());
            }
            if now >= next_write {
                self.writer.write(self.clock)?;
                next_write = next_write.saturating_add(self.writer.every).max(now);
            }
            let wait = TICK.min(end.min(next_write).saturating_sub(now));
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in events.iter().filter(|event| event.is_readable()) {
                self.turn(event.token().0, event.is_read_closed())?;
            }
        }
    }

    /// Reads all there is on one connection; to the end if the server has closed it.
    fn turn(&mut self, index: usize, closed: bool) -> Result<(), LoadError> {
        let Some(subscriber) = self.subscribers.get_mut(index) else {
            while self.writer.take(&mut self.scratch, &mut self.problems)? || closed {}
            return Ok(());
        };
        let (clock, times) = (self.clock, &self.writer.times);
        let (notifications, latency) = (&mut self.notifications, &mut self.latency);
        let mut more = true;
        while more {
            // Values of one read came at one time.
            let mut now = None;
            more = subscriber.take(&mut self.scratch, &mut self.problems, &mut |item| {
                let now = *now.get_or_insert_with(|| clock.nanos());
                if let Some(written) = written_at(times, item) {
                    *notifications = notifications.saturating_add(1);
                    latency.record(now.saturating_sub(written));
                }
            })? || closed;
        }
        Ok(())
    }
}

/// Registers a connection, which stops blocking.
pub(crate) fn watch(poll: &Poll, transport: &Transport, index: usize) -> Result<(), LoadError> {
    let stream = transport.stream();
    stream.set_nonblocking(true)?;
    poll.registry()
        .register(&mut SourceFd(&stream.as_raw_fd()), Token(index), Interest::READABLE)?;
    Ok(())
}
