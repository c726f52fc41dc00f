//! Write (Part 4, 5.11.4).
//!
//! A write is checked as a whole before anything happens. It then goes to the cell of its variable, or to the manager and, when that says Good, to the
//! cell. Source times are kept as the client sent them; a status is taken only where the variable has StatusWrite.

use std::cell::Cell;
use std::sync::Arc;

use backplane_types::view::{DecodeRef, NodeIdBytes, WriteValueBytes};
use backplane_types::{AttributeId, BuiltInType, DataValue, Decoder, Encoder, NumericRange, StatusCode, Variant};

use super::{Progress, ServiceContext, fan_out, no_diagnostics, open_list};
use crate::cell::ValueCell;
use crate::graph::NodeKey;
use crate::manager::{BoxFuture, Fault, WriteOperation, Writes};
use crate::model::node::{Node, Source, Variable};
use crate::rights::{self, permission};
use crate::space::{Attached, Snapshot};
use crate::structure;
use crate::typing;

const CURRENT_WRITE: u32 = 1 << 1;
const STATUS_WRITE: u32 = 1 << 5;
const WRITE_FULL_ARRAY_ONLY: u32 = 1 << 10;
/// How often a part of an array is put into a value that changes at the same time.
const MAX_ATTEMPTS: u32 = 64;

/// A variable that may be written, and how.
struct Target<'s> {
    slot: u32,
    attached: &'s Attached,
    key: NodeKey,
    variable: &'s Variable,
    how: Writes,
}

/// Write: variables whose manager is not asked.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, those of decoding.
pub fn write(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Encoder<'_>,
) -> Result<Progress, StatusCode> {
    let (decoder, count) = open(snapshot, cx, body)?;
    let mut planned = PLAN.take();
    planned.clear();
    let progress = plan(snapshot, cx, decoder, count, &mut planned).map(|complete| {
        if !complete {
            return Progress::MustWait;
        }
        out.i32(i32::try_from(count).unwrap_or(i32::MAX));
        for planned in &planned {
            let status = carry_out(snapshot, cx, body, planned);
            out.u32(status.err().unwrap_or(StatusCode::GOOD).0);
        }
        no_diagnostics(out);
        Progress::Done
    });
    if planned.capacity() <= KEPT_PLAN {
        PLAN.set(planned);
    }
    progress
}

/// Operations that the plan of a Write may have room for between two of them.
const KEPT_PLAN: usize = 4096;

thread_local! {
    /// So that no Write allocates a plan.
    static PLAN: Cell<Vec<Planned>> = const { Cell::new(Vec::new()) };
}

/// An operation that was checked, before the first one is done.
enum Planned {
    /// Good for certain: a scalar in the form of [`Variant::to_bits`] for a cell.
    Scalar(NodeKey, BuiltInType, u64),
    /// Any other one, by the bytes that are left of the message where it begins.
    Other { left: usize },
}

/// A decoder at the first operation, and how many there are.
fn open<'a>(snapshot: &Snapshot, cx: &ServiceContext<'_>, body: &'a [u8]) -> Result<(Decoder<'a>, usize), StatusCode> {
    let mut decoder = Decoder::new(body, cx.decode);
    let count = open_list(
        &mut decoder,
        WriteValueBytes::MIN_SIZE,
        snapshot.limits.max_nodes_per_write,
    )?;
    Ok((decoder, count))
}

/// Checks all operations before the first one is done. False: a manager must be asked; the rest is then unchecked.
fn plan(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    mut decoder: Decoder<'_>,
    count: usize,
    planned: &mut Vec<Planned>,
) -> Result<bool, StatusCode> {
    // What managers want of writes, and whether any of a namespace wants to be asked: operations next to each other are mostly in the same one.
    let mut wants = None;
    let mut asks = None;
    for _ in 0..count {
        let left = decoder.rest().len();
        let before = decoder.clone();
        if let Some((id, kind, bits)) = WriteValueBytes::usual(&mut decoder) {
            match usual(snapshot, &id, kind, &mut wants) {
                Usual::ToCell(key) => {
                    planned.push(Planned::Scalar(key, kind, bits));
                    continue;
                }
                Usual::ToManager => return Ok(false),
                Usual::Not => decoder = before,
            }
        }
        let (node_id, attribute) = WriteValueBytes::check(&mut decoder).map_err(StatusCode::from)?;
        let namespace = node_id.namespace();
        let asked = match asks {
            Some((known, asked)) if known == namespace => asked,
            _ => asks_managers(snapshot, namespace),
        };
        asks = Some((namespace, asked));
        if asked && find(snapshot, cx, &node_id, attribute).is_ok_and(|target| target.how == Writes::ToManager) {
            return Ok(false);
        }
        planned.push(Planned::Other { left });
    }
    Ok(true)
}

/// Does what was planned.
fn carry_out(snapshot: &Snapshot, cx: &ServiceContext<'_>, body: &[u8], planned: &Planned) -> Result<(), StatusCode> {
    match planned {
        Planned::Scalar(key, kind, bits) => {
            let variable = snapshot.graph.node(*key).and_then(Node::variable);
            let Some(Source::Cell(cell)) = variable.map(|variable| &variable.source) else {
                return Err(StatusCode::BAD_INTERNAL_ERROR);
            };
            cell.write_scalar(*kind, *bits, cx.now.utc, cx.now.utc);
            Ok(())
        }
        Planned::Other { left } => {
            let start = body.len().saturating_sub(*left);
            let mut decoder = Decoder::new(body.get(start..).unwrap_or_default(), cx.decode);
            let operation = WriteValueBytes::decode_ref(&mut decoder).map_err(StatusCode::from)?;
            let target = find(snapshot, cx, &operation.node_id, operation.attribute_id)?;
            to_cell(snapshot, cx, &target, &operation)
        }
    }
}

/// What becomes of a scalar for the whole Value of a node, as far as that is plain.
enum Usual {
    ToCell(NodeKey),
    ToManager,
    Not,
}

/// Nothing has to be checked for a variable that everybody may write, if it declares the very type that comes.
fn usual(snapshot: &Snapshot, id: &NodeIdBytes<'_>, kind: BuiltInType, wants: &mut Option<(u32, Writes)>) -> Usual {
    let Some((key, node)) = snapshot.graph.look_up(id) else {
        return Usual::Not;
    };
    let variable = match node.variable() {
        Some(variable) if rights::is_open(&snapshot.graph, key.slot, node) && variable.access & CURRENT_WRITE != 0 => {
            variable
        }
        _ => return Usual::Not,
    };
    let fits = typing::declares_scalar(kind, variable.rule, variable.rank) && variable.instrument_range().is_none();
    if !matches!(variable.source, Source::Cell(_)) {
        return Usual::Not;
    }
    let writes = match wants {
        Some((slot, writes)) if *slot == key.slot => *writes,
        _ => {
            let Some(attached) = snapshot.attached_at(key.slot) else {
                return Usual::Not;
            };
            let writes = attached.manager.facets().writes;
            *wants = Some((key.slot, writes));
            writes
        }
    };
    match of(variable, writes) {
        Writes::ToManager => Usual::ToManager,
        Writes::ToCell if fits => Usual::ToCell(key),
        _ => Usual::Not,
    }
}

/// Where a write of this variable goes, if its manager wants `writes`: without a tag the manager could not be told which variable it is, so that
/// such a variable is the host's alone.
fn of(variable: &Variable, writes: Writes) -> Writes {
    match writes {
        Writes::ToManager if variable.tag == 0 => Writes::ToCell,
        writes => writes,
    }
}

/// Whether writes to some node of a namespace go to its manager.
fn asks_managers(snapshot: &Snapshot, namespace: u16) -> bool {
    let managers = snapshot
        .graph
        .slots(namespace)
        .iter()
        .filter_map(|slot| snapshot.attached_at(*slot));
    managers
        .into_iter()
        .any(|attached| attached.manager.facets().writes == Writes::ToManager)
}

/// Finds the variable of an operation, and checks everything but the value.
fn find<'s>(
    snapshot: &'s Snapshot,
    cx: &ServiceContext<'_>,
    node_id: &NodeIdBytes<'_>,
    attribute: AttributeId,
) -> Result<Target<'s>, StatusCode> {
    let (key, node) = snapshot.graph.look_up(node_id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let variable = match node.variable() {
        Some(variable) if attribute == AttributeId::VALUE => variable,
        _ => return Err(not_writable(snapshot, cx, key, node, attribute)),
    };
    if variable.access & CURRENT_WRITE == 0 {
        return Err(StatusCode::BAD_NOT_WRITABLE);
    }
    rights::check(&snapshot.graph, key.slot, node, cx.call, permission::WRITE)?;
    let attached = snapshot.attached_at(key.slot).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let how = of(variable, attached.manager.facets().writes);
    let possible = matches!(
        (&variable.source, how),
        (Source::Cell(_), Writes::ToCell | Writes::ToManager) | (Source::OnDemand, Writes::ToManager)
    );
    if possible {
        Ok(Target {
            slot: key.slot,
            attached,
            key,
            variable,
            how,
        })
    } else {
        Err(StatusCode::BAD_NOT_WRITABLE)
    }
}

/// An attribute that cannot be written: because it cannot, or because the node does not have it.
fn not_writable(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    key: NodeKey,
    node: &Node,
    attribute: AttributeId,
) -> StatusCode {
    let missing = !attribute.is_valid()
        || crate::attribute::read(&snapshot.graph, key, node, attribute, cx.call)
            == Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    if missing {
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    } else {
        StatusCode::BAD_NOT_WRITABLE
    }
}

/// The operation's value, checked; for a part of an array or string, the part.
struct Accepted {
    range: Option<NumericRange>,
    value: DataValue,
}

fn accept(snapshot: &Snapshot, target: &Target<'_>, operation: &WriteValueBytes<'_>) -> Result<Accepted, StatusCode> {
    let variable = target.variable;
    let head = &operation.value.head;
    if head.server_timestamp.is_some() || (head.status != StatusCode::GOOD && variable.access & STATUS_WRITE == 0) {
        return Err(StatusCode::BAD_WRITE_NOT_SUPPORTED);
    }
    let range = match operation.index_range.text() {
        "" => None,
        text => NumericRange::parse(text)?,
    };
    if range.is_some() && variable.access & WRITE_FULL_ARRAY_ONLY != 0 {
        return Err(StatusCode::BAD_WRITE_NOT_SUPPORTED);
    }
    let mut value = operation.value.to_owned().map_err(StatusCode::from)?;
    value.value = match &range {
        None => typing::fit(value.value, variable.rule, variable.rank, variable.dimensions())?,
        Some(_) => fit_part(value.value, variable)?,
    };
    if !structure::fits(&snapshot.graph, target.key, variable, &value.value) {
        return Err(StatusCode::BAD_TYPE_MISMATCH);
    }
    typing::check_limits(&value.value, variable.instrument_range())?;
    Ok(Accepted { range, value })
}

/// A part of an array has the type of the elements; how large it is can only be said against the present value.
fn fit_part(value: Variant, variable: &Variable) -> Result<Variant, StatusCode> {
    let value = typing::adapt_bytes(value, variable.rule, variable.rank);
    match value.built_in_type() {
        Some(kind) if variable.rule.accepts(kind) || kind == BuiltInType::Variant => Ok(value),
        _ => Err(StatusCode::BAD_TYPE_MISMATCH),
    }
}

fn to_cell(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    target: &Target<'_>,
    operation: &WriteValueBytes<'_>,
) -> Result<(), StatusCode> {
    let accepted = accept(snapshot, target, operation)?;
    let Source::Cell(cell) = &target.variable.source else {
        return Err(StatusCode::BAD_NOT_WRITABLE);
    };
    put(cell, target.variable, accepted, cx, None)
}

/// Sets a cell. `only_if`: the version it must still have.
fn put(
    cell: &ValueCell,
    variable: &Variable,
    accepted: Accepted,
    cx: &ServiceContext<'_>,
    only_if: Option<u64>,
) -> Result<(), StatusCode> {
    let mut value = accepted.value;
    value.source_timestamp = value.source_timestamp.or(Some(cx.now.utc));
    value.server_timestamp = Some(cx.now.utc);
    let Some(range) = accepted.range else {
        match only_if {
            // Another value came during the call: that one is newer.
            Some(version) => drop(cell.write_if(version, value)),
            None => cell.write(value),
        }
        return Ok(());
    };
    let part = std::mem::take(&mut value.value);
    for _ in 0..MAX_ATTEMPTS {
        let (version, current) = cell.read_versioned();
        if only_if.is_some_and(|wanted| wanted != version) {
            return Ok(());
        }
        let mut whole = current.value;
        range.write(&mut whole, &part)?;
        let whole = typing::fit(whole, variable.rule, variable.rank, variable.dimensions())?;
        if cell.write_if(
            version,
            DataValue {
                value: whole,
                ..value.clone()
            },
        ) {
            return Ok(());
        }
    }
    Err(StatusCode::BAD_RESOURCE_UNAVAILABLE)
}

/// The writes for one manager, with the place of each in the response.
struct Batch<'s> {
    slot: u32,
    attached: &'s Attached,
    writes: Vec<WriteOperation>,
    after: Vec<After<'s>>,
}

/// What happens when the manager has accepted a write.
struct After<'s> {
    place: usize,
    variable: &'s Variable,
    version: u64,
    accepted: Accepted,
}

/// Write, with managers: each is asked once, all of them at the same time.
///
/// # Errors
/// As [`write()`].
pub async fn write_waiting(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), StatusCode> {
    let (mut decoder, count) = open(snapshot, cx, body)?;
    let mut unchecked = decoder.clone();
    for _ in 0..count {
        WriteValueBytes::check(&mut unchecked).map_err(StatusCode::from)?;
    }
    let mut results = vec![StatusCode::GOOD; count];
    let mut batches: Vec<Batch<'_>> = Vec::new();
    for place in 0..count {
        let operation = WriteValueBytes::decode_ref(&mut decoder).map_err(StatusCode::from)?;
        if let Err(status) = begin(snapshot, cx, place, &operation, &mut batches)
            && let Some(result) = results.get_mut(place)
        {
            *result = status;
        }
    }
    let futures: Vec<BoxFuture<'_, Result<Vec<StatusCode>, Fault>>> = batches
        .iter_mut()
        .map(|batch| batch.attached.manager.write(cx.call, std::mem::take(&mut batch.writes)))
        .collect();
    let answers = fan_out::join(futures).await;
    for (batch, answer) in batches.into_iter().zip(answers) {
        finish(cx, batch, answer, &mut results);
    }
    let mut out = Encoder::new(out);
    out.i32(i32::try_from(results.len()).unwrap_or(i32::MAX));
    for status in results {
        out.u32(status.0);
    }
    no_diagnostics(&mut out);
    Ok(())
}

/// Does a write that needs no manager, or puts it into the manager's batch.
fn begin<'s>(
    snapshot: &'s Snapshot,
    cx: &ServiceContext<'_>,
    place: usize,
    operation: &WriteValueBytes<'_>,
    batches: &mut Vec<Batch<'s>>,
) -> Result<(), StatusCode> {
    let target = find(snapshot, cx, &operation.node_id, operation.attribute_id)?;
    if target.how != Writes::ToManager {
        return to_cell(snapshot, cx, &target, operation);
    }
    let accepted = accept(snapshot, &target, operation)?;
    let version = match &target.variable.source {
        Source::Cell(cell) => {
            let (version, current) = cell.read_versioned();
            if let Some(range) = &accepted.range {
                // So that the manager is not asked for what cannot be.
                let mut whole = current.value;
                range.write(&mut whole, &accepted.value.value)?;
            }
            version
        }
        _ => 0,
    };
    let range = Some(operation.index_range.text()).filter(|text| !text.is_empty());
    let write = WriteOperation {
        tag: target.variable.tag,
        index_range: range.map(Arc::from),
        value: accepted.value.clone(),
    };
    let after = After {
        place,
        variable: target.variable,
        version,
        accepted,
    };
    let position = batches.iter().position(|batch| batch.slot == target.slot);
    let batch = match position {
        Some(position) => batches.get_mut(position),
        None => {
            batches.push(Batch {
                slot: target.slot,
                attached: target.attached,
                writes: Vec::new(),
                after: Vec::new(),
            });
            batches.last_mut()
        }
    };
    if let Some(batch) = batch {
        batch.writes.push(write);
        batch.after.push(after);
    }
    Ok(())
}

fn finish(
    cx: &ServiceContext<'_>,
    batch: Batch<'_>,
    answer: Result<Vec<StatusCode>, Fault>,
    results: &mut [StatusCode],
) {
    let (mut answers, missing) = match answer {
        Ok(answers) => {
            if answers.len() != batch.after.len() {
                let detail = format!("{} statuses for {} writes", answers.len(), batch.after.len());
                batch.attached.manager.misbehaved(&detail);
            }
            (answers.into_iter(), StatusCode::BAD_INTERNAL_ERROR)
        }
        Err(fault) => (Vec::new().into_iter(), fan_out::status_of(&fault)),
    };
    // One variable may be written several times in a request: only what came from outside in between is newer.
    let mut written: Vec<(*const ValueCell, u64)> = Vec::new();
    for after in batch.after {
        let status = answers.next().unwrap_or(missing);
        if let Some(result) = results.get_mut(after.place) {
            *result = status;
        }
        let Source::Cell(cell) = &after.variable.source else {
            continue;
        };
        if status.is_bad() {
            continue;
        }
        let at = Arc::as_ptr(cell);
        let known = written.iter_mut().find(|entry| entry.0 == at);
        let version = known.as_ref().map_or(after.version, |entry| entry.1);
        let before = cell.version();
        // The manager has done it; that the host cannot show it is no reason to say otherwise.
        let _ = put(cell, after.variable, after.accepted, cx, Some(version));
        let now = if before == version { cell.version() } else { version };
        match known {
            Some(entry) => entry.1 = now,
            None => written.push((at, now)),
        }
    }
}
