//! Reading a TOML table strictly: every key has to be known, every value to be of its kind, and every problem is told.
//!
//! Owns how keys are asked for and how problems are addressed. It must not know the keys.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::problem::{Found, Problem, Problems};

/// Bytes of one text in a manifest or in grants.
pub const MAX_TEXT: usize = 256;
/// Entries of one list in a manifest or in grants.
pub const MAX_ENTRIES: usize = 128;

/// One table. What has not been asked for when it is [finished](Section::finish) is unknown.
pub(crate) struct Section<'a> {
    path: String,
    table: Option<&'a Table>,
    asked: BTreeSet<&'static str>,
}

/// The whole of a file as a table.
pub(crate) fn parse_table(text: &str, limit: usize) -> Result<Table, Problems> {
    if text.len() > limit {
        return Err(Problem::new("", "", format!("the file has more than {limit} bytes")).into());
    }
    toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        Problem::new("", "", format!("line {line}: {}", error.message().replace('\n', " "))).into()
    })
}

impl<'a> Section<'a> {
    pub(crate) fn root(table: &'a Table) -> Self {
        Self::at(String::new(), Some(table))
    }

    pub(crate) fn at(path: String, table: Option<&'a Table>) -> Self {
        Self {
            path,
            table,
            asked: BTreeSet::new(),
        }
    }

    /// The path of a key in here.
    pub(crate) fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// The value of a key, whatever it is.
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.insert(key);
        self.table.and_then(|table| table.get(key))
    }

    /// A table in here; an absent one reads as an empty one.
    pub(crate) fn section(&mut self, key: &'static str, found: &mut Found) -> Section<'a> {
        let path = self.path_of(key);
        let table = match self.value(key) {
            None => None,
            Some(Value::Table(table)) => Some(table),
            Some(other) => {
                found.add(Problem::new(path.as_str(), other, "a table is expected"));
                None
            }
        };
        Section::at(path, table)
    }

    /// Whether the table is there.
    pub(crate) fn is_there(&self) -> bool {
        self.table.is_some()
    }

    pub(crate) fn text(&mut self, key: &'static str, found: &mut Found) -> Option<&'a str> {
        match self.value(key)? {
            Value::String(text) if text.len() <= MAX_TEXT => Some(text),
            Value::String(text) => {
                let rule = format!("a text has at most {MAX_TEXT} bytes");
                found.add(Problem::new(self.path_of(key), quoted(text), rule));
                None
            }
            other => {
                found.add(Problem::new(self.path_of(key), other, "a text is expected"));
                None
            }
        }
    }

    /// A text that is given a meaning by `parse`, whose error is the rule.
    pub(crate) fn parsed<T>(
        &mut self,
        key: &'static str,
        found: &mut Found,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(key, found)?;
        parse(text)
            .map_err(|rule| found.add(Problem::new(self.path_of(key), quoted(text), rule)))
            .ok()
    }

    /// A key that has to be there.
    pub(crate) fn required<T>(
        &mut self,
        key: &'static str,
        found: &mut Found,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        if self.value(key).is_none() {
            found.add(Problem::new(self.path_of(key), "", "is missing"));
        }
        self.parsed(key, found, parse)
    }

    pub(crate) fn flag(&mut self, key: &'static str, found: &mut Found) -> bool {
        match self.value(key) {
            None => false,
            Some(Value::Boolean(flag)) => *flag,
            Some(other) => {
                found.add(Problem::new(self.path_of(key), other, "true or false is expected"));
                false
            }
        }
    }

    pub(crate) fn list<T: PartialEq>(
        &mut self,
        key: &'static str,
        found: &mut Found,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let path = self.path_of(key);
        let items = match self.value(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                found.add(Problem::new(path, other, "a list of texts is expected"));
                return Vec::new();
            }
        };
        if items.len() > MAX_ENTRIES {
            let rule = format!("a list has at most {MAX_ENTRIES} entries, this one has {}", items.len());
            found.add(Problem::new(path, "", rule));
            return Vec::new();
        }
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let complain =
                |found: &mut Found, rule: String| found.add(Problem::new(format!("{path}[{index}]"), item, rule));
            match item {
                Value::String(text) if text.len() <= MAX_TEXT => match parse(text) {
                    Ok(value) if list.contains(&value) => complain(found, "stands there twice".to_owned()),
                    Ok(value) => list.push(value),
                    Err(rule) => complain(found, rule),
                },
                Value::String(_) => complain(found, format!("a text has at most {MAX_TEXT} bytes")),
                _ => complain(found, "a text is expected".to_owned()),
            }
        }
        list
    }

    /// Keys that nobody has asked for are problems.
    pub(crate) fn finish(self, found: &mut Found) {
        let known: Vec<_> = self.asked.iter().copied().collect();
        for (key, value) in self.table.into_iter().flatten() {
            if !self.asked.contains(key.as_str()) {
                let rule = format!("an unknown key; there are: {}", known.join(", "));
                found.add(Problem::new(self.path_of(key), value, rule));
            }
        }
    }
}

/// As it would stand in the file.
pub(crate) fn quoted(text: &str) -> String {
    format!("{text:?}")
}
