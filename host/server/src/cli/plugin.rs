//! `backplane plugin`: the words of a vendor and of an operator.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `backplane plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Start a plugin: a project that builds, with tests and a manifest.
    New(NewArgs),
    /// Compile a plugin's project to a component, `dist/<name>.wasm`, that would load.
    Build {
        /// The project's folder.
        #[arg(value_name = "DIR", default_value = ".")]
        project: PathBuf,
        /// As one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// What a component is, what it needs, and whether this host would load it, in words.
    Check(CheckArgs),
    /// Put a manifest into a component, so that the one file says what it is and what it asks for.
    Pack(PackArgs),
    /// Make a publisher's key: the secret half signs, the public half goes to operators.
    Key(KeyArgs),
    /// Sign a packed component.
    Sign(SignArgs),
    /// Whether somebody who is trusted vouches for a component.
    Verify(VerifyArgs),
    /// Do to a plugin what a bad night does, in a server of its own: exit code 0 when clients would not notice.
    Test(TestArgs),
    /// The plugins in a folder, and whether they would load.
    List {
        /// The plugin folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// As one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// What one component exports, imports and asks for.
    Inspect {
        /// The component.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// As one JSON document.
        #[arg(long)]
        json: bool,
    },
}

/// `backplane plugin new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Its name: a-z, 0-9 and -, beginning with a letter.
    pub name: String,
    /// The language it is written in.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub lang: Language,
    /// What it is for.
    #[arg(long, value_enum, default_value_t = Kind::NodeManager)]
    pub kind: Kind,
    /// Where; a folder of its name when left out. It must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// As one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// `backplane plugin test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The component, or the folder of a project that was built.
    #[arg(value_name = "FILE|DIR", default_value = ".")]
    pub component: PathBuf,
    /// The settings file that an operator would put beside it.
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Reload it at every step of a client's script as well, and compare what the client is told.
    #[arg(long)]
    pub reload_torture: bool,
    /// Steps of the script, and reloads.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub reloads: u32,
    /// Reload it this often as well, and compare memory and open files before and after.
    #[arg(long, value_name = "RELOADS", value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub soak: Option<u32>,
    /// Do not compare variables with this in their node id, because they depend on time as well; may be given more than once.
    #[arg(long, value_name = "TEXT")]
    pub ignore: Vec<String>,
    /// Show what the server and the plugin log.
    #[arg(short, long)]
    pub verbose: bool,
    /// As one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// `backplane plugin check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub component: PathBuf,
    /// The settings file that an operator would put beside it.
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// As one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// `backplane plugin pack`.
#[derive(Debug, Args)]
pub struct PackArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub component: PathBuf,
    /// The manifest; `plugin.toml` beside the component when left out.
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Where the result goes; in the component's place when left out.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// As one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// `backplane plugin key`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Where the secret half goes; it must not exist. The public half is put beside it as `.pub`.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What operators read of the publisher.
    #[arg(long)]
    pub name: String,
    /// As one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// `backplane plugin sign`.
#[derive(Debug, Args)]
pub struct SignArgs {
    /// The packed component.
    #[arg(value_name = "FILE")]
    pub component: PathBuf,
    /// The secret half of the publisher's key.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Where the result goes; in the component's place when left out.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// As one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// `backplane plugin verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub component: PathBuf,
    /// A public key file, or a folder of them (`*.pub`); may be given more than once.
    #[arg(long, value_name = "FILE|DIR")]
    pub trust: Vec<PathBuf>,
    /// A revocation list.
    #[arg(long, value_name = "FILE")]
    pub revoked: Option<PathBuf>,
    /// A component has to be signed by somebody who is trusted.
    #[arg(long)]
    pub require_signed: bool,
    /// As one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Languages that there is a project to start from for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Rust, with the SDK of this version in the project.
    Rust,
}

/// What a plugin is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Serves nodes.
    NodeManager,
    /// Tells whose work the requests of a peer are.
    Classifier,
}
