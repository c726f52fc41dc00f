//! The tasks behind the queue: workers that run jobs, and the sweep that keeps deadlines.

use std::future::poll_fn;
use std::sync::Arc;

use backplane_queue::lifetime::SWEEP_INTERVAL;
use backplane_types::StatusCode;
use tokio::task::JoinSet;

use super::Admission;
use crate::shared::Shared;

/// Runs `count` workers until the queue stops. A worker whose job panics is replaced; the job's clients get
/// BadInternalError.
pub(crate) async fn work(shared: Arc<Shared>, count: usize) {
    let mut workers = JoinSet::new();
    for _ in 0..count {
        workers.spawn(one(Arc::clone(&shared)));
    }
    while let Some(ended) = workers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(%error, "a request panicked");
            workers.spawn(one(Arc::clone(&shared)));
        }
    }
}

async fn one(shared: Arc<Shared>) {
    let admission: &Admission = &shared.admission;
    let mut waiter = admission.queue.waiter();
    loop {
        let next = poll_fn(|cx| admission.queue.poll_take(cx, &mut waiter, |job| job.permit(admission)));
        let Some((job, permit)) = next.await else { return };
        job.run(permit).await;
    }
}

/// Ends requests whose deadline has passed: one sweep for all of them, and only while there are any.
pub(crate) async fn sweep(shared: Arc<Shared>) {
    let mut stop = shared.stopping.subscribe();
    let admission: &Admission = &shared.admission;
    loop {
        tokio::select! {
            () = admission.watched.notified() => {}
            _ = stop.changed() => return,
        }
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stop.changed() => return,
            }
            let now = shared.clock.now().mono;
            let left = admission
                .requests
                .sweep(now, |reply| reply.end(StatusCode::BAD_TIMEOUT));
            if left.watched == 0 {
                break;
            }
        }
    }
}
