//! The task of one instance of a classifier: its mailbox, one question at a time.
//!
//! Owns the order of questions and that each is answered. It must not know restarts and reloads: it ends, and says why.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::actor::Exit;
use crate::classifier::{ClassifyError, Question};
use crate::instance::Instance;

/// Answers until the mailbox has no sender any more, or the guest dies.
pub(crate) async fn answer(mut instance: Instance, mut inbox: mpsc::Receiver<Question>) -> Exit {
    while let Some(question) = inbox.recv().await {
        let Question {
            asked,
            evidence,
            until,
            reply,
        } = question;
        // Nobody would see the answer, and those behind it have waited long enough.
        if reply.is_closed() {
            continue;
        }
        if Instant::now() >= until {
            let classifier = Arc::clone(instance.name());
            drop(reply.send(Err(ClassifyError::TimedOut { classifier })));
            continue;
        }
        match instance.classify(asked, evidence).await {
            Ok(answer) => drop(reply.send(answer)),
            Err(death) => {
                drop(reply.send(Err(death.of_classifier(instance.name()))));
                // Those who wait learn of it by their channels' end.
                return Exit::Died(death);
            }
        }
    }
    Exit::Stopped
}
