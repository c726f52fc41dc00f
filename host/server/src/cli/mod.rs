//! The command line. Owns the words; every command's work is done in the module it belongs to.

mod plugin;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use plugin::{
    CheckArgs, KeyArgs, Kind, Language, NewArgs, PackArgs, PluginCommand, SignArgs, TestArgs, VerifyArgs,
};

/// An OPC UA server whose node managers are WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "backplane", version, about, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve until SIGTERM; SIGHUP rereads configuration and trust lists.
    Serve(ServeArgs),
    /// Read a configuration, say everything that is wrong with it (exit code 64), or print what is in effect.
    CheckConfig {
        /// The configuration file.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Make, check and look at plugins.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Look at and change whom the server trusts.
    #[command(subcommand)]
    Cert(CertCommand),
    /// Users of the configuration.
    #[command(subcommand)]
    User(UserCommand),
}

/// `backplane serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The configuration file.
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present = "demo",
        conflicts_with = "demo"
    )]
    pub config: Option<PathBuf>,
    /// Loopback, None and the secure policies, anonymous and user1/password1, every client trusted: for trying things out.
    #[arg(long)]
    pub demo: bool,
    /// Listen on this port instead; 0 picks a free one.
    #[arg(long)]
    pub port: Option<u16>,
    /// Keep keys, trust lists and caches here instead.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Load plugins from here instead.
    #[arg(long, value_name = "DIR")]
    pub plugins: Option<PathBuf>,
    /// Trust every client certificate: for demonstrations and tests only.
    #[arg(long)]
    pub auto_trust: bool,
    /// Log as JSON lines.
    #[arg(long)]
    pub log_json: bool,
    /// Log filter, such as `debug` or `info,backplane=debug`.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}

/// Where the state folder is.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// The configuration file that names the state folder.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state folder itself.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub state: Option<PathBuf>,
}

/// `backplane cert`.
#[derive(Debug, Subcommand)]
pub enum CertCommand {
    /// Own, trusted and rejected certificates.
    List {
        /// Where.
        #[command(flatten)]
        state: StateArgs,
    },
    /// Move a rejected certificate to the trusted ones.
    Trust {
        /// The SHA-1 thumbprint in hexadecimal, or a beginning of it that is unique.
        thumbprint: String,
        /// Where.
        #[command(flatten)]
        state: StateArgs,
    },
}

/// `backplane user`.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Read a password from standard input and print its hash for the configuration.
    Hash,
}
