//! The host as a test drives it.

use std::time::Duration;

use super::space::{Class, FakeNode};
use super::state::{Caller, Event, PeerEvidence, State, with};
use crate::{
    Argument, Call, Classifier, DataValue, Demand, Fault, Handover, Identity, Methods, Namespace, NodeId, Outcome,
    Peer, Plugin, QualifiedName, Reader, StartReason, StatusCode, Typed, Value, WriteRequest, Writer,
};

/// A host with one plugin. There is one for each thread: making a new one forgets the last.
#[derive(Debug)]
pub struct FakeHost<P> {
    plugin: P,
}

impl<P: Plugin> Default for FakeHost<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs a call with a number of its own.
fn calling<R>(run: impl FnOnce(u32) -> R) -> R {
    let call = with(|host| {
        host.calls += 1;
        host.running = host.calls;
        host.published.clear();
        host.running
    });
    let result = run(call);
    with(|host| host.running = 0);
    result
}

impl<P: Plugin> FakeHost<P> {
    /// A host with a plugin that has not started yet.
    pub fn new() -> Self {
        with(|host| *host = State::default());
        FakeHost { plugin: P::default() }
    }

    /// Sets a setting, as JSON text.
    pub fn with_setting(self, path: &str, json: &str) -> Self {
        with(|host| host.settings.insert(path.to_owned(), json.to_owned()));
        self
    }

    /// Grants a secret.
    pub fn with_secret(self, name: &str, secret: &str) -> Self {
        with(|host| host.secrets.insert(name.to_owned(), secret.to_owned()));
        self
    }

    /// Says who makes the calls from now on.
    pub fn with_caller(self, caller: Caller) -> Self {
        with(|host| host.caller = caller);
        self
    }

    /// Starts the plugin cold.
    ///
    /// # Errors
    /// The fault of the plugin.
    pub fn start(&mut self) -> Result<(), Fault> {
        self.start_because(StartReason::Cold)
    }

    /// Starts the plugin for a reason.
    ///
    /// # Errors
    /// The fault of the plugin.
    pub fn start_because(&mut self, reason: StartReason) -> Result<(), Fault> {
        self.plugin.start(reason)
    }

    /// The plugin itself.
    pub fn plugin(&mut self) -> &mut P {
        &mut self.plugin
    }

    /// Lets time pass, and wakes the plugin whenever a timer is due.
    ///
    /// # Errors
    /// The first fault of the plugin; the clock stays where it was.
    pub fn advance(&mut self, time: Duration) -> Result<(), Fault> {
        let end = with(|host| host.now) + time.as_secs_f64() * 1000.0;
        while let Some(token) = with(|host| host.next_timer(end)) {
            self.plugin.wake(token)?;
        }
        with(|host| host.now = end);
        Ok(())
    }

    /// The namespace with this URI, as the plugin sees it.
    pub fn namespace(&self, uri: &str) -> Namespace {
        Namespace(with(|host| host.namespace(uri)))
    }

    /// A node that the plugin declared.
    pub fn node(&self, id: &NodeId) -> Option<FakeNode> {
        with(|host| host.space.nodes.get(id).cloned())
    }

    /// How many nodes the plugin declared.
    pub fn node_count(&self) -> usize {
        with(|host| host.space.nodes.len())
    }

    /// The ids of the nodes under `parent`.
    pub fn children(&self, parent: &NodeId) -> Vec<NodeId> {
        with(|host| {
            host.space
                .nodes
                .iter()
                .filter(|(_, node)| node.parent == *parent)
                .map(|(id, _)| id.clone())
                .collect()
        })
    }

    /// The references that the plugin added, beside those to parents: source, type, forward, target.
    pub fn references(&self) -> Vec<(NodeId, NodeId, bool, NodeId)> {
        with(|host| host.space.references.clone())
    }

    /// Follows a browse path.
    ///
    /// # Errors
    /// `BAD_NO_MATCH`.
    pub fn resolve(&self, start: &NodeId, path: &[QualifiedName]) -> Result<NodeId, StatusCode> {
        with(|host| host.space.resolve(start, path))
    }

    /// The value that the host keeps; `BAD_NODE_ID_UNKNOWN` when there is no such variable.
    pub fn value(&self, id: &NodeId) -> DataValue {
        let unknown = DataValue::bad(StatusCode::BAD_NODE_ID_UNKNOWN);
        self.node(id).map_or(unknown, |node| node.value)
    }

    /// The value that the host keeps, as a Rust type.
    pub fn get<T: Typed>(&self, id: &NodeId) -> Option<T> {
        self.value(id).value.get()
    }

    /// What was logged: level (0 trace to 4 error) and text.
    pub fn logs(&self) -> Vec<(u8, String)> {
        with(|host| host.logs.clone())
    }

    /// What was emitted.
    pub fn events(&self) -> Vec<Event> {
        with(|host| host.events.clone())
    }

    /// A counter or gauge.
    pub fn metric(&self, name: &str) -> Option<f64> {
        with(|host| host.metrics.get(name).copied())
    }

    /// The tokens of the timers that run.
    pub fn timers(&self) -> Vec<u64> {
        with(|host| host.timers.iter().map(|timer| timer.token).collect())
    }

    /// The number of a variable or method.
    fn tag(&self, id: &NodeId) -> Option<u32> {
        self.node(id).map(|node| node.tag()).filter(|tag| *tag != 0)
    }
}

impl<P: Plugin + Reader> FakeHost<P> {
    /// Reads on-demand variables, as one call.
    ///
    /// # Errors
    /// The fault of the plugin; `BAD_NODE_ID_UNKNOWN`: one of the nodes is not an on-demand variable; `BAD_INTERNAL_ERROR`: the number of answers is wrong.
    pub fn read(&mut self, ids: &[NodeId]) -> Result<Vec<DataValue>, Fault> {
        let mut tags = Vec::new();
        for id in ids {
            let tag = self
                .tag(id)
                .filter(|_| self.node(id).is_some_and(|node| node.on_demand.is_some()));
            tags.push(tag.ok_or_else(|| {
                Fault::new(
                    StatusCode::BAD_NODE_ID_UNKNOWN,
                    format!("not an on-demand variable: {id}"),
                )
            })?);
        }
        let answers = calling(|call| Reader::read(&mut self.plugin, Call(call), &tags, 0.0))?;
        if answers.len() == tags.len() {
            Ok(answers)
        } else {
            Err(Fault::new(
                StatusCode::BAD_INTERNAL_ERROR,
                "the number of answers is wrong",
            ))
        }
    }
}

impl<P: Plugin + Writer> FakeHost<P> {
    /// Writes one variable, as a client would.
    pub fn write(&mut self, id: &NodeId, value: impl Into<Value>) -> StatusCode {
        let value = value.into();
        match self.checked_write(id, value) {
            Ok(status) | Err(status) => status,
        }
    }

    fn checked_write(&mut self, id: &NodeId, value: Value) -> Result<StatusCode, StatusCode> {
        let node = self.node(id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let Class::Variable {
            tag, data_type, access, ..
        } = &node.class
        else {
            return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
        };
        if access & crate::ids::access::CURRENT_WRITE == 0 || *tag == 0 {
            return Err(StatusCode::BAD_NOT_WRITABLE);
        }
        let rank = node
            .attributes
            .get(&crate::ids::attribute::VALUE_RANK)
            .and_then(Value::get)
            .unwrap_or(-1);
        if value == Value::Empty && *data_type != NodeId::standard(crate::ids::BASE_DATA_TYPE) {
            return Err(StatusCode::BAD_TYPE_MISMATCH);
        }
        with(|host| host.space.check(data_type, rank, &value))?;
        let request = WriteRequest {
            tag: *tag,
            index_range: None,
            value: DataValue {
                value,
                status: 0,
                source_time: 0,
            },
        };
        let answers = calling(|call| self.plugin.write(Call(call), std::slice::from_ref(&request)));
        let [status] = answers.map_err(|fault| fault.status_code())?[..] else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        if !status.is_bad() && !with(|host| host.published.contains(tag)) {
            let mut value = request.value;
            value.source_time = with(|host| host.utc());
            with(|host| host.space.set(id, value))?;
        }
        Ok(status)
    }
}

impl<P: Plugin + Methods> FakeHost<P> {
    /// Calls a method, as a client would, and checks the outputs against the declaration.
    ///
    /// # Errors
    /// The fault of the plugin, or of the host when node or arguments are wrong.
    pub fn invoke(&mut self, object: &NodeId, method: &NodeId, inputs: &[Value]) -> Result<Outcome, Fault> {
        let node = self.node(method).filter(|node| node.parent == *object);
        let Some(FakeNode {
            class:
                Class::Method {
                    tag,
                    inputs: expected,
                    outputs,
                },
            ..
        }) = node
        else {
            return Err(Fault::new(
                StatusCode::BAD_METHOD_INVALID,
                format!("{object} has no method {method}"),
            ));
        };
        if inputs.len() < expected.len() {
            return Err(Fault::new(StatusCode::BAD_ARGUMENTS_MISSING, "too few arguments"));
        }
        if inputs.len() > expected.len() {
            return Err(Fault::new(StatusCode::BAD_TOO_MANY_ARGUMENTS, "too many arguments"));
        }
        arguments(&expected, inputs).map_err(|status| Fault::new(status, "an argument is of another type"))?;
        let outcome = calling(|call| self.plugin.invoke(Call(call), object, tag, inputs))?;
        if !outcome.status.is_bad() {
            arguments(&outputs, &outcome.outputs)
                .map_err(|_| Fault::new(StatusCode::BAD_INTERNAL_ERROR, "the outputs are not as declared"))?;
        }
        Ok(outcome)
    }
}

fn arguments(declared: &[Argument], values: &[Value]) -> Result<(), StatusCode> {
    if declared.len() != values.len() {
        return Err(StatusCode::BAD_TYPE_MISMATCH);
    }
    declared.iter().zip(values).try_for_each(|(argument, value)| {
        with(|host| host.space.check(&argument.data_type, argument.value_rank, value))
    })
}

impl<P: Plugin + Demand> FakeHost<P> {
    /// Says that a variable is monitored every `interval`, or no longer.
    pub fn demand(&mut self, id: &NodeId, interval: Option<Duration>) {
        if let Some(tag) = self.tag(id) {
            self.plugin
                .changed(&[(tag, interval.map(|interval| interval.as_secs_f64() * 1000.0))]);
        }
    }
}

impl<P: Plugin + Handover> FakeHost<P> {
    /// Replaces the plugin by the next version of itself: saves, restores, starts. Clock, store, settings, namespaces and last values stay.
    ///
    /// # Errors
    /// The fault of either plugin; `BAD_NOT_SUPPORTED`: the new one does not read the schema of the old one.
    pub fn hand_over<Next: Plugin + Handover>(mut self) -> Result<FakeHost<Next>, Fault> {
        if P::SCHEMA != Next::SCHEMA && !Next::ALSO_READS.contains(&P::SCHEMA) {
            return Err(Fault::new(
                StatusCode::BAD_NOT_SUPPORTED,
                "the new version does not read the state of the old one",
            ));
        }
        let state = self.plugin.save()?;
        self.plugin.stop();
        with(|host| {
            host.space = std::mem::take(&mut host.space).next_generation();
            host.timers.clear();
        });
        let mut next = FakeHost {
            plugin: Next::default(),
        };
        next.plugin.restore(P::SCHEMA, &state)?;
        next.start_because(StartReason::Restored)?;
        Ok(next)
    }
}

/// A host with one classifier. Like [`FakeHost`] there is one for each thread.
#[derive(Debug)]
pub struct FakeClassifier<C> {
    classifier: C,
}

impl<C: Classifier> FakeClassifier<C> {
    /// Starts a classifier with `settings`, each a path and JSON text.
    ///
    /// # Errors
    /// The fault of the classifier.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self, Fault> {
        with(|host| {
            *host = State::default();
            let settings = settings.iter();
            host.settings = settings
                .map(|(path, json)| ((*path).to_owned(), (*json).to_owned()))
                .collect();
        });
        C::start().map(|classifier| FakeClassifier { classifier })
    }

    /// Asks about a peer before authentication.
    ///
    /// # Errors
    /// The fault of the classifier.
    pub fn ingress(&self, peer: &PeerEvidence) -> Result<Option<Identity>, Fault> {
        with(|host| host.peer = Some(peer.clone()));
        calling(|who| self.classifier.ingress(Peer(who)))
    }

    /// Asks about a peer with an open channel.
    ///
    /// # Errors
    /// The fault of the classifier.
    pub fn established(&self, peer: &PeerEvidence) -> Result<Option<Identity>, Fault> {
        with(|host| host.peer = Some(peer.clone()));
        calling(|who| self.classifier.established(Peer(who)))
    }
}
