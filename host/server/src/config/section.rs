//! Reads one TOML table key by key and remembers everything that is wrong with it.
//!
//! Owns the rules that every section shares: a key nobody asked for is an error, a value of the wrong type or out of
//! range is an error with its dotted path, and nothing stops at the first one. Knows no key by name.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Everything that was wrong, in the order it was found: `path: what`.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Adds one line.
    pub(super) fn add(&mut self, path: &str, what: impl Display) {
        self.0.push(format!("{path}: {what}"));
    }

    /// The lines, sorted by nothing but the order of discovery.
    pub(super) fn into_lines(self) -> Vec<String> {
        self.0
    }
}

/// One table of the file, consumed key by key.
pub(super) struct Section<'a> {
    path: String,
    table: toml::Table,
    problems: &'a mut Problems,
}

impl<'a> Section<'a> {
    /// The whole document.
    pub(super) fn root(table: toml::Table, problems: &'a mut Problems) -> Self {
        Self {
            path: String::new(),
            table,
            problems,
        }
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The sub-table `key`; an empty one when it is absent.
    pub(super) fn section(&mut self, key: &str) -> Section<'_> {
        let path = self.at(key);
        let table = match self.table.remove(key) {
            None => toml::Table::new(),
            Some(toml::Value::Table(table)) => table,
            Some(other) => {
                self.problems
                    .add(&path, format_args!("expected a table, found {}", other.type_str()));
                toml::Table::new()
            }
        };
        Section {
            path,
            table,
            problems: self.problems,
        }
    }

    /// Calls `read` for each table of the array of tables `key`.
    pub(super) fn sections<T>(&mut self, key: &str, mut read: impl FnMut(&mut Section<'_>) -> T) -> Vec<T> {
        let path = self.at(key);
        let mut out = Vec::new();
        match self.table.remove(key) {
            None => {}
            Some(toml::Value::Array(items)) => {
                for (index, item) in items.into_iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    match item {
                        toml::Value::Table(table) => {
                            let mut section = Section {
                                path,
                                table,
                                problems: self.problems,
                            };
                            out.push(read(&mut section));
                            section.finish();
                        }
                        other => self
                            .problems
                            .add(&path, format_args!("expected a table, found {}", other.type_str())),
                    }
                }
            }
            Some(other) => self.problems.add(
                &path,
                format_args!("expected an array of tables, found {}", other.type_str()),
            ),
        }
        out
    }

    fn take<T>(
        &mut self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(toml::Value) -> Result<T, toml::Value>,
    ) -> Option<T> {
        let value = self.table.remove(key)?;
        match convert(value) {
            Ok(value) => Some(value),
            Err(found) => {
                let path = self.at(key);
                self.problems
                    .add(&path, format_args!("expected {expected}, found {}", found.type_str()));
                None
            }
        }
    }

    /// A text.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.take(key, "a string", |value| match value {
            toml::Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    /// A switch.
    pub(super) fn switch(&mut self, key: &str, default: bool) -> bool {
        self.take(key, "true or false", |value| value.as_bool().ok_or(value))
            .unwrap_or(default)
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.take(key, "an array of strings", |value| match value {
            toml::Value::Array(items) => items
                .into_iter()
                .map(|item| match item {
                    toml::Value::String(text) => Ok(text),
                    other => Err(other),
                })
                .collect(),
            other => Err(other),
        })
    }

    /// A whole number inside `range`.
    pub(super) fn number(&mut self, key: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let Some(value) = self.take(key, "a whole number", |value| value.as_integer().ok_or(value)) else {
            return default;
        };
        match u64::try_from(value) {
            Ok(value) if range.contains(&value) => value,
            _ => {
                self.problem(
                    key,
                    format_args!("{value} is outside {} to {}", range.start(), range.end()),
                );
                default
            }
        }
    }

    /// [`number`](Self::number) for limits that fit 32 bits.
    pub(super) fn number32(&mut self, key: &str, default: u32, range: RangeInclusive<u32>) -> u32 {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        u32::try_from(self.number(key, u64::from(default), wide)).unwrap_or(default)
    }

    /// A whole number of at least 0, with no default.
    pub(super) fn amount(&mut self, key: &str) -> Option<u64> {
        let value = self.take(key, "a whole number", |value| value.as_integer().ok_or(value))?;
        let amount = u64::try_from(value).ok();
        if amount.is_none() {
            self.problem(key, format_args!("{value} is below 0"));
        }
        amount
    }

    /// A number of milliseconds, whole or not, inside `range`.
    pub(super) fn milliseconds(&mut self, key: &str, default: f64, range: RangeInclusive<f64>) -> f64 {
        let read = |value: toml::Value| match value {
            toml::Value::Integer(number) => Ok(number as f64),
            toml::Value::Float(number) => Ok(number),
            other => Err(other),
        };
        let Some(value) = self.take(key, "a number of milliseconds", read) else {
            return default;
        };
        if range.contains(&value) {
            return value;
        }
        self.problem(
            key,
            format_args!("{value} is outside {} to {} ms", range.start(), range.end()),
        );
        default
    }

    /// Reports something wrong with `key` that only the caller can see.
    pub(super) fn problem(&mut self, key: &str, what: impl Display) {
        let path = self.at(key);
        self.problems.add(&path, what);
    }

    /// Reports every key that nobody asked for.
    pub(super) fn finish(self) {
        for key in self.table.keys() {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            self.problems.add(&path, "unknown key");
        }
    }
}
