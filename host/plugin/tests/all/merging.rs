//! Reads that wait together become one call. Guests run on the thread of the test, so that what waits is known.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::{CallContext, Caller, NodeManager};
use backplane_plugin::PluginOptions;
use backplane_types::{DataValue, StatusCode, Variant};
use tokio::runtime::Handle;

use crate::guests::Plant;
use crate::pace::POWER;
use crate::support::{all, quick};

/// A tag that the simulator does not have.
const UNKNOWN: u32 = 9_999;

struct Line {
    plant: Plant,
    manager: Arc<dyn NodeManager>,
}

impl Line {
    async fn new(options: PluginOptions) -> Self {
        Self::with("simulator", "Var1", options).await
    }

    /// To a plugin by the name of its component, with one of its nodes.
    async fn with(name: &'static str, node: &str, mut options: PluginOptions) -> Self {
        options.engine.executor = Some(Handle::current());
        let plant = Plant::new(name, options).await;
        let manager = plant.manager(node);
        Self { plant, manager }
    }

    fn call(&self) -> CallContext {
        self.plant.call(Duration::from_secs(30))
    }

    fn calls(&self) -> u64 {
        // Timers are calls too.
        let counts = self.plant.bench.status(self.plant.name).counts;
        counts.calls - counts.wakes
    }

    /// Lets these reads wait together; how many calls they became, and what was answered.
    async fn read(&self, reads: &[(CallContext, Vec<u32>, f64)]) -> (u64, Vec<Vec<DataValue>>) {
        let before = self.calls();
        let answers = all(reads
            .iter()
            .map(|(call, tags, age)| self.manager.read(call, tags, *age)))
        .await;
        let answers = answers.into_iter().map(Result::unwrap).collect();
        (self.calls() - before, answers)
    }
}

fn is_right(tag: u32, value: &DataValue) -> bool {
    match tag {
        UNKNOWN => value.status == Some(StatusCode::BAD_NODE_ID_UNKNOWN),
        _ => matches!(value.value, Variant::Double(_)) && value.status.is_none(),
    }
}

#[tokio::test]
async fn reads_of_one_caller_become_one_call_and_each_gets_its_own_values() {
    let line = Line::new(quick()).await;
    let call = line.call();
    let reads: Vec<_> = (0..100)
        .map(|number| {
            let tags = match number % 3 {
                0 => vec![POWER],
                1 => vec![UNKNOWN, POWER],
                _ => Vec::new(),
            };
            (call.clone(), tags, 0.0)
        })
        .collect();
    let (calls, answers) = line.read(&reads).await;
    assert_eq!(calls, 2);
    for ((_, tags, _), values) in reads.iter().zip(answers) {
        assert_eq!(tags.len(), values.len());
        assert!(
            tags.iter().zip(&values).all(|(tag, value)| is_right(*tag, value)),
            "{tags:?} {values:?}"
        );
    }
}

#[tokio::test]
async fn the_limits_of_a_merged_call_count() {
    let line = Line::new(quick()).await;
    let call = line.call();
    let read = |tags: usize| (call.clone(), vec![POWER; tags], 0.0);
    // 40 of these are the most that fit into 4,096 tags; one alone may be larger.
    assert_eq!(line.read(&vec![read(100); 41]).await.0, 2);
    assert_eq!(line.read(&[read(5_000), read(1)]).await.0, 2);
    let mut options = quick();
    options.limits.merged_reads = 1;
    let line = Line::new(options).await;
    assert_eq!(line.read(&vec![read(1); 10]).await.0, 10);
}

/// The simulator does not ask who calls, so that it cannot tell callers apart.
#[tokio::test]
async fn reads_of_all_callers_become_one_call_where_nobody_can_tell() {
    let line = Line::new(quick()).await;
    let reads: Vec<_> = (0..10)
        .map(|number| {
            let call = CallContext {
                caller: Arc::new(Caller::anonymous()),
                ..line.call()
            };
            (call, vec![POWER; number], 0.0)
        })
        .collect();
    let (calls, answers) = line.read(&reads).await;
    assert_eq!(calls, 1);
    for ((_, tags, _), values) in reads.iter().zip(answers) {
        assert_eq!(tags.len(), values.len());
    }
}

#[tokio::test]
async fn a_guest_that_asks_who_is_asked_for_one_caller_at_a_time() {
    let line = Line::with("asks-who", "Asked", quick()).await;
    let of = |user: &str| CallContext {
        caller: Arc::new(Caller {
            user: Some(user.into()),
            ..Caller::anonymous()
        }),
        ..line.call()
    };
    let (ann, bob) = (of("ann"), of("bob"));
    let order = [&ann, &ann, &bob, &ann];
    let reads = order.map(|call| (call.clone(), vec![1], 0.0));
    let (calls, answers) = line.read(&reads).await;
    assert_eq!(calls, 3);
    let users: Vec<_> = answers.iter().map(|values| values[0].value.clone()).collect();
    assert_eq!(users, ["ann", "ann", "bob", "ann"].map(Variant::from));
}

#[tokio::test]
async fn what_a_guest_could_tell_apart_stays_apart() {
    let line = Line::with("asks-who", "Asked", quick()).await;
    let call = line.call();
    let read = |call: &CallContext, age| (call.clone(), vec![1], age);
    let with = |change: &dyn Fn(&mut CallContext)| {
        let mut other = call.clone();
        change(&mut other);
        other
    };
    let foreign = with(&|call| call.caller = Arc::new(Caller::anonymous()));
    let traced = with(&|call| call.trace_parent = Some("00-1-2-01".into()));
    let later = with(&|call| call.deadline += Duration::from_millis(101));
    let soon = with(&|call| call.deadline += Duration::from_millis(99));
    for (other, calls) in [(&foreign, 3), (&traced, 3), (&later, 3), (&soon, 1)] {
        let reads = [read(&call, 0.0), read(other, 0.0), read(&call, 0.0)];
        assert_eq!(line.read(&reads).await.0, calls);
    }
    assert_eq!(line.read(&[read(&call, 0.0), read(&call, 50.0)]).await.0, 2);
}

#[tokio::test]
async fn nothing_is_overtaken_and_who_has_gone_is_left_out() {
    let line = Line::new(quick()).await;
    let call = line.call();
    let before = line.calls();
    let read = || line.manager.read(&call, &[POWER], 0.0);
    // A write between two reads keeps its place: three calls.
    let (first, second) = (async { read().await.map(|_| ()) }, async { read().await.map(|_| ()) });
    let write = async { line.manager.write(&call, Vec::new()).await.map(|_| ()) };
    let steps: [std::pin::Pin<Box<dyn Future<Output = _>>>; 3] = [Box::pin(first), Box::pin(write), Box::pin(second)];
    assert!(all(steps).await.iter().all(Result::is_ok));
    assert_eq!(line.calls() - before, 3);
    // Of two, one goes before its turn: only the other's tag is asked for.
    let before = line.plant.bench.status("simulator").counts.reads;
    let mut gone = read();
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(gone.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    drop(gone);
    assert_eq!(read().await.unwrap().len(), 1);
    assert_eq!(line.plant.bench.status("simulator").counts.reads - before, 1);
}
