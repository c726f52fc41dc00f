//! What async-opcua gets back after a message was lost with its connection, and after a durable subscription outlived the server.

use std::time::Duration;

use opcua::types::{CallMethodRequest, MonitoringMode, NodeId, NotificationMessage, StatusCode, Variant};
use tokio::time::sleep;

use crate::connection::{Connection, Security, Setup};
use crate::subscriptions::{Subscription, UNKNOWN, equal, publish, republish, take_over, text, values};
use crate::{Case, ask_harness, check, run};

/// Values that have to have come after the loss, for a case to end.
const ENOUGH: usize = 5;
const USER: Option<(&str, &str)> = Some(("user1", "password1"));

fn consecutive(values: &[u32], what: &str) -> Case {
    let ascends = values.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
    check(ascends && !values.is_empty(), format!("{what}: {values:?}"))
}

/// The good values of the counter in a message.
fn counted(message: NotificationMessage) -> Vec<u32> {
    let counts = values(message).into_iter().filter_map(|(_, value)| match value {
        Some(Variant::UInt32(count)) => Some(count),
        _ => None,
    });
    counts.collect()
}

/// A subscription to the counter: every value that came, and the number of the last message that did.
#[derive(Default)]
struct Watched {
    subscription: u32,
    number: u32,
    values: Vec<u32>,
}

impl Watched {
    async fn begin(connection: &Connection) -> Case<Self> {
        let counter = [connection.node("Counter")];
        let subscription = Subscription::of_values(connection, &counter, MonitoringMode::Reporting).await?;
        let mut watched = Self {
            subscription: subscription.id,
            ..Self::default()
        };
        watched.more(connection).await?;
        Ok(watched)
    }

    fn acknowledgement(&self) -> Option<(u32, u32)> {
        (self.number > 0).then_some((self.subscription, self.number))
    }

    fn take(&mut self, message: NotificationMessage) -> Case {
        equal(message.sequence_number, self.number + 1, "the number of a message")?;
        self.number = message.sequence_number;
        self.values.extend(counted(message));
        Ok(())
    }

    /// One more message; a keep-alive is none.
    async fn more(&mut self, connection: &Connection) -> Case {
        let message = publish(connection, self.acknowledgement()).await?;
        if message
            .notification_data
            .as_deref()
            .is_some_and(|parts| !parts.is_empty())
        {
            self.take(message)?;
        }
        Ok(())
    }

    /// The next message leaves the server and never arrives; the connection ends.
    async fn lose(&self, connection: &Connection) -> Case {
        equal(ask_harness("drop").await?.as_str(), "drop", "word on standard input")?;
        match publish(connection, self.acknowledgement()).await {
            Ok(_) => Err("the message was not lost".to_owned()),
            Err(_) => Ok(()),
        }
    }

    /// The lost message, the ones after it, and nothing else; what is acknowledged then is gone.
    async fn go_on(&mut self, connection: &Connection) -> Case {
        let seen = self.values.len();
        let message = republish(connection, self.subscription, self.number + 1).await;
        self.take(message.map_err(text)?)?;
        check(self.values.len() > seen, "nothing in the lost message")?;
        while self.values.len() < seen + ENOUGH {
            self.more(connection).await?;
        }
        consecutive(&self.values, "values around the loss")?;
        match republish(connection, self.subscription, self.number - 1).await {
            Ok(_) => return Err("an acknowledged message is still there".to_owned()),
            Err(error) => equal(
                error.status(),
                StatusCode::BadMessageNotAvailable,
                "an acknowledged message",
            )?,
        }
        Subscription::existing(connection, self.subscription).delete().await
    }

    /// Good values of all messages after the last one, until enough have come of the server that runs now.
    async fn collect(&mut self, connection: &Connection) -> Case {
        let results = take_over(connection, &[self.subscription]).await?;
        let result = results.into_iter().next().ok_or("no result of the transfer")?;
        equal(result.status_code, StatusCode::Good, "the transfer")?;
        let mut kept = result.available_sequence_numbers.unwrap_or_default();
        kept.sort_unstable();
        for number in kept {
            if number > self.number {
                let message = republish(connection, self.subscription, number).await;
                self.take(message.map_err(text)?)?;
            }
        }
        while self.restarted().is_none_or(|place| self.values.len() < place + ENOUGH) {
            self.more(connection).await?;
        }
        Ok(())
    }

    /// Where the counter of the server that was started again begins.
    fn restarted(&self) -> Option<usize> {
        let falls = self.values.windows(2).position(|pair| pair[1] < pair[0]);
        falls.map(|place| place + 1)
    }
}

/// The same session, on another connection that the library makes by itself.
async fn republish_after_loss(setup: &Setup, security: Security) -> Case {
    let connection = setup.again().connect(security, None, None).await?;
    let mut watched = Watched::begin(&connection).await?;
    let session = connection.session.server_session_id();
    watched.lose(&connection).await?;
    // The library says when it is connected, but not that it no longer is: a request that goes through tells.
    while connection.read(&NodeId::new(0, 2259_u32)).await.is_err() {
        sleep(Duration::from_millis(50)).await;
    }
    equal(
        connection.session.server_session_id(),
        session,
        "the session that was taken up again",
    )?;
    watched.go_on(&connection).await?;
    connection.close().await
}

/// Another session of the same user, on another connection; the old one was never closed.
async fn transfer_after_loss(setup: &Setup, security: Security) -> Case {
    let old = setup.connect(security, USER, None).await?;
    let mut watched = Watched::begin(&old).await?;
    watched.lose(&old).await?;
    let new = setup.connect(security, USER, None).await?;
    let results = take_over(&new, &[watched.subscription]).await?;
    let result = results.first().ok_or("no result of the transfer")?;
    equal(result.status_code, StatusCode::Good, "the transfer")?;
    let kept = result.available_sequence_numbers.as_deref().unwrap_or_default();
    equal(
        kept.first(),
        Some(&(watched.number + 1)),
        "the first message that is kept",
    )?;
    watched.go_on(&new).await?;
    old.cut().await;
    new.close().await
}

/// All cases that lose messages.
pub async fn losses(setup: &Setup) {
    for security in [Security::NONE, Security::all()[2]] {
        let name = security.name();
        run(
            &format!("republish after loss {name}"),
            republish_after_loss(setup, security),
        )
        .await;
        run(
            &format!("transfer after loss {name}"),
            transfer_after_loss(setup, security),
        )
        .await;
    }
}

/// The revised lifetime, or why the subscription does not become durable.
async fn set_durable(connection: &Connection, subscription: u32, hours: u32) -> Case<Result<u32, StatusCode>> {
    let (server, method) = (NodeId::new(0, 2253_u32), NodeId::new(0, 12_749_u32));
    let inputs = vec![Variant::UInt32(subscription), Variant::UInt32(hours)];
    let request = CallMethodRequest::from((server, method, Some(inputs)));
    let answer = connection.session.call_one(request).await.map_err(text)?;
    match (answer.status_code, answer.output_arguments.as_deref()) {
        (StatusCode::Good, Some([Variant::UInt32(revised)])) => Ok(Ok(*revised)),
        (StatusCode::Good, other) => Err(format!("SetSubscriptionDurable returned {other:?}")),
        (status, _) => Ok(Err(status)),
    }
}

/// What the method refuses, and what it grants.
async fn rules(setup: &Setup, security: Security) -> Case {
    let own = setup.connect(security, USER, None).await?;
    let stranger = setup.connect(security, None, None).await?;
    let subscription = Subscription::of_values(&own, &[], MonitoringMode::Reporting).await?;
    let unknown = set_durable(&own, UNKNOWN, 1).await?;
    equal(
        unknown,
        Err(StatusCode::BadSubscriptionIdInvalid),
        "an unknown subscription",
    )?;
    let foreign = set_durable(&stranger, subscription.id, 1).await?;
    equal(
        foreign,
        Err(StatusCode::BadUserAccessDenied),
        "somebody else's subscription",
    )?;
    equal(
        set_durable(&own, subscription.id, 1).await?,
        Ok(1),
        "a lifetime of one hour",
    )?;
    let revised = set_durable(&own, subscription.id, 1_000_000).await?;
    check(
        revised.is_ok_and(|hours| (1..=10).contains(&hours)),
        format!("a lifetime of a million hours is revised to {revised:?}"),
    )?;
    subscription.add_values(&[NodeId::new(0, 2259_u32)]).await?;
    let late = set_durable(&own, subscription.id, 1).await?;
    equal(late, Err(StatusCode::BadInvalidState), "a subscription with items")?;
    subscription.delete().await?;
    stranger.close().await?;
    own.close().await
}

/// Leaves a durable subscription behind; what came of it, and a value of the counter that was read a second later.
async fn leave(setup: &Setup, security: Security) -> Case<(Watched, u32)> {
    let watcher = setup.connect(security, USER, None).await?;
    let own = setup.connect(security, USER, None).await?;
    let subscription = Subscription::of_values(&own, &[], MonitoringMode::Reporting).await?;
    equal(set_durable(&own, subscription.id, 1).await?, Ok(1), "the lifetime")?;
    let counter = own.node("Counter");
    subscription.add_values(std::slice::from_ref(&counter)).await?;
    let mut watched = Watched {
        subscription: subscription.id,
        ..Watched::default()
    };
    while watched.values.len() < ENOUGH {
        watched.more(&own).await?;
    }
    own.leave().await?;
    let reached = watched.values.last().copied().unwrap_or_default() + 10;
    let mut last = 0;
    while last < reached {
        sleep(Duration::from_millis(50)).await;
        if let Some(Variant::UInt32(count)) = watcher.read(&counter).await?.value {
            last = count;
        }
    }
    watcher.close().await?;
    Ok((watched, last))
}

/// Every value is there, once: of the time without a client, and of the server that was started again.
async fn over_restart(setup: &Setup, security: Security) -> Case {
    let (mut watched, last) = leave(setup, security).await?;
    let setup = setup.at(ask_harness("left").await?);
    let connection = setup.connect(security, USER, None).await?;
    watched.collect(&connection).await?;
    let start = watched.restarted().unwrap_or_default();
    let (before, since) = watched.values.split_at(start);
    consecutive(before, "values until the server stopped")?;
    let reached = before.last().copied();
    check(
        reached >= Some(last),
        format!("the last value of the first server is {reached:?}, and {last} was read"),
    )?;
    // Sampling may miss a value while the server starts; none comes twice.
    check(
        since.windows(2).all(|pair| pair[1] > pair[0]),
        format!("values since the start: {since:?}"),
    )?;
    Subscription::existing(&connection, watched.subscription)
        .delete()
        .await?;
    connection.close().await
}

/// All cases of durable subscriptions.
pub async fn durable(setup: &Setup) {
    let security = Security::all()[2];
    run("rules", rules(setup, security)).await;
    run("every value over a restart", over_restart(setup, security)).await;
}
