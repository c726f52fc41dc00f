//! The `backplane` program: reads the command line and hands over to the library.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match backplane::cli::Cli::try_parse() {
        Ok(cli) => backplane::commands::run(cli),
        Err(error) => backplane::commands::refuse(&error),
    }
}
