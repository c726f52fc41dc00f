//! `echo [--port N] [--bytes N] [--threads N]`: answers every request with the same bytes. `--nodes` is taken and of no use.

use std::process::ExitCode;

use backplane_responders::arguments::Arguments;
use backplane_responders::{Echo, Services, serve};

/// A chunk with one Double and both timestamps.
const ONE_VALUE: u32 = 86;

fn run() -> Result<(), String> {
    let arguments = Arguments::of_process(&["--port", "--nodes", "--bytes", "--threads"])?;
    let bytes = arguments.get("--bytes").unwrap_or(ONE_VALUE);
    let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
    serve(&arguments, |url| Echo::new(bytes, Services::new(url)))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}
