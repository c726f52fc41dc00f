//! Call (Part 4, 5.12.2).

use backplane_types::view::{CallMethodRequestRef, CallView};
use backplane_types::{BinaryEncode, Encoder, NodeId, StatusCode, Variant};

use super::{Progress, ServiceContext, check_count, check_size, fan_out, no_diagnostics};
use crate::graph::{Graph, NodeKey};
use crate::manager::{BoxFuture, CallOutcome, Fault};
use crate::model::node::{ArgumentRule, Body, Method, Node};
use crate::rights::{self, permission};
use crate::space::{Attached, Snapshot};
use crate::structure;
use crate::typing;

/// A call that passed every check.
struct Ready<'s> {
    place: usize,
    slot: u32,
    attached: &'s Attached,
    object: &'s NodeId,
    method: &'s Method,
    inputs: Vec<Variant>,
}

/// Why a call is not made.
struct Refusal {
    status: StatusCode,
    /// One status for each argument, when it is about them.
    inputs: Vec<StatusCode>,
}

impl From<StatusCode> for Refusal {
    fn from(status: StatusCode) -> Self {
        Self {
            status,
            inputs: Vec::new(),
        }
    }
}

/// Call, when no method can be called at all; otherwise it must wait.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, those of decoding.
pub fn call(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Encoder<'_>,
) -> Result<Progress, StatusCode> {
    let start = out.position();
    let view = open(snapshot, cx, body)?;
    out.i32(i32::try_from(view.methods_to_call.len()).unwrap_or(i32::MAX));
    for (place, operation) in view.operations().enumerate() {
        let operation = operation.map_err(StatusCode::from)?;
        match prepare(snapshot, cx, place, &operation) {
            Ok(_) => {
                out.truncate(start);
                return Ok(Progress::MustWait);
            }
            Err(refusal) => append(&refusal.into(), out),
        }
    }
    no_diagnostics(out);
    Ok(Progress::Done)
}

fn open<'a>(snapshot: &Snapshot, cx: &ServiceContext<'_>, body: &'a [u8]) -> Result<CallView<'a>, StatusCode> {
    let view = CallView::parse(body, cx.decode).map_err(StatusCode::from)?;
    check_count(view.methods_to_call.len(), snapshot.limits.max_nodes_per_method_call)?;
    Ok(view)
}

/// Calls methods: those of one manager one after the other, in order; managers at the same time.
///
/// # Errors
/// As [`call`], and `BadResponseTooLarge`.
pub async fn call_waiting(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), StatusCode> {
    let view = open(snapshot, cx, body)?;
    let mut results: Vec<CallOutcome> = Vec::new();
    results.resize_with(view.methods_to_call.len(), CallOutcome::default);
    let mut batches: Vec<(u32, Vec<Ready<'_>>)> = Vec::new();
    for (place, operation) in view.operations().enumerate() {
        let operation = operation.map_err(StatusCode::from)?;
        match prepare(snapshot, cx, place, &operation) {
            Ok(ready) => match batches.iter_mut().find(|batch| batch.0 == ready.slot) {
                Some(batch) => batch.1.push(ready),
                None => batches.push((ready.slot, vec![ready])),
            },
            Err(refusal) => {
                if let Some(result) = results.get_mut(place) {
                    *result = refusal.into();
                }
            }
        }
    }
    let futures: Vec<BoxFuture<'_, Vec<(usize, CallOutcome)>>> = batches
        .into_iter()
        .map(|(_, batch)| -> BoxFuture<'_, Vec<(usize, CallOutcome)>> { Box::pin(run(snapshot, cx, batch)) })
        .collect();
    for (place, outcome) in fan_out::join(futures).await.into_iter().flatten() {
        if let Some(result) = results.get_mut(place) {
            *result = outcome;
        }
    }
    let mut out = Encoder::new(out);
    let start = out.position();
    out.i32(i32::try_from(results.len()).unwrap_or(i32::MAX));
    for outcome in &results {
        append(outcome, &mut out);
        check_size(&out, start, cx)?;
    }
    no_diagnostics(&mut out);
    Ok(())
}

async fn run(snapshot: &Snapshot, cx: &ServiceContext<'_>, batch: Vec<Ready<'_>>) -> Vec<(usize, CallOutcome)> {
    let mut outcomes = Vec::with_capacity(batch.len());
    for ready in batch {
        let count = ready.inputs.len();
        let answer = ready
            .attached
            .manager
            .call(cx.call, ready.object, ready.method.tag, ready.inputs)
            .await;
        let outcome = checked(snapshot, ready.attached, ready.method, count, answer);
        outcomes.push((ready.place, outcome));
    }
    outcomes
}

/// Checks what a manager answered against the declaration of the method.
fn checked(
    snapshot: &Snapshot,
    attached: &Attached,
    method: &Method,
    inputs: usize,
    answer: Result<CallOutcome, Fault>,
) -> CallOutcome {
    let mut outcome = match answer {
        Ok(outcome) => outcome,
        Err(fault) => return Refusal::from(fan_out::status_of(&fault)).into(),
    };
    if !outcome.input_status.is_empty() && outcome.input_status.len() != inputs {
        attached.manager.misbehaved(&format!(
            "{} statuses for {inputs} arguments",
            outcome.input_status.len()
        ));
        outcome.input_status.clear();
    }
    if outcome.status.is_bad() {
        outcome.outputs.clear();
        return outcome;
    }
    if outcome.outputs.len() != method.outputs.len() {
        let detail = format!(
            "{} outputs, but {} are declared",
            outcome.outputs.len(),
            method.outputs.len()
        );
        attached.manager.misbehaved(&detail);
        return Refusal::from(StatusCode::BAD_INTERNAL_ERROR).into();
    }
    let outputs = std::mem::take(&mut outcome.outputs);
    for (value, rule) in outputs.into_iter().zip(&method.outputs) {
        match fit(&snapshot.graph, value, rule) {
            Ok(value) => outcome.outputs.push(value),
            Err(_) => {
                attached
                    .manager
                    .misbehaved("an output argument is not of the declared type");
                return Refusal::from(StatusCode::BAD_INTERNAL_ERROR).into();
            }
        }
    }
    outcome
}

fn fit(graph: &Graph, value: Variant, rule: &ArgumentRule) -> Result<Variant, StatusCode> {
    let value = typing::fit(value, rule.rule, rule.rank, &rule.dimensions)?;
    if structure::fits_type(graph, &rule.data_type, rule.rule, &value) {
        Ok(value)
    } else {
        Err(StatusCode::BAD_TYPE_MISMATCH)
    }
}

impl From<Refusal> for CallOutcome {
    fn from(refusal: Refusal) -> Self {
        Self {
            status: refusal.status,
            input_status: refusal.inputs,
            outputs: Vec::new(),
        }
    }
}

/// Appends a CallMethodResult.
fn append(outcome: &CallOutcome, out: &mut Encoder<'_>) {
    out.u32(outcome.status.0);
    outcome.input_status.encode(out);
    out.empty_list();
    outcome.outputs.encode(out);
}

/// Finds the method and checks everything that can be checked without its manager.
fn prepare<'s>(
    snapshot: &'s Snapshot,
    cx: &ServiceContext<'_>,
    place: usize,
    operation: &CallMethodRequestRef<'_>,
) -> Result<Ready<'s>, Refusal> {
    let graph = &snapshot.graph;
    let object = graph
        .find_ref(operation.object_id)
        .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let object_node = graph.node(object).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if !matches!(object_node.body, Body::Object { .. } | Body::ObjectType { .. }) {
        return Err(StatusCode::BAD_NODE_ID_INVALID.into());
    }
    let named = graph
        .find_ref(operation.method_id)
        .ok_or(StatusCode::BAD_METHOD_INVALID)?;
    let key = method_of(graph, object, named).ok_or(StatusCode::BAD_METHOD_INVALID)?;
    let (node, method) = method_at(graph, key).ok_or(StatusCode::BAD_METHOD_INVALID)?;
    if !method.executable {
        return Err(StatusCode::BAD_NOT_EXECUTABLE.into());
    }
    rights::check(graph, key.slot, node, cx.call, permission::CALL)?;
    let inputs = arguments(graph, method, operation)?;
    let attached = snapshot.attached_at(key.slot).ok_or(StatusCode::BAD_METHOD_INVALID)?;
    if method.tag == 0 || !attached.manager.facets().methods {
        return Err(StatusCode::BAD_NOT_IMPLEMENTED.into());
    }
    Ok(Ready {
        place,
        slot: key.slot,
        attached,
        object: &object_node.id,
        method,
        inputs,
    })
}

fn method_at(graph: &Graph, key: NodeKey) -> Option<(&Node, &Method)> {
    let node = graph.node(key)?;
    match &node.body {
        Body::Method(method) => Some((node, method)),
        _ => None,
    }
}

/// The method that `named` means on `object`: itself, if it is a component of the object or of its type; and for a method of the type, the object's own
/// one of the same name where there is one (5.12.2.1).
fn method_of(graph: &Graph, object: NodeKey, named: NodeKey) -> Option<NodeKey> {
    if components(graph, object).any(|method| method == named) {
        return Some(named);
    }
    let mut at = match graph.node(object)?.body {
        Body::ObjectType { .. } => graph.supertype(object),
        _ => graph.type_definition(object),
    };
    let mut steps = 0u32;
    while let Some(definition) = at.filter(|_| steps < graph.max_type_depth) {
        if components(graph, definition).any(|method| method == named) {
            let (node, _) = method_at(graph, named)?;
            let own = components(graph, object)
                .find(|key| method_at(graph, *key).is_some_and(|own| own.0.browse_name == node.browse_name));
            return Some(own.unwrap_or(named));
        }
        at = graph.supertype(definition);
        steps += 1;
    }
    None
}

/// The methods that are components of a node.
fn components(graph: &Graph, key: NodeKey) -> impl Iterator<Item = NodeKey> {
    let has_component = graph.known.has_component;
    graph
        .edges(key, 0)
        .filter(move |(_, edge)| {
            edge.forward
                && method_at(graph, edge.target).is_some()
                && has_component.is_some_and(|wanted| graph.is_a(edge.kind, wanted))
        })
        .map(|(_, edge)| edge.target)
}

fn arguments(graph: &Graph, method: &Method, operation: &CallMethodRequestRef<'_>) -> Result<Vec<Variant>, Refusal> {
    let given = operation.input_arguments.len();
    if given < method.inputs.len() {
        return Err(StatusCode::BAD_ARGUMENTS_MISSING.into());
    }
    if given > method.inputs.len() {
        return Err(StatusCode::BAD_TOO_MANY_ARGUMENTS.into());
    }
    let mut inputs = Vec::with_capacity(given);
    let mut statuses = Vec::with_capacity(given);
    for (argument, rule) in operation.input_arguments.iter().zip(&method.inputs) {
        let value = argument
            .and_then(|argument| argument.decode())
            .map_err(StatusCode::from)?;
        match fit(graph, value, rule) {
            Ok(value) => {
                inputs.push(value);
                statuses.push(StatusCode::GOOD);
            }
            Err(status) => statuses.push(status),
        }
    }
    if inputs.len() == given {
        Ok(inputs)
    } else {
        Err(Refusal {
            status: StatusCode::BAD_INVALID_ARGUMENT,
            inputs: statuses,
        })
    }
}
