//! `backplane plugin`: what a vendor makes a plugin with, and what an operator looks at it with.

mod build;
mod look;
mod new;
mod test;

use super::Outcome;
use crate::cli::PluginCommand;

pub(super) fn run(command: &PluginCommand) -> Outcome {
    match command {
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build { project, json } => build::run(project, *json),
        PluginCommand::Test(args) => test::run(args),
        PluginCommand::Inspect { file, json } => look::at_one(file, *json),
        PluginCommand::List { folder, json } => look::at_folder(folder, *json),
    }
}
