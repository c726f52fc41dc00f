//! The world of one run: its clock, and who comes next.
//!
//! Nothing in it waits: the clock jumps to the next thing that is due anywhere, everything that is due is done in a fixed order, and so on
//! until the run is over. Then everybody settles, leaves, and nothing must be left.

use std::time::Duration;

use backplane_types::{DateTime, Now};

use crate::client::{Client, Stream};
use crate::log::{Log, Rule};
use crate::plant::{Manners, Plant};
use crate::random::Dice;
use crate::server::Server;
use crate::{Options, Outcome};

/// The monotonic time at which a run begins.
const START: Duration = Duration::from_secs(1_000);
/// How long everybody has to settle when the script is over, and to leave after that.
const SETTLE: Duration = Duration::from_secs(10);
const LEAVE: Duration = Duration::from_secs(65);
/// How long the server takes to see that a connection broke.
const NOTICE: (u64, u64) = (100, 400_000);
/// Steps of a run, at most: more would mean that time stands still.
const MAX_STEPS: u64 = 5_000_000;
/// Steps at the same time, at most.
const MAX_STEPS_AT_ONCE: u64 = 20_000;

/// See the module text.
pub(crate) struct World {
    now: Now,
    log: Log,
    plant: Plant,
    server: Server,
    clients: Vec<Client>,
    /// Connections that broke, and when the server sees it.
    broken: Vec<(Duration, u64)>,
    dice: Dice,
    /// When the server stalls next.
    next_stall: Duration,
    reload_at: Vec<u64>,
    reload_every: bool,
    boundary: u64,
    stalls: bool,
}

impl World {
    /// None if the world's own settings are refused, which no seed can cause.
    pub(crate) fn new(options: &Options) -> Option<Self> {
        let now = Now::new(START, DateTime::from_unix_nanos(1_790_000_000_000_000_000));
        let manners = Manners {
            pace: options.pace,
            faults: options.faults,
            reloads: options.reloads,
            renumbers: options.renumbers,
            vanishes: options.vanishes,
        };
        let plant = Plant::new(options.seed, manners, now)?;
        let server = Server::new(options.seed, &plant, options.mutant)?;
        let clients = (1..=options.clients)
            .map(|number| Client::new(options.seed, number, now, options.drops))
            .collect();
        let mut dice = Dice::of(options.seed, "world", 0);
        let next_stall = START + Duration::from_millis(dice.between(3_000, 20_000));
        Some(Self {
            now,
            log: Log::new(options.trace),
            plant,
            server,
            clients,
            broken: Vec::new(),
            dice,
            next_stall,
            reload_at: options.reload_at.clone(),
            reload_every: options.reload_every_boundary,
            boundary: 0,
            stalls: options.stalls,
        })
    }

    pub(crate) fn run(mut self, options: &Options) -> Outcome {
        let end = START + options.duration;
        self.run_until(end);
        self.plant.calm_down(&mut self.log, self.now);
        self.stalls = false;
        for client in &mut self.clients {
            client.calm_down(self.now);
        }
        self.run_until(end + SETTLE);
        if !self.log.is_broken() {
            for client in &self.clients {
                client.check_settled(&mut self.log);
            }
        }
        let streams: Vec<Stream> = self.clients.iter().map(|client| client.book.streams()).collect();
        if self.log.is_broken() {
            return self.outcome(streams);
        }
        for client in &mut self.clients {
            client.leave(&mut self.log, self.now);
        }
        // Subscriptions that were left behind end by themselves.
        self.run_until(end + SETTLE + LEAVE);
        if !self.log.is_broken() {
            for client in &self.clients {
                client.check_gone(&mut self.log);
            }
            self.server.check_empty(&mut self.log);
        }
        self.outcome(streams)
    }

    fn outcome(self, streams: Vec<Stream>) -> Outcome {
        let (hash, stats) = (self.log.hash(), self.log.stats);
        let (violations, trace) = self.log.finish();
        Outcome {
            hash,
            stats,
            violations,
            trace,
            streams,
            boundaries: self.plant.boundaries,
        }
    }

    /// Goes from one thing that is due to the next.
    fn run_until(&mut self, end: Duration) {
        let (mut steps, mut at_once) = (0, 0);
        while !self.log.is_broken()
            && let Some(next) = self.next().filter(|next| *next <= end)
        {
            if next > self.now.mono {
                self.now = self.now.after(next - self.now.mono);
                self.log.now = self.now.mono - START;
                at_once = 0;
            }
            steps += 1;
            at_once += 1;
            if steps > MAX_STEPS || at_once > MAX_STEPS_AT_ONCE {
                self.log.broken(Rule::Bounded, format_args!("time stands still"));
            }
            self.step();
        }
        if self.now.mono < end {
            self.now = self.now.after(end - self.now.mono);
            self.log.now = self.now.mono - START;
        }
    }

    fn next(&self) -> Option<Duration> {
        let clients = self.clients.iter().filter_map(Client::next);
        let broken = self.broken.iter().map(|(at, _)| *at);
        let others = [
            self.server.next(self.now.mono),
            self.plant.next(),
            self.stalls.then_some(self.next_stall),
        ];
        clients.chain(broken).chain(others.into_iter().flatten()).min()
    }

    fn step(&mut self) {
        let now = self.now;
        if self.stalls && self.next_stall <= now.mono {
            self.stall();
        }
        if self.plant.run(&mut self.log, now) {
            self.server.poll_tasks(&mut self.log, now);
        }
        let due: Vec<u64> = self
            .broken
            .iter()
            .filter(|(at, _)| *at <= now.mono)
            .map(|(_, number)| *number)
            .collect();
        self.broken.retain(|(at, _)| *at > now.mono);
        for number in due {
            self.server.disconnected(&mut self.log, now, number);
        }
        self.run_clients();
        self.server.run(&mut self.log, &self.plant, now);
        self.plant.look_at_calls(&mut self.log, now);
        self.reload_at_boundary();
        self.server.poll_tasks(&mut self.log, now);
        self.deliver();
        self.server.check_bounds(&mut self.log);
    }

    fn run_clients(&mut self) {
        let now = self.now;
        for client in &mut self.clients {
            let (made, lost) = client.run(&mut self.log, now);
            if let Some(number) = made {
                self.server.accept(now, number);
            }
            if let Some(number) = lost {
                self.log.stats.drops += 1;
                let after = self.dice.between(NOTICE.0, NOTICE.1);
                self.broken.push((now.mono + Duration::from_micros(after), number));
            }
            while let Some((number, bytes)) = client.arrived(now) {
                self.server.receive(&mut self.log, &self.plant, now, number, &bytes);
            }
        }
    }

    /// What the server has to send goes on its way.
    fn deliver(&mut self) {
        for number in self.server.connections() {
            let (bytes, ends) = self.server.take_output(number);
            if bytes.is_empty() && !ends {
                continue;
            }
            if let Some(client) = self.clients.iter_mut().find(|it| it.connection() == Some(number)) {
                client.transmit(&mut self.log, self.now, &bytes, ends);
            }
            if ends {
                self.server.disconnected(&mut self.log, self.now, number);
            }
        }
    }

    /// The server does nothing for a while.
    fn stall(&mut self) {
        let now = self.now.mono;
        let ms = match self.dice.below(5) {
            0 => self.dice.between(400, 2_500),
            _ => self.dice.between(20, 200),
        };
        self.log.say("world", format_args!("the shard stalls for {ms} ms"));
        self.server.shard_free = self.server.shard_free.max(now + Duration::from_millis(ms));
        self.next_stall = now + Duration::from_millis(self.dice.between(2_000, 15_000));
    }

    /// Reloads that were asked for at calls of managers.
    fn reload_at_boundary(&mut self) {
        while self.boundary < self.plant.boundaries {
            self.boundary += 1;
            if self.reload_every || self.reload_at.contains(&self.boundary) {
                let manager = usize::from(!self.boundary.is_multiple_of(4));
                self.plant.reload(&mut self.log, self.now, manager, true);
            }
        }
    }
}
