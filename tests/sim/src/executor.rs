//! Futures that are polled by hand: what a runtime does for the server, without one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A future and the time at which it is given up.
struct Task<T> {
    deadline: Duration,
    future: Pin<Box<dyn Future<Output = T>>>,
    /// What comes of it when it is given up.
    late: Option<Box<dyn FnOnce() -> T>>,
}

/// Tasks that run side by side, in the order in which they were started.
pub(crate) struct Executor<T> {
    tasks: Vec<Task<T>>,
}

impl<T> Executor<T> {
    pub(crate) fn new() -> Self {
        Self { tasks: Vec::new() }
    }

    pub(crate) fn spawn(
        &mut self,
        deadline: Duration,
        future: impl Future<Output = T> + 'static,
        late: impl FnOnce() -> T + 'static,
    ) {
        self.tasks.push(Task {
            deadline,
            future: Box::pin(future),
            late: Some(Box::new(late)),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.tasks.iter().map(|task| task.deadline).min()
    }

    /// Polls every task once and returns what is done or given up.
    pub(crate) fn run(&mut self, now: Duration) -> Vec<T> {
        let mut context = Context::from_waker(Waker::noop());
        let mut done = Vec::new();
        self.tasks
            .retain_mut(|task| match task.future.as_mut().poll(&mut context) {
                Poll::Ready(output) => {
                    done.push(output);
                    false
                }
                Poll::Pending if task.deadline <= now => {
                    done.extend(task.late.take().map(|late| late()));
                    false
                }
                Poll::Pending => true,
            });
        done
    }
}
