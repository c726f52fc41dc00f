//! Calls, subscriptions, renewal under load, and what happens while plugins are replaced or misbehave.

use std::time::{Duration, Instant};

use opcua::client::{DataChangeCallback, MonitoredItem};
use opcua::types::{
    CallMethodRequest, DataValue, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, NodeId, StatusCode,
    TimestampsToReturn, UAString, Variant,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::connection::{Connection, Security, Setup};
use crate::{Case, ask_harness, check};

async fn call(connection: &Connection) -> Case {
    let add =
        |inputs: Vec<Variant>| CallMethodRequest::from((connection.node("Dev"), connection.node("Add"), Some(inputs)));
    let one = async |inputs| {
        connection
            .session
            .call_one(add(inputs))
            .await
            .map_err(|error| error.to_string())
    };
    let sum = one(vec![Variant::Double(1.5), Variant::Double(2.25)]).await?;
    check(sum.status_code.is_good(), format!("Add: {}", sum.status_code))?;
    check(
        sum.output_arguments == Some(vec![Variant::Double(3.75)]),
        format!("Add: {:?}", sum.output_arguments),
    )?;
    let missing = one(vec![Variant::Double(1.0)]).await?;
    check(
        missing.status_code == StatusCode::BadArgumentsMissing,
        format!("one argument: {}", missing.status_code),
    )?;
    let wrong = one(vec![Variant::String(UAString::from("a")), Variant::Double(1.0)]).await?;
    check(
        wrong.status_code == StatusCode::BadInvalidArgument,
        format!("a text for a Double: {}", wrong.status_code),
    )
}

type Changes = UnboundedReceiver<(usize, DataValue)>;

/// A subscription on nodes by name; changes carry the index of the name.
async fn watch(connection: &Connection, names: &[&str]) -> Case<(u32, Changes)> {
    let (sender, receiver) = unbounded_channel();
    let nodes: Vec<NodeId> = names.iter().map(|name| connection.node(name)).collect();
    let callback = DataChangeCallback::new(move |value: DataValue, item: &MonitoredItem| {
        // The library numbers items as it likes; their nodes tell which is which.
        if let Some(index) = nodes.iter().position(|node| *node == item.item_to_monitor().node_id) {
            // Nobody listens any more once the case is over.
            let _ = sender.send((index, value));
        }
    });
    let session = &connection.session;
    let subscription = session
        .create_subscription(Duration::from_millis(50), 1_000, 20, 0, 0, true, callback)
        .await
        .map_err(|error| error.to_string())?;
    let items = (0..).zip(names).map(|(client_handle, name)| {
        let parameters = MonitoringParameters {
            client_handle,
            sampling_interval: 50.0,
            queue_size: 100,
            discard_oldest: true,
            ..MonitoringParameters::default()
        };
        MonitoredItemCreateRequest::new(connection.node(name).into(), MonitoringMode::Reporting, parameters)
    });
    let created = session
        .create_monitored_items(subscription, TimestampsToReturn::Both, items.collect())
        .await
        .map_err(|error| error.to_string())?;
    for item in &created {
        check(
            item.result.status_code.is_good(),
            format!("monitored item: {}", item.result.status_code),
        )?;
    }
    Ok((subscription, receiver))
}

async fn change(changes: &mut Changes, seconds: u64) -> Case<(usize, DataValue)> {
    let next = tokio::time::timeout(Duration::from_secs(seconds), changes.recv())
        .await
        .map_err(|_| format!("no change within {seconds} s"))?;
    let (handle, value) = next.ok_or("the subscription ended")?;
    match value.status {
        None | Some(StatusCode::Good) => Ok((handle, value)),
        Some(status) => Err(format!("item {handle}: {status}")),
    }
}

async fn subscribe(connection: &Connection) -> Case {
    let (subscription, mut changes) = watch(connection, &["Counter"]).await?;
    let mut seen: Vec<u32> = Vec::new();
    while seen.len() < 20 {
        match change(&mut changes, 10).await?.1.value {
            Some(Variant::UInt32(count)) => seen.push(count),
            other => return Err(format!("Counter is {other:?}")),
        }
    }
    check(
        seen.windows(2).all(|pair| pair[1] > pair[0]),
        format!("the counter does not count: {seen:?}"),
    )?;
    check(seen[19] - seen[0] < 30, format!("changes were lost: {seen:?}"))?;
    let status = connection
        .session
        .delete_subscription(subscription)
        .await
        .map_err(|error| error.to_string())?;
    check(status.is_good(), format!("delete: {status}"))
}

/// A whole short session: call and subscribe.
pub async fn short_session(setup: &Setup, security: Security, user: bool) -> Case {
    let connection = setup
        .connect(security, user.then_some(("user1", "password1")), None)
        .await?;
    call(&connection).await?;
    subscribe(&connection).await?;
    connection.close().await
}

/// Reads without a pause over more than two lifetimes of a 10 s token.
pub async fn renewal(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, Some(10_000)).await?;
    let node = connection.node("Var1");
    let end = Instant::now() + Duration::from_secs(24);
    let mut count = 0;
    while Instant::now() < end {
        for _ in 0..20 {
            connection.read(&node).await?;
        }
        count += 20;
    }
    check(count > 500, format!("only {count} reads"))?;
    check(connection.is_alive(), "the connection was lost")?;
    connection.close().await
}

fn equal_word(word: &str, expected: &str) -> Case {
    check(word == expected, format!("{word:?} on standard input"))
}

/// A client that is subscribed while the plugin is replaced sees new values, no error, and never reconnects.
pub async fn reload(setup: &Setup) -> Case {
    let connection = setup.connect(Security::NONE, None, None).await?;
    let (subscription, mut changes) = watch(&connection, &["Counter", "the.answer", "Build"]).await?;
    let mut first: [Option<Variant>; 3] = [None, None, None];
    while first.iter().any(Option::is_none) {
        let (handle, value) = change(&mut changes, 10).await?;
        first[handle] = value.value;
    }
    equal_word(&ask_harness("subscribed").await?, "replaced")?;
    loop {
        let (handle, value) = change(&mut changes, 30).await?;
        if handle == 2 && value.value != first[2] {
            break;
        }
    }
    for _ in 0..5 {
        change(&mut changes, 10).await?;
    }
    call(&connection).await?;
    check(connection.is_alive(), "the connection was lost")?;
    connection
        .session
        .delete_subscription(subscription)
        .await
        .map_err(|error| error.to_string())?;
    connection.close().await
}

/// Reads one at a time; p99.
async fn percentile(connection: &Connection, seconds: u64) -> Case<Duration> {
    let node = connection.node("Var1");
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut times = Vec::new();
    while Instant::now() < end {
        let start = Instant::now();
        connection.read(&node).await?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times
        .get(times.len() * 99 / 100)
        .copied()
        .ok_or_else(|| "no reads".to_owned())
}

/// Reads of the simulator stay quick beside plugins that spin, panic and eat memory.
pub async fn misdeeds(setup: &Setup) -> Case {
    let connection = setup.connect(Security::NONE, None, None).await?;
    percentile(&connection, 1).await?;
    let before = percentile(&connection, 4).await?;
    equal_word(&ask_harness("measured").await?, "installed")?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while connection
        .namespaces()
        .await?
        .iter()
        .filter(|uri| uri.starts_with("urn:backplane:test:"))
        .count()
        < 3
    {
        check(Instant::now() < deadline, "the bad plugins did not load")?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let bad = connection.namespace_of("urn:backplane:test:panics-on-write").await?;
    let target = NodeId::new(bad, "Target");
    let provoke = async {
        loop {
            connection.write(&target, Variant::Double(1.0), None).await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let after = tokio::select! {
        result = provoke => return result,
        after = percentile(&connection, 6) => after?,
    };
    eprintln!("p99 {before:?} -> {after:?}");
    check(after <= before * 2, format!("p99 went from {before:?} to {after:?}"))?;
    connection.close().await
}
