//! The list calls of one tick: variables on demand of all sessions that are due, asked of each manager together.
//!
//! Owns which of them go into one call, and the way of the answers back to their items. A manager sees whom it answers, so only callers that look the
//! same to it share a call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::services::sample;
use backplane_nodes::{CallContext, Caller, ManagerId, ReadSource, Snapshot};
use backplane_session::SampleKey;
use backplane_types::{DataValue, Now, StatusCode};
use tokio::sync::mpsc::UnboundedSender;

use super::Command;
use crate::shared::Shared;

/// One item whose value has to be asked for.
type Wanted = (SampleKey, u32, ReadSource);

/// One list call.
#[derive(Debug)]
struct Call {
    caller: Arc<Caller>,
    /// By session.
    parts: Vec<(u32, Vec<Wanted>)>,
}

/// Everything that one tick has to ask for.
#[derive(Debug, Default)]
pub(super) struct Asking {
    calls: BTreeMap<ManagerId, Vec<Call>>,
}

impl Asking {
    /// Adds an item of the session whose items are sampled now.
    pub(super) fn add(&mut self, session: u32, caller: &Arc<Caller>, manager: ManagerId, wanted: Wanted) {
        let calls = self.calls.entry(manager).or_default();
        let same = |call: &Call| call.parts.last().is_some_and(|(of, _)| *of == session);
        let place = calls.iter().rposition(same).or_else(|| {
            let place = calls.iter().position(|call| look_alike(&call.caller, caller))?;
            let call = calls.get_mut(place)?;
            // It stands for several sessions from now on, so for none of them.
            call.caller = Arc::new(Caller {
                number: 0,
                client: Arc::from(""),
                ..Caller::clone(&call.caller)
            });
            call.parts.push((session, Vec::new()));
            Some(place)
        });
        let place = place.unwrap_or_else(|| {
            calls.push(Call {
                caller: Arc::clone(caller),
                parts: vec![(session, Vec::new())],
            });
            calls.len() - 1
        });
        if let Some((_, part)) = calls.get_mut(place).and_then(|call| call.parts.last_mut()) {
            part.push(wanted);
        }
    }

    /// Makes the calls, in the structure that the tags are of. The answers come back through the shard's door.
    pub(super) fn ask(self, shared: &Arc<Shared>, snapshot: &Arc<Snapshot>, door: &UnboundedSender<Command>, now: Now) {
        let timeout = Duration::from_secs_f64(shared.limits.request_timeout / 1000.0);
        for (manager, calls) in self.calls {
            for Call { caller, parts } in calls {
                let call = context(caller, now, timeout);
                let (door, snapshot) = (door.clone(), Arc::clone(snapshot));
                shared.runtime.spawn(async move {
                    let all = parts.iter().flat_map(|(_, part)| part);
                    let tags: Vec<u32> = all.map(|(_, tag, _)| *tag).collect();
                    let answer =
                        tokio::time::timeout(timeout, sample(&snapshot, &call, manager, &tags, 0.0, now)).await;
                    let late = || DataValue::from_status(StatusCode::BAD_TIMEOUT);
                    let mut values = answer.unwrap_or_default().into_iter();
                    let mut answered = |(key, _, source): Wanted| {
                        let value = values.next().unwrap_or_else(late);
                        (key, source.cut(value))
                    };
                    let samples = parts
                        .into_iter()
                        .map(|(session, part)| (session, part.into_iter().map(&mut answered).collect()))
                        .collect();
                    // The shard ends only with the server.
                    let _ = door.send(Command::Samples(samples));
                });
            }
        }
    }
}

pub(super) fn context(caller: Arc<Caller>, now: Now, timeout: Duration) -> CallContext {
    CallContext {
        caller,
        deadline: now.mono.saturating_add(timeout),
        deadline_utc: now.utc.saturating_add(timeout),
        trace_parent: None,
        internal: false,
    }
}

/// Whether a manager could not tell two callers apart but for the pseudonyms of their sessions.
fn look_alike(one: &Caller, other: &Caller) -> bool {
    let Caller {
        number: _,
        client: _,
        user,
        roles,
        locales,
        isolation_owner,
        security_mode,
    } = one;
    *user == other.user
        && *roles == other.roles
        && *locales == other.locales
        && *isolation_owner == other.isolation_owner
        && *security_mode == other.security_mode
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backplane_nodes::Caller;

    use super::look_alike;

    #[test]
    fn callers_share_a_call_only_when_a_manager_cannot_tell_them_apart() {
        let one = Caller {
            client: Arc::from("a"),
            ..Caller::anonymous()
        };
        assert!(look_alike(&one, &Caller::anonymous()));
        let user = Caller {
            user: Some(Arc::from("somebody")),
            ..Caller::anonymous()
        };
        assert!(!look_alike(&one, &user));
        let owner = Caller {
            isolation_owner: Arc::from("line 1"),
            ..Caller::anonymous()
        };
        assert!(!look_alike(&one, &owner));
    }
}
