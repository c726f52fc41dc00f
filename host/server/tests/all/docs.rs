//! The commands of the documentation, run as they stand there: in one folder, in their order, with what they are said to print.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::binary;
use crate::vendor::{can_build, target};

/// One command and the lines that it prints; `...` is anything, and a line of its own any lines.
struct Step {
    command: String,
    expected: Vec<String>,
}

/// The commands in the `console` blocks of a page.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            line if inside => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    command: command.to_owned(),
                    expected: Vec::new(),
                }),
                (None, Some(step)) => step.expected.push(line.to_owned()),
                (None, None) => panic!("output before any command: {line}"),
            },
            _ => {}
        }
    }
    steps
}

fn line_fits(pattern: &str, line: &str) -> bool {
    let mut rest = line;
    let mut parts = pattern.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    let mut last = None;
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

fn fits(expected: &[String], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((any, others)), _) if any == "..." => {
            fits(others, printed) || printed.split_first().is_some_and(|(_, rest)| fits(expected, rest))
        }
        (Some((pattern, others)), Some((line, rest))) => line_fits(pattern, line) && fits(others, rest),
        _ => false,
    }
}

/// Runs one command; `cd` moves the steps after it.
fn run(step: &Step, folder: &mut PathBuf, tools: &Path) {
    let words: Vec<&str> = step.command.split(' ').collect();
    if let ["cd", to] = words.as_slice() {
        *folder = folder.join(to);
        return;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path));
    let output = Command::new("sh")
        .args(["-c", &step.command])
        .current_dir(&*folder)
        .env("PATH", std::env::join_paths(paths).unwrap())
        .env("CARGO_TARGET_DIR", target())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert!(
        output.status.success() && fits(&step.expected, &lines),
        "$ {}\n{printed}{}",
        step.command,
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_vendors_page_is_true() {
    if !can_build() {
        return;
    }
    let steps = steps(include_str!("../../../../docs/plugins/vendor.md"));
    assert!(steps.len() > 8, "the page has lost its commands");
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("bin");
    std::fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink(binary().canonicalize().unwrap(), tools.join("backplane")).unwrap();
    let mut here = folder.path().to_owned();
    for step in &steps {
        run(step, &mut here, &tools);
    }
}

#[test]
fn patterns() {
    assert!(line_fits("a ... c", "a b c") && line_fits("...", "") && line_fits("a", "a") && line_fits("a ...", "a b"));
    assert!(!line_fits("a", "ab") && !line_fits("a ... c", "a b") && !line_fits("a ... c", "a c d"));
    let lines = |text: &[&str]| text.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert!(fits(&lines(&["...", "b"]), &["a", "a", "b"]));
    assert!(!fits(&lines(&["b"]), &["a", "b"]));
}
