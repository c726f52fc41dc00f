//! Small programs on the fair queue, for the model checkers: each fails when an entry, a lease or a wake-up is lost, or is there twice.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use backplane_queue::fair::{Blocked, FairQueue, Order, OwnerHandle, QueueOptions, Refusal};
#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};
#[cfg(not(loom))]
use shuttle::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};

/// Counts that are no business of the checkers.
type Count = std::sync::atomic::AtomicUsize;

/// Work that holds a lease: how often each came out, and how many leases came back.
#[derive(Debug)]
struct Work {
    number: usize,
    returned: Arc<Count>,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.returned.fetch_add(1, SeqCst);
    }
}

/// A queue, its work, and where that went.
struct Bench {
    queue: FairQueue<Work>,
    out: Vec<Count>,
    returned: Arc<Count>,
    /// Free capacity.
    free: AtomicUsize,
}

impl Bench {
    fn new(order: Order, entries: usize, free: usize) -> Arc<Self> {
        let queue = FairQueue::new(QueueOptions {
            capacity: entries,
            max_owners: 2,
            order,
        });
        Arc::new(Self {
            queue,
            out: (0..entries).map(|_| Count::new(0)).collect(),
            returned: Arc::default(),
            free: AtomicUsize::new(free),
        })
    }

    fn owner(&self, key: &str, weight: u32) -> OwnerHandle {
        self.queue.owner(&Arc::from(key), weight).unwrap()
    }

    fn work(&self, number: usize) -> Work {
        Work {
            number,
            returned: Arc::clone(&self.returned),
        }
    }

    /// Counts work that came out, and returns its lease.
    fn done(&self, work: Work) {
        self.out[work.number].fetch_add(1, SeqCst);
    }

    /// Takes all that there is capacity for.
    fn pump(&self) -> usize {
        let mut taken = 0;
        while let Some((work, ())) = self.queue.take(|_| Ok(())) {
            self.done(work);
            taken += 1;
        }
        taken
    }

    fn lease(&self) -> Result<(), Blocked> {
        let less = |free: usize| free.checked_sub(1);
        let leased = self.free.fetch_update(SeqCst, SeqCst, less);
        leased.map(drop).map_err(|_| Blocked::Owner)
    }

    /// Takes what there is capacity for, each with a lease of its own.
    fn pump_with_leases(&self) {
        while let Some((work, ())) = self.queue.take(|_| self.lease()) {
            self.done(work);
            self.free.fetch_add(1, SeqCst);
            self.queue.capacity_changed();
        }
    }

    /// Everything came out once, and nothing is left.
    fn check(&self) {
        for (number, out) in self.out.iter().enumerate() {
            assert_eq!(out.load(SeqCst), 1, "entry {number} came out");
        }
        assert_eq!(self.returned.load(SeqCst), self.out.len(), "leases came back");
        assert_eq!((self.queue.len(), self.queue.tokens()), (0, 0));
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Consumers race for queued entries of two owners.
pub(crate) fn claim(order: Order, consumers: usize, entries: usize) {
    let bench = Bench::new(order, entries, 0);
    for number in 0..entries {
        let owner = bench.owner(["a", "b"][number % 2], 1);
        bench.queue.admit(&owner, bench.work(number)).unwrap();
    }
    let others: Vec<_> = (1..consumers)
        .map(|_| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || bench.pump())
        })
        .collect();
    bench.pump();
    for other in others {
        other.join().unwrap();
    }
    bench.check();
}

/// Workers wait, each for so many entries; one of them admitted by each producer. A lost wake-up is a deadlock.
pub(crate) fn wake(order: Order, workers: usize, producers: usize, each: usize) {
    let entries = producers * each;
    let bench = Bench::new(order, entries, 0);
    let takes = entries / workers;
    let others: Vec<_> = (0..workers)
        .map(|_| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || {
                let mut waiter = bench.queue.waiter();
                for _ in 0..takes {
                    let taken = poll_fn(|cx| bench.queue.poll_take(cx, &mut waiter, |_| Ok(())));
                    bench.done(block_on(taken).unwrap().0);
                }
            })
        })
        .chain((1..producers).map(|producer| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || produce(&bench, producer, each))
        }))
        .collect();
    produce(&bench, 0, each);
    others.into_iter().for_each(|other| other.join().unwrap());
    bench.check();
}

fn produce(bench: &Bench, producer: usize, each: usize) {
    let owner = bench.owner(["a", "b"][producer % 2], 1);
    for number in producer * each..(producer + 1) * each {
        bench.queue.admit(&owner, bench.work(number)).unwrap();
    }
}

/// A worker waits for an entry that is blocked until another thread gives capacity back.
pub(crate) fn wake_by_capacity(order: Order) {
    let bench = Bench::new(order, 1, 0);
    let owner = bench.owner("a", 1);
    bench.queue.admit(&owner, bench.work(0)).unwrap();
    let worker = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || {
            let mut waiter = bench.queue.waiter();
            let taken = poll_fn(|cx| bench.queue.poll_take(cx, &mut waiter, |_| bench.lease()));
            bench.done(block_on(taken).unwrap().0);
        })
    };
    bench.free.fetch_add(1, SeqCst);
    bench.queue.capacity_changed();
    worker.join().unwrap();
    bench.check();
}

/// Nobody waits: an entry is refused while another thread gives capacity back and takes. One of the two gets it.
pub(crate) fn pump_by_capacity(order: Order) {
    let bench = Bench::new(order, 1, 0);
    let owner = bench.owner("a", 1);
    bench.queue.admit(&owner, bench.work(0)).unwrap();
    let consumer = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || bench.pump_with_leases())
    };
    bench.free.fetch_add(1, SeqCst);
    bench.queue.capacity_changed();
    bench.pump_with_leases();
    consumer.join().unwrap();
    bench.check();
}

/// Nobody waits: whoever admits, or gives capacity back, takes. When all have gone, nothing is left.
pub(crate) fn pump(order: Order, threads: usize, each: usize) {
    let bench = Bench::new(order, threads * each, 1);
    let others: Vec<_> = (1..threads)
        .map(|thread| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || admit_and_pump(&bench, thread, each))
        })
        .collect();
    admit_and_pump(&bench, 0, each);
    others.into_iter().for_each(|other| other.join().unwrap());
    bench.check();
}

fn admit_and_pump(bench: &Bench, thread: usize, each: usize) {
    let owner = bench.owner(["a", "b"][thread % 2], 1);
    for number in thread * each..(thread + 1) * each {
        bench.queue.admit(&owner, bench.work(number)).unwrap();
        bench.pump_with_leases();
    }
}

/// The last entry of a FIFO is taken while the same owner admits another.
pub(crate) fn retirement(entries: usize) {
    let bench = Bench::new(Order::Weighted, entries, 0);
    let owner = bench.owner("a", 1);
    bench.queue.admit(&owner, bench.work(0)).unwrap();
    let consumer = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || bench.pump())
    };
    for number in 1..entries {
        bench.queue.admit(&owner, bench.work(number)).unwrap();
    }
    consumer.join().unwrap();
    bench.pump();
    bench.check();
}

/// Entries are cancelled while they are taken.
pub(crate) fn cancellation(order: Order, entries: usize) {
    let bench = Bench::new(order, entries, 0);
    let owner = bench.owner("a", 1);
    let tickets: Vec<_> = (0..entries)
        .map(|number| bench.queue.admit(&owner, bench.work(number)).unwrap())
        .collect();
    let consumer = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || bench.pump())
    };
    let mut cancelled = 0;
    for ticket in tickets.into_iter().rev() {
        if let Some(work) = bench.queue.cancel(ticket) {
            bench.done(work);
            cancelled += 1;
        }
    }
    let taken = consumer.join().unwrap();
    assert_eq!(cancelled + taken, entries);
    bench.check();
}

/// Entries in the middle of a FIFO are cancelled by two threads while a third appends.
pub(crate) fn cancellation_in_the_middle() {
    let bench = Bench::new(Order::Weighted, 4, 0);
    let owner = bench.owner("a", 1);
    let mut tickets: Vec<_> = (0..3)
        .map(|number| bench.queue.admit(&owner, bench.work(number)).unwrap())
        .collect();
    let (last, middle) = (tickets.pop().unwrap(), tickets.pop().unwrap());
    let others = [last, middle].map(|ticket| {
        let bench = Arc::clone(&bench);
        thread::spawn(move || bench.done(bench.queue.cancel(ticket).unwrap()))
    });
    bench.queue.admit(&owner, bench.work(3)).unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(bench.pump(), 2);
    bench.check();
}

/// The queue stops while an entry is admitted, another offered and refused, and a worker may wait.
pub(crate) fn stop(order: Order) {
    let bench = Bench::new(order, 2, 0);
    let owner = bench.owner("a", 1);
    bench.queue.admit(&owner, bench.work(0)).unwrap();
    let producer = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || {
            if let Err(refused) = bench.queue.admit(&owner, bench.work(1)) {
                assert_eq!(refused.refusal, Refusal::Stopped);
                bench.done(refused.work);
            }
        })
    };
    let worker = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || {
            let mut waiter = bench.queue.waiter();
            let never = |_: &Work| Err::<(), _>(Blocked::Owner);
            let taken = poll_fn(|cx| bench.queue.poll_take(cx, &mut waiter, never));
            assert!(block_on(taken).is_none());
        })
    };
    bench.queue.stop().into_iter().for_each(|work| bench.done(work));
    producer.join().unwrap();
    worker.join().unwrap();
    bench.check();
}

/// One thread takes, one cancels and one stops: each lease comes back once.
pub(crate) fn leases() {
    let bench = Bench::new(Order::Weighted, 2, 0);
    let owner = bench.owner("a", 2);
    let tickets = [0, 1].map(|number| bench.queue.admit(&owner, bench.work(number)).unwrap());
    let consumer = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || {
            let taken = bench.queue.take(|_| Ok(()));
            taken.into_iter().for_each(|(work, ())| bench.done(work));
        })
    };
    let canceller = {
        let bench = Arc::clone(&bench);
        thread::spawn(move || {
            bench
                .queue
                .cancel(tickets[0])
                .into_iter()
                .for_each(|work| bench.done(work))
        })
    };
    bench.queue.stop().into_iter().for_each(|work| bench.done(work));
    consumer.join().unwrap();
    canceller.join().unwrap();
    bench.check();
}

/// Everything at once, with scarce capacity: two owners admit, cancel and take.
#[cfg(shuttle)]
pub(crate) fn everything(order: Order, threads: usize, each: usize) {
    let bench = Bench::new(order, threads * each, 1);
    let others: Vec<_> = (0..threads)
        .map(|thread| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || {
                let mut tickets = Vec::new();
                for number in thread * each..(thread + 1) * each {
                    let owner = bench.owner(["a", "b"][number % 2], 2);
                    tickets.push(bench.queue.admit(&owner, bench.work(number)).unwrap());
                    if number % 3 != 0 {
                        let ticket = tickets.swap_remove(number % tickets.len());
                        bench.queue.cancel(ticket).into_iter().for_each(|work| bench.done(work));
                    }
                    if number % 2 == 0 {
                        bench.pump_with_leases();
                    }
                }
                bench.pump_with_leases();
            })
        })
        .collect();
    others.into_iter().for_each(|other| other.join().unwrap());
    bench.check();
}
