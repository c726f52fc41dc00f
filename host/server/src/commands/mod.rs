//! The commands: each prints for people, and says with its exit code what scripts need to know.
//!
//! 0: done. 1: it could not be done. 64: the configuration or the command line is wrong.

mod cert;
mod check;
mod plugin;
mod serve;
mod user;

use std::process::ExitCode;

use crate::cli::{Cli, Command};

/// Exit code for a wrong configuration or command line (EX_USAGE).
const USAGE: u8 = 64;

/// What a command ends with: nothing, or an exit code and one message.
type Outcome = Result<(), Failure>;

/// Why a command failed.
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn usage(message: impl ToString) -> Self {
        Self {
            code: USAGE,
            message: message.to_string(),
        }
    }

    fn other(message: impl ToString) -> Self {
        Self {
            code: 1,
            message: message.to_string(),
        }
    }
}

/// Prints what is wrong with a command line, or the help that it asked for.
#[must_use]
pub fn refuse(error: &clap::Error) -> ExitCode {
    // Nobody is left to be told that the terminal is gone.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

/// Runs one command.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let outcome = match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::CheckConfig { config } => check::run(&config),
        Command::Plugin(command) => plugin::run(&command),
        Command::Cert(command) => cert::run(&command),
        Command::User(command) => user::run(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("backplane: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}
