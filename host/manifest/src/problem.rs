//! What is wrong with a file, all of it at once: the key, the value and the rule.
//!
//! Owns the form of a complaint. It must not know which rules there are.

use std::fmt;

/// Problems that are told of one file; what comes after them is only counted.
pub const MAX_PROBLEMS: usize = 64;
/// Characters of a value that a problem repeats.
const SHOWN: usize = 120;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: the path of the key, `asks.network.connect[2]`. Empty: the file as a whole.
    pub key: String,
    /// What stands there, shortened, in the form of TOML or JSON. Empty when nothing does.
    pub value: String,
    /// The rule that it breaks.
    pub rule: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, value: impl fmt::Display, rule: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: shorten(&value.to_string()),
            rule: rule.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}", self.key)?;
            if !self.value.is_empty() {
                write!(f, " = {}", self.value)?;
            }
            write!(f, ": ")?;
        }
        f.write_str(&self.rule)
    }
}

/// Everything that is wrong with one file; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// Collects problems up to [`MAX_PROBLEMS`].
#[derive(Debug, Default)]
pub(crate) struct Found {
    problems: Vec<Problem>,
    more: usize,
}

impl Found {
    pub(crate) fn add(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// The value, if nothing is wrong.
    pub(crate) fn done<T>(mut self, value: T) -> Result<T, Problems> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        if self.more > 0 {
            let rule = format!("and {} more problems", self.more);
            self.problems.push(Problem::new("", "", rule));
        }
        Err(Problems(self.problems))
    }
}

/// One line, without what would change the meaning of a log line, and not too long.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push_str("...");
    }
    short
}
