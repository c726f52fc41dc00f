//! A durable subscription as bytes (Part 4, 6.8): everything that has to be there again after a restart, and nothing that is found anew.
//!
//! Owns the form and its version. It must not know files, owners or how sources are found.

use backplane_types::{
    BinaryDecode, BinaryEncode, DataValue, DecodeError, DecodeLimits, Decoder, Encoder, MonitoredItemCreateRequest,
    NodeId, StatusCode, TimestampsToReturn,
};

use crate::events::SavedEvent;

use super::filter::ItemTraits;

/// The form that this version writes, and the only one that it reads.
const VERSION: u8 = 1;

/// One subscription. Numbers are revised ones: they were answered to the client.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSubscription {
    /// SubscriptionId, which stays the same.
    pub subscription_id: u32,
    /// In ms.
    pub publishing_interval: f64,
    pub(super) max_notifications: u32,
    pub(super) priority: u8,
    pub(super) publishing_enabled: bool,
    pub(super) max_keep_alive: u32,
    /// Publishing intervals.
    pub(super) max_lifetime: u32,
    /// Publishing intervals that are left.
    pub(super) lifetime: u32,
    pub(super) lifetime_hours: u32,
    pub(super) next_sequence_number: u32,
    /// Messages kept for Republish.
    pub(super) messages: Vec<(u32, Vec<u8>)>,
    pub(super) next_item_id: u32,
    /// Its items.
    pub items: Vec<SavedItem>,
    /// Triggering and triggered item.
    pub(super) links: Vec<(u32, u32)>,
}

/// One monitored item.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedItem {
    pub(super) id: u32,
    /// What the client asked for, with revised numbers.
    pub request: MonitoredItemCreateRequest,
    pub(super) timestamps: TimestampsToReturn,
    /// What its node allowed: for an item whose node is not there.
    pub(super) traits: ItemTraits,
    /// Its client knows, or will be told by the queue, that the node is gone.
    pub(super) gone: bool,
    pub(super) triggered: bool,
    pub(super) info_bits: u16,
    /// Oldest first; the last is the one that the filter compares with.
    pub(super) values: Vec<SavedValue>,
    /// Whether the last of them was not reported yet.
    pub(super) newest_waits: bool,
    pub(super) events: Vec<SavedEvent>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SavedValue {
    pub(super) value: DataValue,
    pub(super) info_bits: u16,
    pub(super) marker: bool,
}

impl SavedSubscription {
    /// The bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut e = Encoder::new(&mut bytes);
        e.u8(VERSION);
        e.put(self);
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written. Takes no more memory than a small multiple of the bytes.
    ///
    /// # Errors
    /// `BadDecodingError`: another version, bytes that end too early or are left over, numbers that no subscription has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StatusCode> {
        let mut d = Decoder::new(bytes, DecodeLimits::TRUSTED);
        let found = d
            .u8()
            .and_then(|version| {
                if version == VERSION {
                    d.get::<Self>()
                } else {
                    Err(DecodeError::Malformed("version"))
                }
            })
            .map_err(|error| error.status())?;
        if d.is_empty() && found.is_sound() {
            Ok(found)
        } else {
            Err(StatusCode::BAD_DECODING_ERROR)
        }
    }

    fn is_sound(&self) -> bool {
        let mut ids: Vec<u32> = self.items.iter().map(|item| item.id).collect();
        ids.sort_unstable();
        let distinct = ids.windows(2).all(|pair| pair[0] != pair[1]) && ids.first() != Some(&0);
        let counts = self.max_keep_alive > 0 && self.max_lifetime > 0 && self.next_sequence_number > 0;
        let times = self.publishing_interval.is_finite() && self.publishing_interval > 0.0;
        let sampled = |item: &SavedItem| item.request.requested_parameters.sampling_interval.is_finite();
        self.subscription_id > 0 && distinct && counts && times && self.items.iter().all(sampled)
    }
}

fn list<T: BinaryEncode>(e: &mut Encoder<'_>, elements: &[T]) {
    if e.length(elements.len()) {
        elements.iter().for_each(|element| e.put(element));
    }
}

fn read_list<T: BinaryDecode>(d: &mut Decoder<'_>, min_size: usize) -> Result<Vec<T>, DecodeError> {
    let count = d.array_length(min_size)?.unwrap_or(0);
    (0..count).map(|_| d.get()).collect()
}

impl BinaryEncode for SavedSubscription {
    fn encode(&self, e: &mut Encoder<'_>) {
        e.u32(self.subscription_id);
        e.f64(self.publishing_interval);
        e.u32(self.max_notifications);
        e.u8(self.priority);
        e.bool(self.publishing_enabled);
        e.u32(self.max_keep_alive);
        e.u32(self.max_lifetime);
        e.u32(self.lifetime);
        e.u32(self.lifetime_hours);
        e.u32(self.next_sequence_number);
        e.length(self.messages.len());
        for (number, message) in &self.messages {
            e.u32(*number);
            e.byte_string(Some(message));
        }
        e.u32(self.next_item_id);
        list(e, &self.items);
        e.length(self.links.len());
        for (trigger, target) in &self.links {
            e.u32(*trigger);
            e.u32(*target);
        }
    }
}

impl BinaryDecode for SavedSubscription {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            subscription_id: d.u32()?,
            publishing_interval: d.f64()?,
            max_notifications: d.u32()?,
            priority: d.u8()?,
            publishing_enabled: d.bool()?,
            max_keep_alive: d.u32()?,
            max_lifetime: d.u32()?,
            lifetime: d.u32()?,
            lifetime_hours: d.u32()?,
            next_sequence_number: d.u32()?,
            messages: {
                let count = d.array_length(8)?.unwrap_or(0);
                let message = |d: &mut Decoder<'_>| Ok((d.u32()?, d.byte_string()?.unwrap_or_default().to_vec()));
                (0..count).map(|_| message(d)).collect::<Result<_, DecodeError>>()?
            },
            next_item_id: d.u32()?,
            items: read_list(d, 64)?,
            links: {
                let count = d.array_length(8)?.unwrap_or(0);
                (0..count)
                    .map(|_| Ok((d.u32()?, d.u32()?)))
                    .collect::<Result<_, DecodeError>>()?
            },
        })
    }
}

impl BinaryEncode for SavedItem {
    fn encode(&self, e: &mut Encoder<'_>) {
        e.u32(self.id);
        e.put(&self.request);
        e.put(&self.timestamps);
        let traits = &self.traits;
        for fact in [traits.is_value, traits.is_notifier, traits.is_number, traits.is_boolean] {
            e.bool(fact);
        }
        e.f64(traits.minimum_sampling_interval);
        e.bool(traits.eu_range.is_some());
        let (low, high) = traits.eu_range.unwrap_or_default();
        e.f64(low);
        e.f64(high);
        e.bool(self.gone);
        e.bool(self.triggered);
        e.u16(self.info_bits);
        list(e, &self.values);
        e.bool(self.newest_waits);
        list(e, &self.events);
    }
}

impl BinaryDecode for SavedItem {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: d.u32()?,
            request: d.get()?,
            timestamps: d.get()?,
            traits: ItemTraits {
                is_value: d.bool()?,
                is_notifier: d.bool()?,
                is_number: d.bool()?,
                is_boolean: d.bool()?,
                minimum_sampling_interval: d.f64()?,
                eu_range: {
                    let (known, range) = (d.bool()?, (d.f64()?, d.f64()?));
                    known.then_some(range)
                },
            },
            gone: d.bool()?,
            triggered: d.bool()?,
            info_bits: d.u16()?,
            values: read_list(d, 4)?,
            newest_waits: d.bool()?,
            events: read_list(d, 13)?,
        })
    }
}

impl BinaryEncode for SavedValue {
    fn encode(&self, e: &mut Encoder<'_>) {
        e.put(&self.value);
        e.u16(self.info_bits);
        e.bool(self.marker);
    }
}

impl BinaryDecode for SavedValue {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            value: d.get()?,
            info_bits: d.u16()?,
            marker: d.bool()?,
        })
    }
}

impl SavedItem {
    /// The node that it monitors.
    #[must_use]
    pub fn node_id(&self) -> &NodeId {
        &self.request.item_to_monitor.node_id
    }
}
