//! The command line: `--name value` pairs of numbers, and nothing else.

/// Numbers given on the command line, by name.
#[derive(Clone, Debug)]
pub struct Arguments {
    given: Vec<(String, u32)>,
}

impl Arguments {
    /// Reads the process's own arguments; only `known` names are allowed, such as `"--port"`.
    ///
    /// # Errors
    /// A text for people: an unknown name, or a value that is missing or not a number.
    pub fn of_process(known: &[&str]) -> Result<Self, String> {
        Self::parse(std::env::args().skip(1), known)
    }

    fn parse(words: impl IntoIterator<Item = String>, known: &[&str]) -> Result<Self, String> {
        let mut words = words.into_iter();
        let mut given = Vec::new();
        while let Some(name) = words.next() {
            if !known.contains(&name.as_str()) {
                return Err(format!("unknown argument {name}; known: {}", known.join(", ")));
            }
            let value = words.next().ok_or_else(|| format!("{name} needs a number"))?;
            let number = value
                .parse()
                .map_err(|_| format!("{name} needs a number, not {value}"))?;
            given.push((name, number));
        }
        Ok(Self { given })
    }

    /// The last value given for `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u32> {
        let named = |(given, _): &&(String, u32)| given == name;
        self.given.iter().rev().find(named).map(|(_, value)| *value)
    }

    /// The port to listen on; 0, the default, lets the system choose.
    ///
    /// # Errors
    /// A text for people if the number is no port.
    pub fn port(&self) -> Result<u16, String> {
        let port = self.get("--port").unwrap_or(0);
        u16::try_from(port).map_err(|_| format!("--port {port} is above 65535"))
    }

    /// Threads to serve with; without `--threads` as many as the process may use processors.
    #[must_use]
    pub fn threads(&self) -> usize {
        let given = self.get("--threads").and_then(|threads| usize::try_from(threads).ok());
        given
            .filter(|threads| *threads > 0)
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned), &["--port", "--threads"])
    }

    #[test]
    fn the_last_value_counts() {
        let arguments = parse("--port 1 --threads 3 --port 2").unwrap();
        assert_eq!((arguments.port(), arguments.threads()), (Ok(2), 3));
    }

    #[test]
    fn what_is_not_known_or_no_number_is_refused() {
        for line in ["--nodes 3", "--port", "--port x", "--port -1", "7"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(parse("--port 65536").unwrap().port().is_err());
    }
}
