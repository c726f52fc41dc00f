//! Asking several managers at the same time, and checking what they answer.

use std::future::poll_fn;
use std::task::Poll;

use backplane_types::{DataValue, Now, StatusCode, Variant};

use crate::manager::{BoxFuture, CallContext, Fault};
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
    let answer = match attached.manager.read(call, tags, max_age).await {
        Ok(answer) => answer,
        Err(fault) => {
            let status = status_of(&fault);
            return tags.iter().map(|_| without_value(status, now)).collect();
        }
    };
    if answer.len() != tags.len() {
        attached
            .manager
            .misbehaved(&format!("{} values for {} tags", answer.len(), tags.len()));
    }
    let mut answer = answer.into_iter();
    let mut values = Vec::with_capacity(tags.len());
    for tag in tags {
        values.push(match answer.next() {
            Some(value) => checked(attached, *tag, value, now),
            None => without_value(StatusCode::BAD_INTERNAL_ERROR, now),
        });
    }
    values
}

fn without_value(status: StatusCode, now: Now) -> DataValue {
    DataValue {
        source_timestamp: Some(now.utc),
        server_timestamp: Some(now.utc),
        ..DataValue::from_status(status)
    }
}

fn checked(attached: &Attached, tag: u32, mut value: DataValue, now: Now) -> DataValue {
    value.source_timestamp = value.source_timestamp.or(Some(now.utc));
    value.server_timestamp = Some(now.utc);
    if value.status().is_bad() {
        value.value = Variant::Empty;
        return value;
    }
    let Some(variable) = attached.model.tagged(tag).and_then(|node| node.variable()) else {
        return without_value(StatusCode::BAD_NODE_ID_UNKNOWN, now);
    };
    match typing::fit(value.value, variable.rule, variable.rank, variable.dimensions()) {
        Ok(fitting) => {
            value.value = fitting;
            value
        }
        Err(status) => {
            attached.manager.misbehaved(&format!(
                "the value for tag {tag} is not what the variable declares: {status}"
            ));
            without_value(StatusCode::BAD_INTERNAL_ERROR, now)
        }
    }
}
