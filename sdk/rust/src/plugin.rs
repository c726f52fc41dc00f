//! What an author implements: [`NodeManager`] always, and a trait for each facet the plugin has. Also the glue from the generated exports to these traits. Knows nothing of particular plugins.

pub use crate::facets::history::exports::backplane::guest::history::Page as HistoryPage;
use crate::facets::methods::exports::backplane::guest::methods::Outcome as RawOutcome;
pub use crate::facets::view::exports::backplane::guest::view::{AttributeRequest, BrowsePage, BrowseRequest, Target};
pub use crate::facets::writer::exports::backplane::guest::writer::Request as WriteRequest;

use crate::facets;
use crate::{Call, DataValue, Fault, NodeId, StatusCode, Value};

/// Why the plugin starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartReason {
    /// With nothing from before.
    Cold,
    /// After [`Handover::restore`].
    Restored,
    /// A newer version failed, and this one runs again.
    RolledBack,
    /// A reason that this SDK does not know yet.
    Other(u32),
}

/// The state of a plugin and its life. One call at a time; `Default` makes it, and a fault or panic ends it.
pub trait NodeManager: Default + 'static {
    /// Declares the address space and starts timers. Clients see nothing of it before this returns.
    ///
    /// # Errors
    /// The plugin cannot work; the host tries again later, or keeps the version that runs.
    fn start(&mut self, reason: StartReason) -> Result<(), Fault>;

    /// A timer is due; `token` is the one it was started with.
    ///
    /// # Errors
    /// Goes to the log, and counts against the plugin.
    fn wake(&mut self, token: u64) -> Result<(), Fault> {
        let _ = token;
        Ok(())
    }

    /// Finish what cannot be handed over; nothing is called after this.
    fn stop(&mut self) {}
}

/// Facet `reader`: variables whose value is asked for instead of kept.
pub trait Reader: NodeManager {
    /// One answer for each tag, in order. `max_age` in ms.
    ///
    /// # Errors
    /// Every tag gets the status of the fault.
    fn read(&mut self, call: Call, tags: &[u32], max_age: f64) -> Result<Vec<DataValue>, Fault>;
}

/// Facet `writer`: variables that clients may write. Types and rights are checked before. On Good the host publishes the written value, unless the
/// plugin published another one during the call.
pub trait Writer: NodeManager {
    /// One answer for each request, in order.
    ///
    /// # Errors
    /// Every request gets the status of the fault.
    fn write(&mut self, call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault>;
}

/// Facet `methods`.
pub trait Methods: NodeManager {
    /// Runs the method `tag` on `object`. Arguments have been checked against the declaration.
    ///
    /// # Errors
    /// The call gets the status of the fault.
    fn invoke(&mut self, call: Call, object: &NodeId, tag: u32, inputs: &[Value]) -> Result<Outcome, Fault>;
}

/// What a method answers.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outcome {
    /// Good, unless the method says otherwise.
    pub status: StatusCode,
    /// Empty, or one for each input when the status is `BAD_INVALID_ARGUMENT`.
    pub input_status: Vec<StatusCode>,
    /// As declared.
    pub outputs: Vec<Value>,
}

impl Outcome {
    /// Good, with these outputs.
    pub fn good(outputs: impl Into<Vec<Value>>) -> Self {
        Outcome {
            status: StatusCode::GOOD,
            input_status: Vec::new(),
            outputs: outputs.into(),
        }
    }

    /// One of the `count` inputs cannot be used.
    pub fn bad_input(index: usize, count: usize, status: StatusCode) -> Self {
        let input_status = (0..count)
            .map(|i| if i == index { status } else { StatusCode::GOOD })
            .collect();
        Outcome {
            status: StatusCode::BAD_INVALID_ARGUMENT,
            input_status,
            outputs: Vec::new(),
        }
    }
}

/// Facet `demand`: which variables somebody monitors, and how fast.
pub trait Demand: NodeManager {
    /// The fastest sampling interval in ms that anybody holds for each changed tag; `None`: nobody is interested any more.
    fn changed(&mut self, items: &[(u32, Option<f64>)]);
}

/// Facet `history`: a store of the plugin's own. Details and results are structures of Part 11 in OPC UA Binary.
pub trait History: NodeManager {
    /// One page for each node, in order; with it a continuation point to resume from.
    ///
    /// # Errors
    /// Every node gets the status of the fault.
    fn read(&mut self, call: Call, details: &[u8], nodes: &[(u32, Option<Vec<u8>>)])
    -> Result<Vec<HistoryPage>, Fault>;

    /// One answer for each element of `details`, in order.
    ///
    /// # Errors
    /// Every update gets the status of the fault.
    fn update(&mut self, call: Call, details: &[Vec<u8>]) -> Result<Vec<StatusCode>, Fault>;
}

/// Facet `conditions`: what clients do to the plugin's alarms.
pub trait Conditions: NodeManager {
    /// `action` is the browse name of the method: "Acknowledge", "Confirm", "AddComment" ...
    ///
    /// # Errors
    /// The call gets the status of the fault.
    fn act(
        &mut self,
        call: Call,
        condition: &NodeId,
        event_id: &[u8],
        action: &str,
        inputs: &[Value],
    ) -> Result<StatusCode, Fault>;

    /// Emit every condition that is of interest again.
    ///
    /// # Errors
    /// ConditionRefresh gets the status of the fault.
    fn refresh(&mut self) -> Result<(), Fault>;
}

/// Facet `view`: an address space too large to declare.
pub trait View: NodeManager {
    /// Whether the node is one of this plugin's.
    fn owns(&mut self, node: &NodeId) -> bool;

    /// One answer for each request, in order.
    ///
    /// # Errors
    /// Every request gets the status of the fault.
    fn attributes(&mut self, call: Call, requests: &[AttributeRequest]) -> Result<Vec<DataValue>, Fault>;

    /// One page for each request, in order.
    ///
    /// # Errors
    /// Every request gets the status of the fault.
    fn browse(&mut self, call: Call, requests: &[BrowseRequest]) -> Result<Vec<BrowsePage>, Fault>;
}

/// Facet `handover`: state for the next generation of the same plugin.
pub trait Handover: NodeManager {
    /// The schema number of what `save` writes.
    const SCHEMA: u32;
    /// Older schema numbers that `restore` also reads.
    const ALSO_READS: &'static [u32] = &[];

    /// The state, in the form `SCHEMA`.
    ///
    /// # Errors
    /// The next generation starts cold.
    fn save(&mut self) -> Result<Vec<u8>, Fault>;

    /// Takes over; runs before `start(Restored)`. Check the bytes: they may come from an older build.
    ///
    /// # Errors
    /// The host keeps the generation that runs.
    fn restore(&mut self, schema: u32, state: &[u8]) -> Result<(), Fault>;
}

/// Implemented by `plugin!` alone: where the one instance lives, and what the component exports.
#[doc(hidden)]
pub trait Plugin: NodeManager {
    const FACETS: &'static [&'static str];
    fn with<R>(run: impl FnOnce(&mut Self) -> R) -> R;
}

fn numbers(codes: Vec<StatusCode>) -> Vec<u32> {
    codes.into_iter().map(u32::from).collect()
}

impl<T: Plugin> facets::lifecycle::exports::backplane::guest::lifecycle::Guest for T {
    fn start(reason: u32) -> Result<(), Fault> {
        let reason = match reason {
            0 => StartReason::Cold,
            1 => StartReason::Restored,
            2 => StartReason::RolledBack,
            other => StartReason::Other(other),
        };
        T::with(|plugin| plugin.start(reason))
    }
    fn wake(token: u64) -> Result<(), Fault> {
        T::with(|plugin| plugin.wake(token))
    }
    fn stop() {
        T::with(NodeManager::stop);
    }
}

impl<T: Plugin + Reader> facets::reader::exports::backplane::guest::reader::Guest for T {
    fn read(call: u32, tags: Vec<u32>, max_age: f64) -> Result<Vec<DataValue>, Fault> {
        T::with(|plugin| Reader::read(plugin, Call(call), &tags, max_age))
    }
}

impl<T: Plugin + Writer> facets::writer::exports::backplane::guest::writer::Guest for T {
    fn write(call: u32, requests: Vec<WriteRequest>) -> Result<Vec<u32>, Fault> {
        T::with(|plugin| plugin.write(Call(call), &requests)).map(numbers)
    }
}

impl<T: Plugin + Methods> facets::methods::exports::backplane::guest::methods::Guest for T {
    fn invoke(call: u32, object: NodeId, tag: u32, inputs: Vec<Value>) -> Result<RawOutcome, Fault> {
        let outcome = T::with(|plugin| plugin.invoke(Call(call), &object, tag, &inputs))?;
        Ok(RawOutcome {
            status: outcome.status.0,
            input_status: numbers(outcome.input_status),
            outputs: outcome.outputs,
        })
    }
}

impl<T: Plugin + Demand> facets::demand::exports::backplane::guest::demand::Guest for T {
    fn changed(items: Vec<(u32, Option<f64>)>) {
        T::with(|plugin| plugin.changed(&items));
    }
}

impl<T: Plugin + History> facets::history::exports::backplane::guest::history::Guest for T {
    fn read(call: u32, details: Vec<u8>, nodes: Vec<(u32, Option<Vec<u8>>)>) -> Result<Vec<HistoryPage>, Fault> {
        T::with(|plugin| History::read(plugin, Call(call), &details, &nodes))
    }
    fn update(call: u32, details: Vec<Vec<u8>>) -> Result<Vec<u32>, Fault> {
        T::with(|plugin| plugin.update(Call(call), &details)).map(numbers)
    }
}

impl<T: Plugin + Conditions> facets::conditions::exports::backplane::guest::conditions::Guest for T {
    fn act(call: u32, condition: NodeId, event_id: Vec<u8>, action: String, inputs: Vec<Value>) -> Result<u32, Fault> {
        T::with(|plugin| plugin.act(Call(call), &condition, &event_id, &action, &inputs)).map(u32::from)
    }
    fn refresh() -> Result<(), Fault> {
        T::with(Conditions::refresh)
    }
}

impl<T: Plugin + View> facets::view::exports::backplane::guest::view::Guest for T {
    fn owns(node: NodeId) -> bool {
        T::with(|plugin| plugin.owns(&node))
    }
    fn attributes(call: u32, requests: Vec<AttributeRequest>) -> Result<Vec<DataValue>, Fault> {
        T::with(|plugin| plugin.attributes(Call(call), &requests))
    }
    fn browse(call: u32, requests: Vec<BrowseRequest>) -> Result<Vec<BrowsePage>, Fault> {
        T::with(|plugin| plugin.browse(Call(call), &requests))
    }
}

impl<T: Plugin + Handover> facets::handover::exports::backplane::guest::handover::Guest for T {
    fn schema() -> (u32, Vec<u32>) {
        let mut reads = vec![T::SCHEMA];
        reads.extend(T::ALSO_READS);
        (T::SCHEMA, reads)
    }
    fn save() -> Result<Vec<u8>, Fault> {
        T::with(Handover::save)
    }
    fn restore(schema: u32, state: Vec<u8>) -> Result<(), Fault> {
        T::with(|plugin| plugin.restore(schema, &state))
    }
}
