//! Reload torture: the same script of a client without reloads and with one at every boundary of its calls. Clients must not be able to tell.
//!
//! What changes by itself cannot be compared: variables of which the caller says so, and others that differ already without reloads. So the script runs without reloads first: items whose two streams differ are left out, and counted.

use std::time::{Duration, Instant};

use backplane_types::{AttributeId, NodeId, Variant};

use super::plant::{Plant, Trouble, Variable};
use super::script::{Stream, Watching};

/// Variables that the script writes, and values that each gets.
const WRITTEN: usize = 8;
/// How long a written value may take to come back as a notification. A plugin may have made another one of it.
const ECHO: Duration = Duration::from_millis(500);
/// Between two writes, so that what a plugin makes of the first is sampled before it makes something of the second.
const SETTLE: Duration = Duration::from_millis(20);
/// Differences that are shown.
const SHOWN: usize = 10;

/// What came of it.
pub(super) struct Torture {
    pub(super) reloads: u32,
    pub(super) compared: usize,
    pub(super) restless: usize,
    /// One line for each item whose streams differ, up to a bound.
    pub(super) differences: Vec<String>,
    /// How long the plugin was asked nothing, from the last call of one generation to the first that the next could take.
    pub(super) pause_p50: Option<Duration>,
    pub(super) pause_p99: Option<Duration>,
}

pub(super) async fn run(plant: &Plant, reloads: u32, ignore: &[String]) -> Result<Torture, Trouble> {
    let readable = plant.variables.iter().filter(|variable| variable.readable);
    let nodes: Vec<NodeId> = readable.map(|variable| variable.id.clone()).collect();
    let is_ignored = |node: &NodeId| {
        let text = node.to_string();
        ignore.iter().any(|part| text.contains(part.as_str()))
    };
    let steps = steps(plant, reloads);
    // Once for nothing: it leaves the plugin as every later play leaves it.
    play(plant, &nodes, &steps, None).await?;
    let first = play(plant, &nodes, &steps, None).await?.streams;
    let second = play(plant, &nodes, &steps, None).await?.streams;
    let mut tortured = play(plant, &nodes, &steps, Some(reloads)).await?;
    let mut torture = Torture {
        reloads: tortured.reloads,
        compared: 0,
        restless: 0,
        differences: Vec::new(),
        pause_p50: None,
        pause_p99: None,
    };
    for (place, node) in nodes.iter().enumerate() {
        let (Some(first), Some(second), Some(third)) =
            (first.get(place), second.get(place), tortured.streams.get(place))
        else {
            continue;
        };
        if first != second || is_ignored(node) {
            torture.restless += 1;
            continue;
        }
        torture.compared += 1;
        if first != third && torture.differences.len() < SHOWN {
            torture
                .differences
                .push(format!("{node}: {}", difference(first, third)));
        }
    }
    tortured.pauses.sort_unstable();
    torture.pause_p50 = percentile(&tortured.pauses, 50);
    torture.pause_p99 = percentile(&tortured.pauses, 99);
    Ok(torture)
}

/// One thing that the client does.
enum Step {
    Write(NodeId, Variant),
    /// Of a variable that nobody writes: where the plugin is asked, this meets the reload.
    Read(NodeId),
}

fn steps(plant: &Plant, count: u32) -> Vec<Step> {
    let writable: Vec<&Variable> = plant
        .variables
        .iter()
        .filter(|variable| variable.writable && variable.readable && other(&variable.value.value, 0).is_some())
        .take(WRITTEN)
        .collect();
    let readable: Vec<&Variable> = plant.variables.iter().filter(|variable| variable.readable).collect();
    let mut steps = Vec::new();
    for round in 0..count {
        let place = round as usize;
        let write = (!writable.is_empty() && place % 4 != 3).then(|| {
            // Never the value that it has, so that each write is one notification.
            let (turn, count) = (place / 4 * 3 + place % 4, writable.len());
            let variable = writable.get(turn % count)?;
            Some(Step::Write(
                variable.id.clone(),
                other(&variable.value.value, turn / count)?,
            ))
        });
        let read = || {
            let variable = readable.get(place % readable.len().max(1))?;
            Some(Step::Read(variable.id.clone()))
        };
        steps.extend(write.flatten().or_else(read));
    }
    steps
}

/// Another value of the same type and near it, so that it is still a sensible one; none for types that have no neighbours.
fn other(value: &Variant, round: usize) -> Option<Variant> {
    let near: u32 = if round.is_multiple_of(2) { 1 } else { 2 };
    Some(match value {
        Variant::Boolean(value) => Variant::Boolean(*value != (near == 1)),
        Variant::SByte(value) => Variant::SByte(value.checked_add(i8::try_from(near).ok()?)?),
        Variant::Byte(value) => Variant::Byte(value.checked_add(u8::try_from(near).ok()?)?),
        Variant::Int16(value) => Variant::Int16(value.checked_add(i16::try_from(near).ok()?)?),
        Variant::UInt16(value) => Variant::UInt16(value.checked_add(u16::try_from(near).ok()?)?),
        Variant::Int32(value) => Variant::Int32(value.checked_add(i32::try_from(near).ok()?)?),
        Variant::UInt32(value) => Variant::UInt32(value.checked_add(near)?),
        Variant::Int64(value) => Variant::Int64(value.checked_add(i64::from(near))?),
        Variant::UInt64(value) => Variant::UInt64(value.checked_add(u64::from(near))?),
        Variant::Float(value) if value.is_finite() => Variant::Float(value + f32::from(u8::try_from(near).ok()?)),
        Variant::Double(value) if value.is_finite() => Variant::Double(value + f64::from(near)),
        _ => return None,
    })
}

struct Played {
    streams: Vec<Stream>,
    pauses: Vec<Duration>,
    reloads: u32,
}

/// Plays the script. With reloads: one begins before each step, meets it, and is over before the next.
async fn play(plant: &Plant, nodes: &[NodeId], steps: &[Step], reloads: Option<u32>) -> Result<Played, Trouble> {
    let mut watching = Watching::start(plant, nodes).await?;
    watching.until_all_have_a_value(plant).await?;
    let mut pauses = Vec::new();
    let mut done = 0;
    let mut usual = Duration::ZERO;
    for step in steps {
        let edition = reloads.map(|_| done);
        let reload = async {
            let started = Instant::now();
            match edition {
                Some(edition) => plant.load(Some(edition)).await?,
                None => tokio::task::yield_now().await,
            }
            Ok::<_, Trouble>(started.elapsed())
        };
        let act = async {
            // Most of a reload is the compiler's; spread over all of it, some steps meet the swap itself.
            if edition.is_some() {
                tokio::time::sleep(usual.mul_f64(f64::from(done % 11) / 10.0)).await;
            }
            match step {
                Step::Write(node, value) => plant.write(node, value.clone()).await.map(drop),
                Step::Read(node) => plant
                    .read(std::slice::from_ref(node), AttributeId::VALUE)
                    .await
                    .map(drop),
            }
        };
        let (took, acted) = tokio::join!(reload, act);
        acted?;
        usual = took?;
        if edition.is_some() {
            done += 1;
            pauses.extend(plant.status().and_then(|status| status.pause));
        }
        if let Step::Write(node, value) = step {
            watching.until_value(plant, node, value, ECHO).await?;
            tokio::time::sleep(SETTLE).await;
        }
    }
    watching.until_quiet(plant).await?;
    // What the script has written is put back, so that the next play begins where this one did.
    for variable in plant
        .variables
        .iter()
        .filter(|variable| variable.writable && variable.readable)
        .take(WRITTEN)
    {
        plant.write(&variable.id, variable.value.value.clone()).await?;
    }
    Ok(Played {
        streams: watching.end(plant).await?,
        pauses,
        reloads: done,
    })
}

fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get(last * percent / 100).copied()
}

/// Where two streams part.
fn difference(without: &Stream, with: &Stream) -> String {
    let place = without.iter().zip(with).take_while(|(a, b)| a == b).count();
    let show = |stream: &Stream| match stream.get(place) {
        Some((value, status)) => format!("{value:?} ({status})"),
        None => "nothing more".to_owned(),
    };
    format!(
        "notification {} of {} is {}, and with reloads {} of {}",
        place + 1,
        without.len(),
        show(without),
        show(with),
        with.len()
    )
}

#[cfg(test)]
mod tests {
    use backplane_types::StatusCode;

    use super::*;

    #[test]
    fn where_streams_part_is_said() {
        let value = |number: i32| (Variant::Int32(number), StatusCode::GOOD);
        let without = vec![value(1), value(2)];
        assert!(difference(&without, &vec![value(1)]).contains("notification 2 of 2"));
        assert!(difference(&without, &vec![value(1), value(3), value(2)]).contains("Int32(3)"));
    }

    #[test]
    fn values_stay_near_and_of_their_type() {
        let values = [
            Variant::Boolean(true),
            Variant::Byte(7),
            Variant::Int32(-7),
            Variant::Double(0.5),
        ];
        for value in values {
            let others: Vec<Variant> = (0..2).filter_map(|round| other(&value, round)).collect();
            assert_eq!(others.len(), 2);
            assert_ne!(others.first(), others.last());
            assert!(
                others
                    .iter()
                    .all(|other| std::mem::discriminant(other) == std::mem::discriminant(&value))
            );
            assert_ne!(others.first(), Some(&value));
        }
        assert_eq!(other(&Variant::Byte(255), 1), None);
        assert_eq!(other(&Variant::Double(f64::NAN), 1), None);
        assert_eq!(other(&Variant::Empty, 1), None);
    }

    #[test]
    fn percentiles() {
        let sorted: Vec<Duration> = (0..100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&sorted, 99), Some(Duration::from_millis(98)));
        assert_eq!(percentile(&sorted, 50), Some(Duration::from_millis(49)));
        assert_eq!(percentile(&[], 99), None);
    }
}
