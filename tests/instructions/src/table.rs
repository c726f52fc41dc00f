//! What each piece of work took when it was last recorded, and what is made of a difference.
//!
//! Owns `table.toml` and the tolerance. It must not know how instructions are counted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Percent that a count may differ from the recorded one: hash seeds, addresses and the C library move it a little.
const TOLERANCE: f64 = 2.0;
/// Instructions below which a difference is none: of the shortest pieces 2 % are less than one branch.
const FLOOR: f64 = 2.0;

/// See the module text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// Architecture and instruction sets that the counts are for.
    pub(crate) machine: String,
    /// Instructions for one operation.
    counts: BTreeMap<String, f64>,
}

/// What is said of one piece of work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Same {
        name: String,
        found: f64,
    },
    More {
        name: String,
        recorded: f64,
        found: f64,
    },
    Less {
        name: String,
        recorded: f64,
        found: f64,
    },
    /// Measured, but not in the table.
    Missing {
        name: String,
        found: f64,
    },
    /// In the table, but no such piece of work.
    Stale {
        name: String,
    },
}

const RECORD: &str = "cargo run --release -p backplane-instructions -- --record";

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |recorded: f64, found: f64| (found / recorded - 1.0) * 100.0;
        match self {
            Self::Same { name, found } => write!(f, "same   {name}: {found:.0} instructions"),
            Self::More { name, recorded, found } => write!(
                f,
                "MORE   {name}: {found:.0} instructions, {recorded:.0} are recorded ({:+.1} %); if this is the price of something that is worth it, \
                 record it: {RECORD}",
                percent(*recorded, *found)
            ),
            Self::Less { name, recorded, found } => write!(
                f,
                "less   {name}: {found:.0} instructions, {recorded:.0} are recorded ({:+.1} %); keep the gain, record it: {RECORD}",
                percent(*recorded, *found)
            ),
            Self::Missing { name, found } => {
                write!(f, "NEW    {name}: {found:.0} instructions, none are recorded: {RECORD}")
            }
            Self::Stale { name } => write!(f, "STALE  {name} is recorded, but there is no such work: {RECORD}"),
        }
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("table.toml")
}

impl Table {
    pub(crate) fn new(machine: String, counts: BTreeMap<String, f64>) -> Self {
        Self { machine, counts }
    }

    pub(crate) fn read() -> Result<Self, String> {
        let path = path();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
        let machine = table.get("machine").and_then(toml::Value::as_str).ok_or("no machine")?;
        let rows = table
            .get("instructions")
            .and_then(toml::Value::as_table)
            .ok_or("no instructions")?;
        let mut counts = BTreeMap::new();
        for (name, count) in rows {
            let count = count
                .as_integer()
                .filter(|count| *count > 0)
                .ok_or_else(|| format!("{name} is no count"))?;
            counts.insert(name.clone(), count as f64);
        }
        Ok(Self::new(machine.to_owned(), counts))
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "# Instructions for one operation of each piece of work. Written by `{RECORD}`.\n\nmachine = {:?}\n\n[instructions]\n",
            self.machine
        );
        for (name, count) in &self.counts {
            text.push_str(&format!("{name} = {count:.0}\n"));
        }
        text
    }

    pub(crate) fn write(&self) -> Result<(), String> {
        let path = path();
        std::fs::write(&path, self.text()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// One verdict for each piece of work that was measured or is recorded.
    pub(crate) fn compare(&self, found: &BTreeMap<String, f64>) -> Vec<Verdict> {
        let measured = found.iter().map(|(name, found)| {
            let (name, found) = (name.clone(), *found);
            let Some(recorded) = self.counts.get(&name).copied() else {
                return Verdict::Missing { name, found };
            };
            let slack = (recorded * TOLERANCE / 100.0).max(FLOOR);
            if found > recorded + slack {
                Verdict::More { name, recorded, found }
            } else if found < recorded - slack {
                Verdict::Less { name, recorded, found }
            } else {
                Verdict::Same { name, found }
            }
        });
        let stale = self.counts.keys().filter(|name| !found.contains_key(*name));
        measured
            .chain(stale.map(|name| Verdict::Stale { name: name.clone() }))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, Verdict};

    fn table(rows: &[(&str, f64)]) -> Table {
        Table::new(
            "here".to_owned(),
            rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        )
    }

    #[test]
    fn two_percent_are_tolerated() {
        let recorded = table(&[
            ("a", 1_000.0),
            ("b", 1_000.0),
            ("c", 1_000.0),
            ("d", 10.0),
            ("gone", 5.0),
        ]);
        let found = table(&[("a", 1_020.0), ("b", 1_021.0), ("c", 979.0), ("d", 12.0), ("new", 7.0)]);
        let name = str::to_owned;
        assert_eq!(
            recorded.compare(&found.counts),
            [
                Verdict::Same {
                    name: name("a"),
                    found: 1_020.0
                },
                Verdict::More {
                    name: name("b"),
                    recorded: 1_000.0,
                    found: 1_021.0
                },
                Verdict::Less {
                    name: name("c"),
                    recorded: 1_000.0,
                    found: 979.0
                },
                Verdict::Same {
                    name: name("d"),
                    found: 12.0
                },
                Verdict::Missing {
                    name: name("new"),
                    found: 7.0
                },
                Verdict::Stale { name: name("gone") },
            ]
        );
    }

    #[test]
    fn is_read_as_it_is_written() {
        let written = table(&[("a", 1_000.0), ("b", 17.0)]);
        assert_eq!(Table::parse(&written.text()), Ok(written));
        for wrong in [
            "",
            "machine = \"x\"",
            "machine = 1\n[instructions]",
            "machine = \"x\"\n[instructions]\na = \"b\"",
        ] {
            assert!(Table::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_table_names_every_piece_of_work() {
        let table = Table::read().unwrap();
        let names: Vec<&str> = table.counts.keys().map(String::as_str).collect();
        let mut wanted: Vec<&str> = crate::work::PIECES.iter().map(|piece| piece.name).collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
    }
}
