//! What a run says: one row for each server, as a table or as JSON.
//!
//! Owns names and units of the columns. Computes them from what was measured; measures nothing.

use serde::Serialize;

use crate::closed::Outcome;
use crate::error::{LoadError, setup};
use crate::process::Sample;
use crate::table::{aligned, brief, decimals, micro, thousands};

/// One server in one scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) scenario: String,
    pub(crate) peer: String,
    pub(crate) requests: u64,
    pub(crate) requests_per_s: f64,
    pub(crate) server_us_per_request: Option<f64>,
    pub(crate) server_user_us_per_request: Option<f64>,
    pub(crate) server_system_us_per_request: Option<f64>,
    pub(crate) server_cpu_percent: Option<f64>,
    pub(crate) client_us_per_request: f64,
    pub(crate) client_cpu_percent: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
    pub(crate) server_voluntary_switches_per_s: Option<f64>,
    pub(crate) server_involuntary_switches_per_s: Option<f64>,
    pub(crate) server_threads: Option<u64>,
    pub(crate) server_rss_kib: Option<u64>,
    pub(crate) client_rss_kib: u64,
    pub(crate) allocations_per_request: Option<f64>,
    pub(crate) allocated_bytes_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rss_per_session_kib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected_per_s: Option<f64>,
    /// counters: samples of the item that got the fewest, as a share of those due, as the client and as the server saw them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worst_item_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worst_item_share_at_server: Option<f64>,
    /// changes: CPU of the server beside many items that do not change, as a multiple of that without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rss_per_item_bytes: Option<f64>,
    /// What a scenario says beyond the columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    pub(crate) errors: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<String>,
}

/// What was read at both edges of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) server: Option<Sample>,
    pub(crate) client: Sample,
    /// Allocations and their bytes.
    pub(crate) allocations: Option<(u64, u64)>,
}

// Counts and times are far below 2^53.
#[allow(clippy::cast_precision_loss)]
fn number(value: u64) -> f64 {
    value as f64
}

fn micros(nanos: u64) -> f64 {
    number(nanos) / 1_000.0
}

impl Row {
    pub(crate) fn new(scenario: &str, peer: &str, outcome: &Outcome, cost: &Cost) -> Self {
        let requests = number(outcome.requests).max(1.0);
        let seconds = outcome.time.as_secs_f64().max(1e-9);
        let percent = |nanos: u64| number(nanos) / 1e7 / seconds;
        let server = cost.server.as_ref();
        // The precise sum of the scheduler, split as the coarse ticks say.
        let split = |part: fn(&Sample) -> u64| {
            server.map(|sample| {
                let ticks = number(sample.user.saturating_add(sample.system)).max(1.0);
                micros(sample.cpu) / requests * number(part(sample)) / ticks
            })
        };
        let quantile = |share| micros(outcome.latency.quantile(share));
        Self {
            scenario: scenario.to_owned(),
            peer: peer.to_owned(),
            requests: outcome.requests,
            requests_per_s: number(outcome.requests) / seconds,
            server_us_per_request: server.map(|sample| micros(sample.cpu) / requests),
            server_user_us_per_request: split(|sample| sample.user),
            server_system_us_per_request: split(|sample| sample.system),
            server_cpu_percent: server.map(|sample| percent(sample.cpu)),
            client_us_per_request: micros(cost.client.cpu) / requests,
            client_cpu_percent: percent(cost.client.cpu),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: micros(outcome.latency.highest()),
            server_voluntary_switches_per_s: server.map(|sample| number(sample.voluntary) / seconds),
            server_involuntary_switches_per_s: server.map(|sample| number(sample.involuntary) / seconds),
            server_threads: server.map(|sample| sample.threads),
            server_rss_kib: server.map(|sample| sample.rss),
            client_rss_kib: cost.client.rss,
            allocations_per_request: cost.allocations.map(|(count, _)| number(count) / requests),
            allocated_bytes_per_request: cost.allocations.map(|(_, bytes)| number(bytes) / requests),
            rss_per_session_kib: None,
            expected_per_s: None,
            worst_item_share: None,
            worst_item_share_at_server: None,
            cost_ratio: None,
            rss_per_item_bytes: None,
            note: None,
            errors: outcome.problems.count,
            problems: outcome.problems.words.clone(),
        }
    }

    /// One line of JSON.
    pub(crate) fn json(&self) -> Result<String, LoadError> {
        serde_json::to_string(self).map_err(|error| setup(error.to_string()))
    }

    fn cells(&self) -> Vec<String> {
        let optional =
            |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| decimals(value, digits));
        vec![
            self.peer.clone(),
            thousands(self.requests_per_s),
            match (
                self.server_us_per_request,
                self.server_user_us_per_request,
                self.server_system_us_per_request,
            ) {
                (Some(all), Some(user), Some(system)) => {
                    format!("{} ({}+{})", brief(all), brief(user), brief(system))
                }
                _ => "-".to_owned(),
            },
            optional(self.server_cpu_percent, 0),
            brief(self.client_us_per_request),
            decimals(self.client_cpu_percent, 0),
            micro(self.p50_us),
            micro(self.p90_us),
            micro(self.p99_us),
            micro(self.p999_us),
            micro(self.max_us),
            optional(self.server_voluntary_switches_per_s, 0),
            optional(self.server_involuntary_switches_per_s, 0),
            self.server_threads
                .map_or("-".to_owned(), |threads| threads.to_string()),
            self.server_rss_kib
                .map_or("-".to_owned(), |kib| decimals(number(kib) / 1_024.0, 1)),
            optional(self.allocations_per_request, 3),
            optional(self.allocated_bytes_per_request, 0),
            self.errors.to_string(),
        ]
    }
}

const COLUMNS: [&str; 18] = [
    "server",
    "req/s",
    "server us/req (user+sys)",
    "CPU %",
    "client us/req",
    "CPU %",
    "p50 us",
    "p90 us",
    "p99 us",
    "p99.9 us",
    "max us",
    "waits/s",
    "preempted/s",
    "threads",
    "RSS MB",
    "allocs/req",
    "bytes/req",
    "errors",
];

/// The middle of several runs of one server, column by column; errors are those of all runs.
pub(crate) fn median(rows: &[Row]) -> Option<Row> {
    let mut row = rows.first()?.clone();
    let middle = |field: &dyn Fn(&Row) -> f64| median_of(rows.iter().map(field).collect());
    let maybe = |field: &dyn Fn(&Row) -> Option<f64>| {
        let there: Vec<f64> = rows.iter().filter_map(field).collect();
        (!there.is_empty()).then(|| median_of(there))
    };
    // Counts that are shown as they are: the one of the run in the middle.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = |value: f64| value.round() as u64;
    row.requests = whole(middle(&|row| number(row.requests)));
    row.requests_per_s = middle(&|row| row.requests_per_s);
    row.server_us_per_request = maybe(&|row| row.server_us_per_request);
    row.server_user_us_per_request = maybe(&|row| row.server_user_us_per_request);
    row.server_system_us_per_request = maybe(&|row| row.server_system_us_per_request);
    row.server_cpu_percent = maybe(&|row| row.server_cpu_percent);
    row.client_us_per_request = middle(&|row| row.client_us_per_request);
    row.client_cpu_percent = middle(&|row| row.client_cpu_percent);
    row.p50_us = middle(&|row| row.p50_us);
    row.p90_us = middle(&|row| row.p90_us);
    row.p99_us = middle(&|row| row.p99_us);
    row.p999_us = middle(&|row| row.p999_us);
    row.max_us = middle(&|row| row.max_us);
    row.server_voluntary_switches_per_s = maybe(&|row| row.server_voluntary_switches_per_s);
    row.server_involuntary_switches_per_s = maybe(&|row| row.server_involuntary_switches_per_s);
    row.server_threads = maybe(&|row| row.server_threads.map(number)).map(whole);
    row.server_rss_kib = maybe(&|row| row.server_rss_kib.map(number)).map(whole);
    row.client_rss_kib = whole(middle(&|row| number(row.client_rss_kib)));
    row.allocations_per_request = maybe(&|row| row.allocations_per_request);
    row.allocated_bytes_per_request = maybe(&|row| row.allocated_bytes_per_request);
    row.rss_per_session_kib = maybe(&|row| row.rss_per_session_kib);
    row.worst_item_share = maybe(&|row| row.worst_item_share);
    row.worst_item_share_at_server = maybe(&|row| row.worst_item_share_at_server);
    row.cost_ratio = maybe(&|row| row.cost_ratio);
    row.rss_per_item_bytes = maybe(&|row| row.rss_per_item_bytes);
    row.note = (rows.len() == 1).then(|| row.note.clone()).flatten();
    row.errors = rows.iter().map(|row| row.errors).sum();
    row.problems = rows.iter().flat_map(|row| row.problems.iter().cloned()).collect();
    row.problems.sort();
    row.problems.dedup();
    Some(row)
}

/// The middle value; of two in the middle, what lies between them. 0 of none.
pub(crate) fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or_default();
    match values.len() % 2 {
        0 => values
            .get((values.len() / 2).saturating_sub(1))
            .map_or(upper, |lower| f64::midpoint(*lower, upper)),
        _ => upper,
    }
}

/// A Markdown table, aligned for people.
pub(crate) fn table(rows: &[Row]) -> String {
    let header: Vec<String> = COLUMNS.map(str::to_owned).into();
    let body: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    aligned(&header, &body)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Cost, Row, median, median_of, table};
    use crate::closed::Outcome;
    use crate::process::Sample;

    #[test]
    fn a_row_is_made_of_what_was_measured() {
        let mut outcome = Outcome {
            requests: 2_000,
            time: Duration::from_secs(2),
            ..Outcome::default()
        };
        for value in 1..=2_000 {
            outcome.latency.record(value * 1_000);
        }
        outcome.problems.add(3, || "service result BadTimeout".to_owned());
        let sample = Sample {
            cpu: 10_000_000,
            user: 10_000_000,
            system: 30_000_000,
            voluntary: 500,
            involuntary: 20,
            threads: 4,
            rss: 2_048,
        };
        let cost = Cost {
            server: Some(sample),
            client: Sample {
                cpu: 4_000_000,
                ..Sample::default()
            },
            allocations: Some((4_000, 100_000)),
        };
        let row = Row::new("read", "x", &outcome, &cost);
        assert_eq!((row.requests_per_s, row.client_us_per_request), (1_000.0, 2.0));
        assert_eq!(row.server_us_per_request, Some(5.0));
        assert_eq!(row.server_user_us_per_request, Some(1.25));
        assert_eq!(row.server_system_us_per_request, Some(3.75));
        assert_eq!(row.server_voluntary_switches_per_s, Some(250.0));
        assert_eq!(
            (row.allocations_per_request, row.allocated_bytes_per_request),
            (Some(2.0), Some(50.0))
        );
        assert!((row.p50_us - 1_000.0).abs() < 16.0 && row.max_us == 2_000.0, "{row:?}");
        assert_eq!(row.errors, 3);
        let text = table(&[row]);
        assert!(text.contains("5.00 (1.25+3.75)"), "{text}");
        assert_eq!(text.lines().count(), 3);
        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    }

    #[test]
    fn the_middle_of_several_runs() {
        assert_eq!(median_of(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median_of(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median_of(Vec::new()), 0.0);
        let row = |requests_per_s, errors| Row {
            requests_per_s,
            errors,
            problems: vec!["x".to_owned(); usize::from(errors > 0)],
            ..Row::default()
        };
        let middle = median(&[row(5.0, 0), row(1.0, 2), row(3.0, 1)]).unwrap();
        assert_eq!((middle.requests_per_s, middle.errors), (3.0, 3));
        assert_eq!(middle.problems, ["x"]);
        assert!(median(&[]).is_none());
    }

    #[test]
    fn a_server_without_a_process_has_no_cost() {
        let row = Row::new("read", "x", &Outcome::default(), &Cost::default());
        assert_eq!((row.server_us_per_request, row.requests_per_s), (None, 0.0));
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["server_us_per_request"], serde_json::Value::Null);
        assert_eq!(json["scenario"], "read");
    }
}
