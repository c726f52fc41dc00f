//! The variables of a server: where they are, and of which type.

use std::time::Duration;

use backplane_types::{DataValue, NodeId, ReadRequest, TimestampsToReturn, Variant, ids};

use crate::error::{LoadError, setup};
use crate::link::{Link, Target};
use crate::requests::value_of;
use crate::verify::strings;

/// The namespace of the variables on every server.
const NAMESPACE: &str = "urn:backplane:load";
/// How long a server may take until its variables are there.
const PATIENCE: Duration = Duration::from_secs(30);
/// Values in one Read of all of them.
const READ_AT_ONCE: usize = 1_000;
/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Variables of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    pub(crate) ids: Vec<NodeId>,
    /// A value of the first of them.
    example: Variant,
    asked_for: bool,
}

impl Variables {
    /// Finds `prefix`0, `prefix`1, ...; waits until the first of them has a value.
    pub(crate) fn find(target: &Target, prefix: &str, count: u32) -> Result<Self, LoadError> {
        let begun = target.clock.elapsed();
        let mut link = Link::with_session(target)?;
        loop {
            let namespaces = read(&mut link, &NodeId::numeric(0, ids::variable::SERVER_NAMESPACE_ARRAY))?;
            // A responder that has one answer for everything has no namespaces; any index will do for it.
            let index = match strings(&namespaces) {
                None => Some(1),
                Some(uris) => uris.iter().position(|uri| uri == NAMESPACE),
            };
            if let Some(index) = index.and_then(|index| u16::try_from(index).ok()) {
                let id = |number: u32| NodeId::string(index, format!("{prefix}{number}").as_str());
                let value = read(&mut link, &id(0))?;
                if !value.status().is_bad() {
                    return Ok(Self {
                        ids: (0..count).map(id).collect(),
                        example: value.value,
                        asked_for: prefix == "c" || prefix == "d",
                    });
                }
            }
            if target.clock.elapsed().saturating_sub(begun) > PATIENCE {
                return Err(setup(format!("the server has no variable {prefix}0 in {NAMESPACE}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a plugin is asked for them at each read.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.asked_for
    }

    /// The numbers that all of them have now.
    pub(crate) fn numbers(&self, link: &mut Link) -> Result<Vec<i64>, LoadError> {
        let mut numbers = Vec::with_capacity(self.ids.len());
        for ids in self.ids.chunks(READ_AT_ONCE) {
            let request = ReadRequest {
                timestamps_to_return: TimestampsToReturn::NEITHER,
                nodes_to_read: ids.iter().map(value_of).collect(),
                ..ReadRequest::default()
            };
            let response = link.call("Read", request)?;
            numbers.extend(
                response
                    .results
                    .iter()
                    .map(|value| number(&value.value).unwrap_or_default()),
            );
        }
        Ok(numbers)
    }

    /// A value to write: `number`, in the type that the variables have.
    pub(crate) fn value(&self, number: i32) -> Variant {
        match self.example {
            Variant::Double(_) => Variant::Double(f64::from(number)),
            _ => Variant::Int32(number),
        }
    }
}

/// The number in a value that [`Variables::value`] made, or that a counter has; `None` for anything else.
// A Double that was made of an Int32 converts back exactly.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn number(value: &Variant) -> Option<i64> {
    match value {
        Variant::Int32(number) => Some(i64::from(*number)),
        Variant::Double(number) => Some(*number as i64),
        Variant::UInt32(number) => Some(i64::from(*number)),
        Variant::UInt64(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}

fn read(link: &mut Link, node: &NodeId) -> Result<DataValue, LoadError> {
    let request = ReadRequest {
        timestamps_to_return: TimestampsToReturn::NEITHER,
        nodes_to_read: vec![value_of(node)],
        ..ReadRequest::default()
    };
    let response = link.call("Read", request)?;
    response
        .results
        .into_iter()
        .next()
        .ok_or(LoadError::Response("without a result"))
}
