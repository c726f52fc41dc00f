//! The `backplane` program: reads the command line and hands over to the library.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    backplane::commands::run(backplane::cli::Cli::parse())
}
