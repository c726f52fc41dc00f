//! `backplane check-config`: everything that is wrong, or what is in effect.

use std::path::Path;

use backplane_queue::isolation::Plan;

use super::{Failure, Outcome};
use crate::config::{Config, isolation};

pub(super) fn run(path: &Path) -> Outcome {
    let config = Config::read(path).map_err(Failure::usage)?;
    println!("{}", describe(&config));
    Ok(())
}

/// What is in effect, one `key = value` a line.
fn describe(config: &Config) -> String {
    let policies: Vec<&str> = config.policies.iter().map(|policy| policy.name()).collect();
    let users: Vec<&str> = config.users.iter().map(|user| user.name.as_str()).collect();
    let plugins = config
        .plugins
        .as_ref()
        .map_or_else(|| "none".to_owned(), |path| path.display().to_string());
    let lines = [
        format!("configuration {} is valid", config.source.display()),
        format!("server.application-uri = {}", config.application_uri),
        format!("server.listen = {}", config.listen),
        format!("server.state = {}", config.state.display()),
        format!("security.policies = {}", policies.join(", ")),
        format!("security.allow-none = {}", config.allow_none),
        format!("security.allow-sign = {}", config.allow_sign),
        format!("security.auto-trust = {}", config.auto_trust),
        format!("security.auditing = {}", config.auditing),
        format!("users.anonymous = {}", config.anonymous),
        format!(
            "users = {}",
            if users.is_empty() {
                "none".to_owned()
            } else {
                users.join(", ")
            }
        ),
        format!("plugins.folder = {plugins}"),
        format!("limits = {:#?}", config.limits),
        format!("isolation.profile = {}", config.isolation.profile),
    ];
    let plan = Plan::derive(&config.isolation, &isolation::totals(&config.limits));
    let stages = plan.iter().flat_map(Plan::lines);
    lines.into_iter().chain(stages).collect::<Vec<_>>().join("\n")
}
