//! `cargo xtask`: dispatches to the commands in the library.

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
