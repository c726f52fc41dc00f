//! What every plugin has to stand: to be read, written, monitored, broken and reloaded.

use std::time::Instant;

use backplane_plugin::PluginState;
use backplane_types::{AttributeId, DataValue, NodeId, StatusCode};

use super::Check;
use super::plant::{PATIENCE, Plant, Trouble, Variable};
use super::script::Watching;

/// Problems of one check that are shown; the rest is counted.
const SHOWN: usize = 5;

/// Checks of what clients see of a node manager.
pub(super) async fn of_nodes(plant: &Plant) -> Result<Vec<Check>, Trouble> {
    let mut checks = vec![nodes(plant), values(plant)];
    checks.push(writes(plant).await?);
    checks.push(monitored(plant).await?);
    Ok(checks)
}

fn nodes(plant: &Plant) -> Check {
    let problem = (plant.nodes == 0).then(|| "no node of the plugin is below Objects: nobody will find it".to_owned());
    let variables = plant.variables.len();
    Check::of(
        "nodes",
        format!("{} nodes, {variables} of them variables", plant.nodes),
        problem,
    )
}

fn values(plant: &Plant) -> Check {
    let readable = plant.variables.iter().filter(|variable| variable.readable);
    let (count, bad) = split(readable, |variable| status(&variable.value));
    Check::of("values", format!("{count} can be read"), bad)
}

/// Every value that can be written is written as it is.
async fn writes(plant: &Plant) -> Result<Check, Trouble> {
    let mut answers = Vec::new();
    for variable in plant
        .variables
        .iter()
        .filter(|variable| variable.writable && variable.readable)
    {
        let status = plant.write(&variable.id, variable.value.value.clone()).await?;
        answers.push((variable, status));
    }
    let (count, bad) = split(answers.iter().map(|(variable, _)| *variable), |variable| {
        let answer = answers.iter().find(|(other, _)| other.id == variable.id);
        answer.map_or(StatusCode::GOOD, |(_, status)| *status)
    });
    Ok(Check::of("writes", format!("{count} values written as they are"), bad))
}

async fn monitored(plant: &Plant) -> Result<Check, Trouble> {
    let readable: Vec<NodeId> = readable(plant);
    let started = Instant::now();
    let mut watching = Watching::start(plant, &readable).await?;
    watching.until_all_have_a_value(plant).await?;
    let silent = watching.silent();
    watching.end(plant).await?;
    let detail = format!(
        "{} items, first values in {} ms",
        readable.len(),
        started.elapsed().as_millis()
    );
    let problem = (silent > 0).then(|| format!("{silent} items got no value"));
    Ok(Check::of("monitoring", detail, problem))
}

fn readable(plant: &Plant) -> Vec<NodeId> {
    let readable = plant.variables.iter().filter(|variable| variable.readable);
    readable.map(|variable| variable.id.clone()).collect()
}

/// The instance dies: another one starts, and everything is as before.
pub(super) async fn restart(plant: &Plant) -> Result<Check, Trouble> {
    // It may be on its way back from an earlier check.
    if let Err(problem) = wait(plant, |_| true).await {
        return Ok(Check::of("restart", "before the instance was to die", Some(problem)));
    }
    let Some(before) = plant.status() else {
        return Err(Trouble::Other("the plugin is gone".to_owned()));
    };
    let started = Instant::now();
    plant.host().break_instance(&plant.name).await?;
    let back = wait(plant, |status| status.instance > before.instance).await;
    let problem = match back {
        Err(problem) => Some(problem),
        Ok(()) => good_again(plant).await?,
    };
    let detail = format!("after the instance died: back in {} ms", started.elapsed().as_millis());
    Ok(Check::of("restart", detail, problem))
}

/// The same code again: taken, and everything is as before.
pub(super) async fn reload(plant: &Plant) -> Result<Check, Trouble> {
    let started = Instant::now();
    let problem = match plant.load(Some(u32::MAX)).await {
        Err(Trouble::Load(refused)) => Some(refused.to_string()),
        Err(other) => return Err(other),
        Ok(()) => good_again(plant).await?,
    };
    let detail = format!("in {} ms", started.elapsed().as_millis());
    Ok(Check::of("reload", detail, problem))
}

async fn wait(plant: &Plant, newer: impl Fn(&backplane_plugin::PluginStatus) -> bool) -> Result<(), String> {
    let gone = || "the plugin is gone".to_owned();
    let mut changes = plant.host().subscribe(&plant.name).ok_or_else(gone)?;
    let runs = changes.wait_for(|status| {
        let over = matches!(
            status.state,
            PluginState::Quarantined | PluginState::Rejected | PluginState::Stopped
        );
        over || newer(status) && matches!(status.state, PluginState::Serving | PluginState::Ready)
    });
    let status = match tokio::time::timeout(PATIENCE, runs).await {
        Ok(Ok(status)) => status.clone(),
        Ok(Err(_)) => return Err(gone()),
        Err(_) => return Err(format!("it is not back after {} s", PATIENCE.as_secs())),
    };
    match status.state {
        PluginState::Serving | PluginState::Ready => Ok(()),
        state => Err(format!(
            "it is {}: {}",
            state.name(),
            status.last_error.unwrap_or_default()
        )),
    }
}

/// What was good before is so again.
async fn good_again(plant: &Plant) -> Result<Option<String>, Trouble> {
    let was_good = |variable: &&Variable| variable.readable && !status(&variable.value).is_bad();
    let before: Vec<&Variable> = plant.variables.iter().filter(was_good).collect();
    let ids: Vec<NodeId> = before.iter().map(|variable| variable.id.clone()).collect();
    let now = plant.read(&ids, AttributeId::VALUE).await?;
    let mut statuses = now.iter().map(status);
    let (_, bad) = split(before.into_iter(), |_| {
        statuses.next().unwrap_or(StatusCode::BAD_UNEXPECTED_ERROR)
    });
    Ok(bad)
}

fn status(value: &DataValue) -> StatusCode {
    value.status.unwrap_or(StatusCode::GOOD)
}

/// How many there are, and which of them are bad.
fn split<'a>(
    variables: impl Iterator<Item = &'a Variable>,
    mut status: impl FnMut(&Variable) -> StatusCode,
) -> (usize, Option<String>) {
    let mut count = 0;
    let mut bad = Vec::new();
    for variable in variables {
        count += 1;
        let status = status(variable);
        if status.is_bad() {
            bad.push(format!("{} ({}) is {status}", variable.name, variable.id));
        }
    }
    let more = bad.len().saturating_sub(SHOWN);
    bad.truncate(SHOWN);
    if more > 0 {
        bad.push(format!("and {more} more"));
    }
    (count, (!bad.is_empty()).then(|| bad.join("; ")))
}
