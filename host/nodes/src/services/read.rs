//! Read (Part 4, 5.11.2), and the same for sampling.

use std::sync::Arc;
use std::time::Duration;

use backplane_types::view::{DecodeRef, ReadValueIdBytes};
use backplane_types::{AttributeId, DataValue, Decoder, Encoder, Now, NumericRange, StatusCode, Variant};

use super::read_batch::{ReadBatch, Until};
use super::{Progress, ServiceContext, check_size, fan_out, no_diagnostics, open_list};
use crate::attribute;
use crate::graph::NodeKey;
use crate::manager::CallContext;
use crate::model::node::{Node, Source};
use crate::source::{Checked, check_found, encode_part, open_cell};
use crate::space::{ManagerId, Snapshot};
use crate::timestamps::Stamps;

/// What comes before the operations.
pub(super) struct Head {
    pub(super) max_age: f64,
    pub(super) stamps: Stamps,
    pub(super) count: usize,
}

pub(super) fn open(decoder: &mut Decoder<'_>, snapshot: &Snapshot, now: Now) -> Result<Head, StatusCode> {
    let max_age = decoder.f64().map_err(StatusCode::from)?;
    let wanted = decoder.u32().map_err(StatusCode::from)?;
    let count = open_list(decoder, ReadValueIdBytes::MIN_SIZE, snapshot.limits.max_nodes_per_read)?;
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
        // Nearly all operations are for the whole Value of a node with a string id, whose value is in a cell that everybody may read.
        let usual = ReadValueIdBytes::usual(&mut decoder);
        let found = usual.as_ref().and_then(|id| snapshot.graph.look_up(id));
        if let Some(cell) = found.and_then(|found| open_cell(&snapshot.graph, found)) {
            cell.encode(out, head.stamps);
        } else {
            let operation = match usual {
                Some(id) => ReadValueIdBytes::whole_value(id),
                None => ReadValueIdBytes::decode_ref(&mut decoder).map_err(StatusCode::from)?,
            };
            if let Answer::OnDemand = unusual(snapshot, cx, &operation, found, head.stamps, out)? {
                out.truncate(start);
                return Ok(Progress::MustWait);
            }
        }
        check_size(out, start, cx)?;
    }
    no_diagnostics(out);
    Ok(Progress::Done)
}

/// Answers an operation of any kind. `found`: its node, as far as it was looked up.
#[inline(never)]
pub(super) fn unusual(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    operation: &ReadValueIdBytes<'_>,
    found: Option<(NodeKey, &Node)>,
    stamps: Stamps,
    out: &mut Encoder<'_>,
) -> Result<Answer, StatusCode> {
    let found = found.or_else(|| snapshot.graph.look_up(&operation.node_id));
    match one(snapshot, cx, operation, found, stamps, out) {
        Ok(answer) => Ok(answer),
        Err(status) => {
            refuse(status, operation, stamps, out)?;
            Ok(Answer::Written)
        }
    }
}

/// Answers an operation with a status alone.
///
/// # Errors
/// `BadDecodingError` when the node is unknown because its id is no id at all: that is the whole message's fault.
#[cold]
pub(super) fn refuse(
    status: StatusCode,
    operation: &ReadValueIdBytes<'_>,
    stamps: Stamps,
    out: &mut Encoder<'_>,
) -> Result<(), StatusCode> {
    operation.node_id.check().map_err(StatusCode::from)?;
    let is_value = operation.attribute_id == AttributeId::VALUE;
    let head = if is_value {
        stamps.refused(status)
    } else {
        stamps.plain(status)
    };
    out.data_value::<Variant>(&head, None);
    Ok(())
}

/// What became of one operation.
pub(super) enum Answer {
    Written,
    OnDemand,
}

/// The index range of an operation; none for a null or empty one.
pub(super) fn range_of(operation: &ReadValueIdBytes<'_>) -> Result<Option<NumericRange>, StatusCode> {
    match operation.index_range.text() {
        "" => Ok(None),
        text => NumericRange::parse(text),
    }
}

/// Answers one operation, if that needs no manager. Allocates nothing for scalars that the host keeps.
fn one(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    operation: &ReadValueIdBytes<'_>,
    found: Option<(NodeKey, &Node)>,
    stamps: Stamps,
    out: &mut Encoder<'_>,
) -> Result<Answer, StatusCode> {
    let attribute = operation.attribute_id;
    let found = check_found(&snapshot.graph, cx.call, found, attribute, operation.data_encoding)?;
    if let Some(variable) = found.variable
        && let Source::Cell(cell) = &variable.source
        && operation.index_range.is_empty()
    {
        cell.encode(out, stamps);
        return Ok(Answer::Written);
    }
    other(snapshot, cx, operation, &found, stamps, out)
}

/// Answers an operation that passed the checks and is not for the whole value of a cell.
fn other(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    operation: &ReadValueIdBytes<'_>,
    found: &Checked<'_>,
    stamps: Stamps,
    out: &mut Encoder<'_>,
) -> Result<Answer, StatusCode> {
    let attribute = operation.attribute_id;
    let range = range_of(operation)?;
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
        Source::Cell(cell) => cell.inspect(|value, head| encode_part(value, head, range.as_ref(), stamps, out)),
        Source::Static(value) => encode_part(&value.value, &value.head(), range.as_ref(), stamps, out),
        Source::Live(live) => {
            let value = (live.0)(cx.now);
            encode_part(&value.value, &value.head(), range.as_ref(), stamps, out);
        }
        Source::OnDemand => {
            check_reader(snapshot, found.key.slot)?;
            return Ok(Answer::OnDemand);
        }
    }
    Ok(Answer::Written)
}

/// Whether the manager of a node answers on-demand reads.
///
/// # Errors
/// `BadNotReadable` if it does not.
pub(super) fn check_reader(snapshot: &Snapshot, slot: u32) -> Result<(), StatusCode> {
    let attached = snapshot.attached_at(slot).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if attached.manager.facets().reader {
        Ok(())
    } else {
        Err(StatusCode::BAD_NOT_READABLE)
    }
}

/// Read, with on-demand variables: each manager is asked once, all of them at the same time. A batch of one, see [`ReadBatch`].
///
/// # Errors
/// As [`read`], and `BadTimeout` never: the deadline is the managers' to keep.
pub async fn read_waiting(
    snapshot: &Arc<Snapshot>,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), StatusCode> {
    let mut batch = ReadBatch::new(Arc::clone(snapshot), cx.call.clone(), cx.now, cx.decode);
    let until = Until {
        mono: cx.call.deadline,
        utc: cx.call.deadline_utc,
    };
    let index = batch.push(body, until, cx.max_response_size)?;
    let mut asking = batch.ask();
    while asking.next().await.is_some() {}
    asking.answer(index, Duration::ZERO, &mut Encoder::new(out))
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
