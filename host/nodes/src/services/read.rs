//! Read (Part 4, 5.11.2), and the same for sampling.

use backplane_types::view::{DecodeRef, ReadValueIdRef};
use backplane_types::{AttributeId, DataValue, Decoder, Encoder, Now, NumericRange, StatusCode, Variant};

use super::{Progress, ServiceContext, check_size, fan_out, no_diagnostics, open_list};
use crate::attribute;
use crate::manager::{BoxFuture, CallContext};
use crate::model::node::{Source, Variable};
use crate::source::encode_part;
use crate::space::{Attached, ManagerId, Snapshot};
use crate::timestamps::Stamps;

/// What comes before the operations.
struct Head {
    max_age: f64,
    stamps: Stamps,
    count: usize,
}

fn open(decoder: &mut Decoder<'_>, snapshot: &Snapshot, now: Now) -> Result<Head, StatusCode> {
    let max_age = decoder.f64().map_err(StatusCode::from)?;
    let wanted = decoder.u32().map_err(StatusCode::from)?;
    let count = open_list(decoder, ReadValueIdRef::MIN_SIZE, snapshot.limits.max_nodes_per_read)?;
    if max_age.is_nan() || max_age < 0.0 {
        return Err(StatusCode::BAD_MAX_AGE_INVALID);
    }
    Ok(Head {
        max_age,
        stamps: Stamps::from_wire(wanted, now)?,
        count,
    })
}

/// Read: the values that the host keeps.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, `BadMaxAgeInvalid`, `BadTimestampsToReturnInvalid`, `BadResponseTooLarge`, those of decoding.
pub fn read(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Encoder<'_>,
) -> Result<Progress, StatusCode> {
    let start = out.position();
    let mut decoder = Decoder::new(body, cx.decode);
    let head = open(&mut decoder, snapshot, cx.now)?;
    out.i32(i32::try_from(head.count).unwrap_or(i32::MAX));
    for _ in 0..head.count {
        let operation = ReadValueIdRef::decode_ref(&mut decoder).map_err(StatusCode::from)?;
        match one(snapshot, cx, &operation, head.stamps, out) {
            Ok(Answer::Written) => {}
            Ok(Answer::OnDemand { .. }) => {
                out.truncate(start);
                return Ok(Progress::MustWait);
            }
            Err(status) => refuse(status, &operation, head.stamps, out),
        }
        check_size(out, start, cx)?;
    }
    no_diagnostics(out);
    Ok(Progress::Done)
}

fn refuse(status: StatusCode, operation: &ReadValueIdRef<'_>, stamps: Stamps, out: &mut Encoder<'_>) {
    let is_value = operation.attribute_id == AttributeId::VALUE;
    let head = if is_value {
        stamps.refused(status)
    } else {
        stamps.plain(status)
    };
    out.data_value::<Variant>(&head, None);
}

/// What became of one operation.
enum Answer<'s> {
    Written,
    OnDemand {
        slot: u32,
        attached: &'s Attached,
        tag: u32,
    },
}

/// Answers one operation, if that needs no manager. Allocates nothing for scalars that the host keeps.
fn one<'s>(
    snapshot: &'s Snapshot,
    cx: &ServiceContext<'_>,
    operation: &ReadValueIdRef<'_>,
    stamps: Stamps,
    out: &mut Encoder<'_>,
) -> Result<Answer<'s>, StatusCode> {
    let attribute = operation.attribute_id;
    let found = snapshot.check_read(cx.call, operation.node_id, attribute, operation.data_encoding)?;
    let range = match operation.index_range.text() {
        "" => None,
        text => NumericRange::parse(text)?,
    };
    let Some(variable) = found.variable else {
        let value = attribute::read(&snapshot.graph, found.key, found.node, attribute, cx.call)?;
        let value = match range {
            Some(range) => range.read(&value)?,
            None => value,
        };
        out.data_value(
            &stamps.plain(StatusCode::GOOD),
            Some(&value).filter(|value| !value.is_empty()),
        );
        return Ok(Answer::Written);
    };
    match &variable.source {
        Source::Cell(cell) if range.is_none() => cell.encode(out, stamps),
        Source::Cell(cell) => cell.inspect(|value, head| encode_part(value, head, range.as_ref(), stamps, out)),
        Source::Static(value) => encode_part(&value.value, &value.head(), range.as_ref(), stamps, out),
        Source::Live(live) => {
            let value = (live.0)(cx.now);
            encode_part(&value.value, &value.head(), range.as_ref(), stamps, out);
        }
        Source::OnDemand => return on_demand(snapshot, found.key.slot, variable),
    }
    Ok(Answer::Written)
}

fn on_demand<'s>(snapshot: &'s Snapshot, slot: u32, variable: &Variable) -> Result<Answer<'s>, StatusCode> {
    let attached = snapshot.attached_at(slot).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if attached.manager.facets().reader {
        Ok(Answer::OnDemand {
            slot,
            attached,
            tag: variable.tag,
        })
    } else {
        Err(StatusCode::BAD_NOT_READABLE)
    }
}

/// What one manager is asked for.
struct Asked<'s> {
    slot: u32,
    attached: &'s Attached,
    tags: Vec<u32>,
}

/// Read, with on-demand variables: each manager is asked once, all of them at the same time.
///
/// # Errors
/// As [`read`].
pub async fn read_waiting(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), StatusCode> {
    let (asked, max_age) = questions(snapshot, cx, body)?;
    let futures: Vec<BoxFuture<'_, Vec<DataValue>>> = asked
        .iter()
        .map(|asked| -> BoxFuture<'_, Vec<DataValue>> {
            Box::pin(fan_out::read_tags(
                asked.attached,
                cx.call,
                &asked.tags,
                max_age,
                cx.now,
            ))
        })
        .collect();
    let answers = fan_out::join(futures).await;
    let slots = asked.iter().map(|asked| asked.slot);
    let mut answers: Vec<(u32, std::vec::IntoIter<DataValue>)> =
        slots.zip(answers.into_iter().map(Vec::into_iter)).collect();
    write_answers(snapshot, cx, body, &mut answers, &mut Encoder::new(out))
}

/// Goes through the operations once to see which managers must be asked for what.
fn questions<'s>(
    snapshot: &'s Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
) -> Result<(Vec<Asked<'s>>, f64), StatusCode> {
    let mut decoder = Decoder::new(body, cx.decode);
    let head = open(&mut decoder, snapshot, cx.now)?;
    let mut asked: Vec<Asked<'s>> = Vec::new();
    for _ in 0..head.count {
        let operation = ReadValueIdRef::decode_ref(&mut decoder).map_err(StatusCode::from)?;
        let Ok((slot, attached, tag)) = question(snapshot, cx, &operation) else {
            continue;
        };
        match asked.iter_mut().find(|asked| asked.slot == slot) {
            Some(known) => known.tags.push(tag),
            None => asked.push(Asked {
                slot,
                attached,
                tags: vec![tag],
            }),
        }
    }
    Ok((asked, head.max_age))
}

/// The manager and tag of an operation that must wait; `Err` for every other one.
fn question<'s>(
    snapshot: &'s Snapshot,
    cx: &ServiceContext<'_>,
    operation: &ReadValueIdRef<'_>,
) -> Result<(u32, &'s Attached, u32), StatusCode> {
    let found = snapshot.check_read(
        cx.call,
        operation.node_id,
        operation.attribute_id,
        operation.data_encoding,
    )?;
    NumericRange::parse(operation.index_range.text())?;
    match found.variable {
        Some(
            variable @ Variable {
                source: Source::OnDemand,
                ..
            },
        ) => match on_demand(snapshot, found.key.slot, variable)? {
            Answer::OnDemand { slot, attached, tag } => Ok((slot, attached, tag)),
            Answer::Written => Err(StatusCode::BAD_INTERNAL_ERROR),
        },
        _ => Err(StatusCode::GOOD),
    }
}

fn write_answers(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    answers: &mut [(u32, std::vec::IntoIter<DataValue>)],
    out: &mut Encoder<'_>,
) -> Result<(), StatusCode> {
    let start = out.position();
    let mut decoder = Decoder::new(body, cx.decode);
    let head = open(&mut decoder, snapshot, cx.now)?;
    out.i32(i32::try_from(head.count).unwrap_or(i32::MAX));
    for _ in 0..head.count {
        let operation = ReadValueIdRef::decode_ref(&mut decoder).map_err(StatusCode::from)?;
        match one(snapshot, cx, &operation, head.stamps, out) {
            Ok(Answer::Written) => {}
            Ok(Answer::OnDemand { slot, .. }) => {
                let answer = answers
                    .iter_mut()
                    .find(|answer| answer.0 == slot)
                    .and_then(|answer| answer.1.next());
                match answer {
                    Some(value) => {
                        let range = NumericRange::parse(operation.index_range.text())?;
                        encode_part(&value.value, &value.head(), range.as_ref(), head.stamps, out);
                    }
                    None => refuse(StatusCode::BAD_INTERNAL_ERROR, &operation, head.stamps, out),
                }
            }
            Err(status) => refuse(status, &operation, head.stamps, out),
        }
        check_size(out, start, cx)?;
    }
    no_diagnostics(out);
    Ok(())
}

/// Asks one manager for on-demand variables, as sampling does: one value for each tag, in order, with both times. `max_age` in ms.
pub async fn sample(
    snapshot: &Snapshot,
    call: &CallContext,
    manager: ManagerId,
    tags: &[u32],
    max_age: f64,
    now: Now,
) -> Vec<DataValue> {
    match snapshot.attached.iter().find(|entry| entry.id == manager) {
        Some(attached) => fan_out::read_tags(attached, call, tags, max_age, now).await,
        None => tags
            .iter()
            .map(|_| DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN))
            .collect(),
    }
}
