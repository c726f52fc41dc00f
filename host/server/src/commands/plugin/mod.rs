//! `backplane plugin`: what a vendor makes a plugin with, and what an operator looks at it with.

mod build;
mod check;
mod look;
mod new;
mod package;
mod test;

use super::Outcome;
use crate::cli::PluginCommand;

pub(super) fn run(command: &PluginCommand) -> Outcome {
    match command {
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build { project, json } => build::run(project, *json),
        PluginCommand::Check(args) => check::run(args),
        PluginCommand::Pack(args) => package::run_pack(args),
        PluginCommand::Key(args) => package::run_key(args),
        PluginCommand::Sign(args) => package::run_sign(args),
        PluginCommand::Verify(args) => package::run_verify(args),
        PluginCommand::Test(args) => test::run(args),
        PluginCommand::Inspect { file, json } => look::at_one(file, *json),
        PluginCommand::List { folder, json } => look::at_folder(folder, *json),
    }
}
