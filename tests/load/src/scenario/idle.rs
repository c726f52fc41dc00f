//! idle: many sessions that do nothing; what each of them takes in memory, and what all of them take in CPU.

use std::time::Duration;

use backplane_types::{NodeId, ReadRequest, ids};

use crate::closed::{Edge, Outcome, Problems};
use crate::error::{LoadError, setup};
use crate::link::Link;
use crate::report::Row;
use crate::requests::value_of;
use crate::run::{Meter, Run};

pub(crate) fn run(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let (sessions, _, _) = run.load.shape(run.scenario);
    let clock = run.target.clock;
    // What the first session makes a server allocate is not counted.
    let mut links = vec![Link::with_session(&run.target)?];
    std::thread::sleep(Duration::from_secs_f64(run.load.warmup));
    let before = run.sample();
    let began = clock.elapsed();
    for number in 0..sessions {
        let link = Link::with_session(&run.target).map_err(|error| setup(format!("session {number}: {error}")))?;
        links.push(link);
    }
    let opening = clock.elapsed().saturating_sub(began);
    let after = run.sample();
    let mut meter = Meter::new(run);
    meter.edge(Edge::Begin);
    std::thread::sleep(Duration::from_secs_f64(run.load.seconds));
    meter.edge(Edge::End);
    let mut problems = Problems::default();
    for link in &mut links {
        let request = ReadRequest {
            nodes_to_read: vec![value_of(&NodeId::numeric(
                0,
                ids::variable::SERVER_SERVER_STATUS_CURRENT_TIME,
            ))],
            ..ReadRequest::default()
        };
        if let Err(error) = link.call("Read", request) {
            problems.add(1, || format!("an idle session is gone: {error}"));
        }
    }
    // What is counted are sessions, and the time is that of opening them; CPU is that of the idle window.
    let outcome = Outcome {
        requests: u64::from(sessions),
        time: opening,
        problems,
        ..Outcome::default()
    };
    let mut row = run.row(&outcome, &meter.cost);
    let idle_cpu = meter.cost.server.map(|sample| {
        let window = Duration::from_nanos(sample.cpu).as_secs_f64() / run.load.seconds.max(1e-9);
        window * 100.0
    });
    row.server_cpu_percent = idle_cpu;
    row.server_us_per_request = None;
    row.rss_per_session_kib = before.zip(after).map(|(before, after)| {
        // KiB of a process are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let grown = after.rss.saturating_sub(before.rss) as f64;
        grown / f64::from(sessions.max(1))
    });
    row.note = Some(format!(
        "{sessions} sessions opened in {:.1} s, {:.1} KiB each, {:.2} % CPU when idle",
        opening.as_secs_f64(),
        row.rss_per_session_kib.unwrap_or_default(),
        idle_cpu.unwrap_or_default()
    ));
    Ok(vec![row])
}
