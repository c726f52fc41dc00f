//! What decides about the samples of an item (Part 4, 7.22): one kind for each kind of filter that a client may ask for.
//!
//! It owns the choice of a filter, and what a filter keeps between samples. It must not know nodes or services: what the node allows is
//! handed in as [`ItemTraits`]. A filter with much state has it in a box, so that an item without one stays as small as it is.

mod aggregate;
mod budget;
mod data;

use std::sync::Arc;

use backplane_types::{AggregateFilter, DataChangeFilter, EventFilter, ExtensionObject, StatusCode, Structure};

use crate::events::{EventQueue, EventTypes, Filter, FilterLimits, Refused};

pub(crate) use aggregate::{AggregateFeed, AggregateTerms};
pub(crate) use budget::{Charge, FilterBudget};
pub(crate) use data::DataFilter;

/// What the node behind an item allows; given by the caller who resolved it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItemTraits {
    /// Whether the attribute is Value.
    pub is_value: bool,
    /// Whether the attribute is EventNotifier: the item reports events instead of values.
    pub is_notifier: bool,
    /// Whether the data type is a Number, so that a deadband has a meaning.
    pub is_number: bool,
    /// Whether the data type is Boolean, which aggregates take for the numbers 0 and 1.
    pub is_boolean: bool,
    /// MinimumSamplingInterval of the node in ms: 0 is continuous, below 0 unknown.
    pub minimum_sampling_interval: f64,
    /// EURange of the node, low and high, for percent deadbands.
    pub eu_range: Option<(f64, f64)>,
}

impl Default for ItemTraits {
    /// A Value that is not a number and whose source is unknown.
    fn default() -> Self {
        Self {
            is_value: true,
            is_notifier: false,
            is_number: false,
            is_boolean: false,
            minimum_sampling_interval: -1.0,
            eu_range: None,
        }
    }
}

/// What event filters are checked against.
#[derive(Debug, Clone)]
pub(crate) struct EventContext {
    pub(crate) types: Arc<dyn EventTypes>,
    pub(crate) limits: FilterLimits,
    pub(crate) budget: Arc<FilterBudget>,
}

/// The filter of an item.
#[derive(Debug)]
pub(crate) enum ItemFilter {
    /// Compares each sample with the value queued before it.
    Data(DataFilter),
    /// Lets events pass; they have a queue of their own, and nothing is sampled.
    Event(Box<EventFeed>),
    /// Computes a value for each interval from the samples in it.
    Aggregate(Box<AggregateFeed>),
}

/// What an event item has in place of a data filter and a queue of values.
#[derive(Debug)]
pub(crate) struct EventFeed {
    pub(crate) filter: Filter,
    pub(crate) queue: EventQueue,
    /// What the filter takes of its session's budget.
    charge: Charge,
}

impl ItemFilter {
    /// The filter that a client asks for, and the filterResult to answer: null where the filter has none.
    ///
    /// # Errors
    /// `BadFilterNotAllowed` (attribute other than Value, event filter on data, another filter on events);
    /// `BadMonitoredItemFilterUnsupported` (unknown filter); `BadMonitoredItemFilterInvalid` (cannot be decoded);
    /// `BadEventFilterInvalid`; `BadTooManyMonitoredItems` (the event filters of the session are too much); those of the kind of filter.
    pub(crate) fn from_request(
        filter: &ExtensionObject,
        traits: &ItemTraits,
        events: &EventContext,
        terms: &AggregateTerms,
    ) -> Result<(Self, ExtensionObject), Refused> {
        let kind = filter.type_id.as_standard();
        if traits.is_notifier {
            return match kind {
                Some(EventFilter::ENCODING_ID) => {
                    let (filter, result) = Filter::new(filter, events.types.as_ref(), &events.limits)?;
                    let charge = Charge::take(&events.budget, &events.limits, filter.bytes, filter.work)?;
                    let queue = EventQueue::new(1, true);
                    Ok((Self::Event(Box::new(EventFeed { filter, queue, charge })), result))
                }
                // Without a filter nobody knows which fields to send.
                _ if filter.is_null() => Err(StatusCode::BAD_EVENT_FILTER_INVALID.into()),
                Some(DataChangeFilter::ENCODING_ID | AggregateFilter::ENCODING_ID) => {
                    Err(StatusCode::BAD_FILTER_NOT_ALLOWED.into())
                }
                _ => Err(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED.into()),
            };
        }
        if filter.is_null() {
            return Ok((Self::Data(DataFilter::DEFAULT), ExtensionObject::NULL));
        }
        match kind {
            Some(DataChangeFilter::ENCODING_ID) => {
                let filter = DataFilter::from_request(filter, traits)?;
                Ok((Self::Data(filter), ExtensionObject::NULL))
            }
            Some(EventFilter::ENCODING_ID) => Err(StatusCode::BAD_FILTER_NOT_ALLOWED.into()),
            Some(AggregateFilter::ENCODING_ID) if !traits.is_value => Err(StatusCode::BAD_FILTER_NOT_ALLOWED.into()),
            Some(AggregateFilter::ENCODING_ID) => {
                let (feed, result) = AggregateFeed::from_request(filter, traits, terms)?;
                Ok((Self::Aggregate(Box::new(feed)), result))
            }
            _ => Err(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED.into()),
        }
    }

    /// Takes over a new filter. What is queued stays.
    pub(crate) fn replace(&mut self, new: Self) {
        match (self, new) {
            (Self::Event(feed), Self::Event(new)) => {
                feed.filter = new.filter;
                feed.charge = new.charge;
            }
            (old, new) => *old = new,
        }
    }
}
