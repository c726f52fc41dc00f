//! The command line that all peers have: `--port N --nodes N --policy none|encrypt`.

/// What was asked for.
pub struct Arguments {
    /// Where to listen; 0 = anywhere.
    pub port: u16,
    /// How many variables to serve.
    pub nodes: u32,
    /// Whether to offer Basic256Sha256 as well.
    pub encrypt: bool,
}

impl Arguments {
    /// Reads the process's own arguments.
    pub fn of_process() -> Result<Self, String> {
        let mut arguments = Self {
            port: 0,
            nodes: 300,
            encrypt: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            let wrong = || format!("{name}: {value}?");
            match name.as_str() {
                "--port" => arguments.port = value.parse().map_err(|_| wrong())?,
                "--nodes" => arguments.nodes = value.parse().map_err(|_| wrong())?,
                "--policy" if value == "none" => arguments.encrypt = false,
                "--policy" if value == "encrypt" => arguments.encrypt = true,
                _ => return Err(wrong()),
            }
        }
        Ok(arguments)
    }
}
