//! Asking several managers at the same time, and checking what they answer.

use std::future::poll_fn;
use std::task::Poll;

use backplane_types::{DataValue, Now, StatusCode, Variant};

use crate::manager::{BoxFuture, CallContext, Fault};
use crate::model::node::{Node, Variable};
use crate::space::Attached;
use crate::typing;

/// Runs all futures to their end, side by side on the caller's task.
pub(super) async fn join<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut running: Vec<(Option<BoxFuture<'_, T>>, Option<T>)> =
        futures.into_iter().map(|future| (Some(future), None)).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (future, output) in &mut running {
            let Some(running) = future else { continue };
            match running.as_mut().poll(context) {
                Poll::Ready(value) => {
                    *output = Some(value);
                    *future = None;
                }
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

/// The status that a client sees for a fault: always a bad one.
pub(super) fn status_of(fault: &Fault) -> StatusCode {
    if fault.status.is_bad() {
        fault.status
    } else {
        StatusCode::BAD_INTERNAL_ERROR
    }
}

/// Asks a manager for on-demand variables. The answer has one checked value for each tag.
pub(super) async fn read_tags(
    attached: &Attached,
    call: &CallContext,
    tags: &[u32],
    max_age: f64,
    now: Now,
) -> Vec<DataValue> {
    let answer = attached.manager.read(call, tags, max_age).await;
    let variables = tags
        .iter()
        .map(|tag| (*tag, attached.model.tagged(*tag).and_then(Node::variable)));
    settle(attached, answer, variables, now)
}

/// Makes what a manager answered one checked value for each variable that it was asked for, in place.
pub(super) fn settle<'m>(
    attached: &Attached,
    answer: Result<Vec<DataValue>, Fault>,
    asked: impl ExactSizeIterator<Item = (u32, Option<&'m Variable>)>,
    now: Now,
) -> Vec<DataValue> {
    let mut values = match answer {
        Ok(values) => values,
        Err(fault) => return vec![without_value(status_of(&fault), now); asked.len()],
    };
    if values.len() != asked.len() {
        attached
            .manager
            .misbehaved(&format!("{} values for {} tags", values.len(), asked.len()));
    }
    let wanted = asked.len();
    values.truncate(wanted);
    for (value, (tag, variable)) in values.iter_mut().zip(asked) {
        check(attached, tag, variable, value, now);
    }
    values.resize_with(wanted, || without_value(StatusCode::BAD_INTERNAL_ERROR, now));
    values
}

fn without_value(status: StatusCode, now: Now) -> DataValue {
    DataValue {
        source_timestamp: Some(now.utc),
        server_timestamp: Some(now.utc),
        ..DataValue::from_status(status)
    }
}

fn check(attached: &Attached, tag: u32, variable: Option<&Variable>, value: &mut DataValue, now: Now) {
    value.source_timestamp = value.source_timestamp.or(Some(now.utc));
    value.server_timestamp = Some(now.utc);
    if value.status().is_bad() {
        value.value = Variant::Empty;
        return;
    }
    let Some(variable) = variable else {
        *value = without_value(StatusCode::BAD_NODE_ID_UNKNOWN, now);
        return;
    };
    if typing::is_declared_scalar(&value.value, variable.rule, variable.rank) {
        return;
    }
    let answered = std::mem::take(&mut value.value);
    match typing::fit(answered, variable.rule, variable.rank, variable.dimensions()) {
        Ok(fitting) => value.value = fitting,
        Err(status) => {
            attached.manager.misbehaved(&format!(
                "the value for tag {tag} is not what the variable declares: {status}"
            ));
            *value = without_value(StatusCode::BAD_INTERNAL_ERROR, now);
        }
    }
}
