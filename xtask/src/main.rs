//! `cargo xtask`: dispatches to the commands in the library and beside it.

mod build;
mod demo;
mod models;
mod test;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer tools of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds the components for wasm32-wasip2 and the server.
    Build,
    /// Builds everything and serves opc.tcp://127.0.0.1:4840/ with the simulator.
    Demo {
        /// The port; 0 picks a free one.
        #[arg(long, default_value_t = 4840)]
        port: u16,
    },
    /// Runs every test, real clients included.
    Test {
        /// A client that cannot be installed is a failure instead of a skip.
        #[arg(long)]
        require_clients: bool,
    },
    /// Runs the model checkers' tests alone.
    Models,
    /// Writes the generated Rust sources and the node table of namespace 0.
    Codegen {
        /// Folder with Opc.Ua.NodeSet2.Services.xml, NodeIds.csv, StatusCode.csv and the other schema files.
        #[arg(long, value_name = "DIR")]
        schemas: PathBuf,
        /// Writes nothing; fails if a committed file differs.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        Command::Build => done(build::build()),
        Command::Demo { port } => done(demo::demo(*port)),
        Command::Models => done(models::test()),
        Command::Test { require_clients } => done(test::test(*require_clients)),
        Command::Codegen { schemas, check } => codegen(schemas, *check),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn done(outcome: tools::Outcome) -> Result<ExitCode, Box<dyn std::error::Error>> {
    outcome?;
    Ok(ExitCode::SUCCESS)
}

fn codegen(schemas: &Path, check: bool) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let root = xtask::repository_root();
    let outputs = xtask::codegen::generate(schemas)?;
    if !check {
        xtask::codegen::write(&outputs, &root)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stale = xtask::codegen::differing(&outputs, &root);
    for path in &stale {
        eprintln!("differs from what the schemas give: {}", path.display());
    }
    Ok(if stale.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
