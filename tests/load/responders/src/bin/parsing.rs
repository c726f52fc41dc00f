//! `parsing [--port N] [--nodes N] [--threads N]`: really decodes, looks up and encodes, and does nothing else.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use backplane_responders::arguments::Arguments;
use backplane_responders::{Parsing, Services, Table, serve};
use backplane_types::DateTime;

fn run() -> Result<(), String> {
    let arguments = Arguments::of_process(&["--port", "--nodes", "--threads"])?;
    let nodes = arguments.get("--nodes").unwrap_or(300);
    let changed = DateTime::from_system_time(SystemTime::now());
    let table = Arc::new(Table::new(nodes, changed));
    serve(&arguments, |url| Ok(Parsing::new(table, Services::new(url))))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("parsing: {error}");
            ExitCode::FAILURE
        }
    }
}
