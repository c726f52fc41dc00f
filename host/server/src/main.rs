//! The `backplane` program: reads the command line and hands over to the library.

use std::process::ExitCode;

use clap::Parser;

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = backplane::allocations::COUNTED;

fn main() -> ExitCode {
    match backplane::cli::Cli::try_parse() {
        Ok(cli) => backplane::commands::run(cli),
        Err(error) => backplane::commands::refuse(&error),
    }
}
