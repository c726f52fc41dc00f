//! Counts what the clients reported against what was expected of them.

use std::collections::BTreeSet;
use std::process::ExitCode;

use crate::expect::Expectations;

/// The results so far.
pub(crate) struct Tally {
    expectations: Expectations,
    passed: usize,
    failed: usize,
    skipped: usize,
    seen: BTreeSet<(String, String)>,
    clients: BTreeSet<String>,
}

impl Tally {
    pub(crate) fn new(expectations: Expectations) -> Self {
        Self {
            expectations,
            passed: 0,
            failed: 0,
            skipped: 0,
            seen: BTreeSet::new(),
            clients: BTreeSet::new(),
        }
    }

    /// One case of one client: it passed, or `problem` says why not.
    pub(crate) fn record(&mut self, client: &str, case: &str, problem: Option<&str>) {
        self.clients.insert(client.to_owned());
        if !self.seen.insert((client.to_owned(), case.to_owned())) {
            self.failed += 1;
            println!("FAIL {client} {case}: reported twice");
            return;
        }
        match (problem, self.expectations.reason(client, case)) {
            (None, None) => {
                self.passed += 1;
                println!("ok   {client} {case}");
            }
            (Some(_), Some(reason)) => {
                self.skipped += 1;
                println!("skip {client} {case}: {reason}");
            }
            (Some(problem), None) => {
                self.failed += 1;
                println!("FAIL {client} {case}: {problem}");
            }
            (None, Some(reason)) => {
                self.failed += 1;
                println!("FAIL {client} {case}: passes although expect.toml says it cannot ({reason})");
            }
        }
    }

    /// Whether nothing has failed and something has run.
    fn is_good(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// Prints the closing line. When everything was to run, a listed case that no client ran is as wrong as one that
    /// failed.
    pub(crate) fn finish(mut self, complete: bool) -> ExitCode {
        let mut unseen = Vec::new();
        for client in self.clients.iter().filter(|_| complete) {
            for case in self.expectations.listed(client) {
                if !self.seen.contains(&(client.clone(), case.to_owned())) {
                    unseen.push(format!("{client} {case}"));
                }
            }
        }
        for case in unseen {
            self.failed += 1;
            println!("FAIL {case}: is in expect.toml but did not run");
        }
        println!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        );
        if self.is_good() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
