//! Settings against the JSON Schema of a manifest.
//!
//! Owns what a schema may look like, so that nothing a vendor writes there reads a file, reaches the network, runs without end or takes the stack, and how what is
//! wrong with settings is told. Patterns are regular expressions of linear time (no look-around, no back-references).

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::problem::{Found, MAX_PROBLEMS, Problem, Problems};

/// Bytes of a schema as JSON.
pub const MAX_SCHEMA_BYTES: usize = 128 << 10;
/// Levels of a schema and of settings.
pub const MAX_DEPTH: usize = 64;
/// Steps that a schema may take with all its references followed.
const MAX_STEPS: usize = 50_000;
/// Bytes of a compiled pattern.
const MAX_PATTERN: usize = 1 << 20;

/// A schema that settings can be checked against.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Makes a schema ready. `$ref` may only point into the schema itself (`#/...`) and never in a circle.
    ///
    /// # Errors
    /// What is wrong; keys are JSON pointers.
    pub fn compile(schema: &Value) -> Result<Self, Problems> {
        if schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err(Problem::new("", "", format!("a schema has at most {MAX_SCHEMA_BYTES} bytes")).into());
        }
        let mut walk = Walk { root: schema, steps: 0 };
        walk.follow(schema, "", 0)?;
        jsonschema::draft202012::options()
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MAX_PATTERN)
                    .dfa_size_limit(MAX_PATTERN),
            )
            .should_validate_formats(false)
            .offline()
            .build(schema)
            .map(Self)
            .map_err(|error| Problem::new(error.instance_path().to_string(), "", error.to_string()).into())
    }

    /// Checks settings.
    ///
    /// # Errors
    /// Everything that is wrong, keys as dotted paths that begin with `settings`.
    pub fn check(&self, settings: &Value) -> Result<(), Problems> {
        if depth(settings, 0) > MAX_DEPTH {
            return Err(Problem::new("settings", "", format!("more than {MAX_DEPTH} levels")).into());
        }
        let mut found = Found::default();
        // A few more are counted, not all that a vendor's schema can think of.
        for error in self.0.iter_errors(settings).take(MAX_PROBLEMS * 4) {
            let path = error.instance_path().to_string();
            found.add(Problem::new(dotted(&path), error.instance(), error.to_string()));
        }
        found.done(())
    }
}

/// Checks settings against a schema in one go.
///
/// # Errors
/// Everything that is wrong with the schema, else with the settings.
pub fn check_settings(schema: &Value, settings: &Value) -> Result<(), Problems> {
    Schema::compile(schema)?.check(settings)
}

struct Walk<'a> {
    root: &'a Value,
    steps: usize,
}

impl<'a> Walk<'a> {
    /// Walks through a schema with its references followed: a circle, and references that multiply, run out of depth or steps.
    fn follow(&mut self, at: &'a Value, path: &str, depth: usize) -> Result<(), Problem> {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            let rule = format!(
                "deeper than {MAX_DEPTH} levels, or too large, with its references followed (or they go in a circle)"
            );
            return Err(Problem::new(path, "", rule));
        }
        match at {
            Value::Object(members) => {
                for (key, value) in members {
                    let path = format!("{path}/{key}");
                    match (key.as_str(), value) {
                        ("$ref", Value::String(target)) => self.reference(target, &path, depth)?,
                        ("$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$recursiveRef", Value::String(_)) => {
                            return Err(Problem::new(path, value, "is not taken: the schema is one document"));
                        }
                        ("$schema", Value::String(draft))
                            if !draft.contains("json-schema.org/draft/2020-12/schema") =>
                        {
                            return Err(Problem::new(path, value, "schemas are of JSON Schema draft 2020-12"));
                        }
                        _ => self.follow(value, &path, depth + 1)?,
                    }
                }
                Ok(())
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| self.follow(item, &format!("{path}/{index}"), depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn reference(&mut self, target: &str, path: &str, depth: usize) -> Result<(), Problem> {
        let wrong = |rule: &str| Problem::new(path, format!("{target:?}"), rule);
        let pointer = target
            .strip_prefix('#')
            .filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let pointer = pointer.filter(|pointer| !pointer.contains('%'));
        let pointer = pointer.ok_or_else(|| wrong("a reference points into the schema itself, as #/$defs/name"))?;
        let aim = self.root.pointer(pointer).ok_or_else(|| wrong("points at nothing"))?;
        self.follow(aim, path, depth + 1)
    }
}

fn depth(value: &Value, above: usize) -> usize {
    if above > MAX_DEPTH {
        return above;
    }
    let deepest = match value {
        Value::Object(members) => members.values().map(|value| depth(value, above + 1)).max(),
        Value::Array(items) => items.iter().map(|value| depth(value, above + 1)).max(),
        _ => None,
    };
    deepest.unwrap_or(above)
}

/// A JSON pointer as the path that the operator's file has: `/poll/0/rate` is `settings.poll[0].rate`.
fn dotted(pointer: &str) -> String {
    let mut path = "settings".to_owned();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            path.push('.');
            path.push_str(&part);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_is_wrong_with_settings_is_told() {
        let schema = json!({
            "type": "object",
            "properties": {
                "rate": { "type": "number", "minimum": 1 },
                "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } },
            },
            "required": ["rate"],
            "additionalProperties": false,
            "$defs": { "line": { "type": "string", "pattern": "^[a-z]+$" } },
        });
        check_settings(&schema, &json!({ "rate": 2, "lines": ["a"] })).unwrap();
        let Problems(problems) =
            check_settings(&schema, &json!({ "rate": 0, "lines": ["a", "B"], "x": 1 })).unwrap_err();
        let mut keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["settings", "settings.lines[1]", "settings.rate"]);
        let text = check_settings(&schema, &json!({})).unwrap_err().to_string();
        assert!(text.contains("rate"), "{text}");
    }

    #[test]
    fn schemas_stay_with_themselves() {
        for wrong in [
            json!({ "$ref": "https://example.com/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "$ref": "other.json" }),
            json!({ "$ref": "#/$defs/none" }),
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" } } }),
            json!({ "$id": "https://example.com/", "type": "object" }),
            json!({ "$schema": "http://json-schema.org/draft-07/schema#" }),
            json!({ "type": "objekt" }),
        ] {
            assert!(Schema::compile(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn references_that_multiply_are_refused() {
        let mut defs = serde_json::Map::new();
        for level in 0..30 {
            let next = format!("#/$defs/d{}", level + 1);
            defs.insert(
                format!("d{level}"),
                json!({ "allOf": [{ "$ref": next }, { "$ref": next }] }),
            );
        }
        defs.insert("d30".to_owned(), json!({}));
        assert!(Schema::compile(&json!({ "$defs": defs })).is_err());
    }

    #[test]
    fn patterns_take_linear_time() {
        for wrong in [r"(?=a)b", r"(a)\1", r"(?<!x)y"] {
            assert!(Schema::compile(&json!({ "pattern": wrong })).is_err(), "{wrong}");
        }
        let evil = json!({ "pattern": "^(a+)+$" });
        let text = format!("{}!", "a".repeat(20_000));
        assert!(check_settings(&evil, &json!(text)).is_err());
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        assert!(check_settings(&json!({}), &deep).is_err());
        assert!(Schema::compile(&json!({ "const": deep })).is_err());
        assert!(Schema::compile(&json!({ "const": "x".repeat(MAX_SCHEMA_BYTES) })).is_err());
    }
}
