//! NotificationMessages in their binary form (Part 4, 7.26 and 7.25; Part 6, 5.2): written once, shared ever after.
//!
//! It owns the bytes of a message. It must not know which items there are or when a message is due.

use backplane_types::{
    DataChangeNotification, DataValue, DataValueHead, DateTime, DiagnosticInfo, Encoder, EventNotificationList, NodeId,
    PlainValue, StatusChangeNotification, StatusCode, Structure, TimestampsToReturn,
};

use crate::events::{Event, Filter};

use super::queue::{Entry, Kept};

/// ExtensionObject body in binary.
const BINARY_BODY: u8 = 1;

/// Writes a message with a DataChangeNotification, an EventNotificationList or both, notification by notification.
pub(crate) struct NotificationWriter<'a> {
    e: Encoder<'a>,
    /// Where the notificationData list starts.
    list_at: usize,
    body_length_at: usize,
    count_at: usize,
    count: u32,
    /// EventFieldLists: they follow the values, wherever in between they came.
    events: Vec<u8>,
    event_count: u32,
    max_size: usize,
}

impl<'a> NotificationWriter<'a> {
    /// Starts a message in an empty buffer.
    pub(crate) fn new(buffer: &'a mut Vec<u8>, sequence_number: u32, publish_time: DateTime, max_size: usize) -> Self {
        buffer.clear();
        let mut e = Encoder::new(buffer);
        header(&mut e, sequence_number, publish_time);
        let list_at = e.position();
        e.i32(1);
        e.put(&NodeId::standard(DataChangeNotification::ENCODING_ID));
        e.u8(BINARY_BODY);
        let body_length_at = e.position();
        e.u32(0);
        let count_at = e.position();
        e.u32(0);
        Self {
            e,
            list_at,
            body_length_at,
            count_at,
            count: 0,
            events: Vec::new(),
            event_count: 0,
            max_size,
        }
    }

    /// Notifications so far.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count.saturating_add(self.event_count)
    }

    /// Whether the message has reached its size.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.e.position() + self.events.len() >= self.max_size
    }

    /// Appends one notification. A value that alone is longer than a message may be is replaced by a status.
    #[inline]
    pub(crate) fn push(&mut self, client_handle: u32, entry: &Entry, timestamps: Timestamps) {
        let start = self.e.position();
        self.e.u32(client_handle);
        timestamps.encode(entry, &mut self.e);
        if self.e.position() - start > self.max_size {
            self.e.truncate(start);
            self.e.u32(client_handle);
            let too_long = StatusCode::BAD_ENCODING_LIMITS_EXCEEDED;
            self.e.put(&DataValue::from_status(too_long));
        }
        self.count += 1;
    }

    /// Appends the fields of one event. Those that alone are longer than a message may be are replaced by a status.
    pub(crate) fn push_event(&mut self, client_handle: u32, filter: &Filter, event: &Event) {
        let start = self.events.len();
        let mut e = Encoder::new(&mut self.events);
        e.u32(client_handle);
        filter.encode(event, &mut e);
        if e.position() - start > self.max_size {
            e.truncate(start);
            e.u32(client_handle);
            filter.encode_status(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED, &mut e);
        }
        self.event_count += 1;
    }

    /// Ends the message.
    pub(crate) fn finish(mut self) {
        if self.count == 0 && self.event_count > 0 {
            self.e.truncate(self.list_at);
            self.e.i32(1);
        } else {
            // No diagnostic infos.
            self.e.i32(0);
            self.end_body(self.body_length_at);
            self.e.patch_u32(self.count_at, self.count);
        }
        if self.event_count > 0 {
            if self.count > 0 {
                self.e.patch_u32(self.list_at, 2);
            }
            self.e.put(&NodeId::standard(EventNotificationList::ENCODING_ID));
            self.e.u8(BINARY_BODY);
            let body_length_at = self.e.position();
            self.e.u32(0);
            self.e.u32(self.event_count);
            self.e.raw(&self.events);
            self.end_body(body_length_at);
        }
    }

    fn end_body(&mut self, length_at: usize) {
        let body = self.e.position() - length_at - 4;
        self.e.patch_u32(length_at, u32::try_from(body).unwrap_or(0));
    }
}

/// A message without notifications: the keep-alive.
pub(crate) fn keep_alive(buffer: &mut Vec<u8>, sequence_number: u32, publish_time: DateTime) {
    buffer.clear();
    let mut e = Encoder::new(buffer);
    header(&mut e, sequence_number, publish_time);
    e.i32(0);
}

/// A message that says that the subscription ended.
pub(crate) fn status_change(buffer: &mut Vec<u8>, sequence_number: u32, publish_time: DateTime, status: StatusCode) {
    buffer.clear();
    let mut e = Encoder::new(buffer);
    header(&mut e, sequence_number, publish_time);
    e.i32(1);
    e.extension_object(&StatusChangeNotification {
        status,
        diagnostic_info: DiagnosticInfo::default(),
    });
}

fn header(e: &mut Encoder<'_>, sequence_number: u32, publish_time: DateTime) {
    e.u32(sequence_number);
    e.put(&publish_time);
}

/// Which timestamps a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamps {
    source: bool,
    server: bool,
}

impl Timestamps {
    /// # Errors
    /// `BadTimestampsToReturnInvalid`.
    pub(crate) fn from_request(timestamps: TimestampsToReturn) -> Result<Self, StatusCode> {
        let (source, server) = match timestamps {
            TimestampsToReturn::SOURCE => (true, false),
            TimestampsToReturn::SERVER => (false, true),
            TimestampsToReturn::BOTH => (true, true),
            TimestampsToReturn::NEITHER => (false, false),
            _ => return Err(StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID),
        };
        Ok(Self { source, server })
    }

    /// As the client asked for them.
    pub(crate) fn asked(self) -> TimestampsToReturn {
        match (self.source, self.server) {
            (true, false) => TimestampsToReturn::SOURCE,
            (false, true) => TimestampsToReturn::SERVER,
            (true, true) => TimestampsToReturn::BOTH,
            (false, false) => TimestampsToReturn::NEITHER,
        }
    }

    /// Gives a sample its server timestamp where one is wanted and the source of the value gave none.
    pub(crate) fn stamp(self, value: &mut DataValue, utc: DateTime) {
        if self.server && value.server_timestamp.is_none() {
            value.server_timestamp = Some(utc);
        }
    }

    /// As [`Timestamps::stamp`].
    #[inline]
    pub(crate) fn stamp_plain(self, value: &mut PlainValue, utc: DateTime) {
        if self.server {
            value.stamp(utc);
        }
    }

    /// Writes the entry's value with its info bits and only the wanted timestamps.
    #[inline]
    fn encode(self, entry: &Entry, e: &mut Encoder<'_>) {
        match &entry.value {
            Kept::Plain(value) if entry.info_bits == 0 => value.encode(e, self.source, self.server),
            Kept::Plain(value) => self.encode_whole(&value.data_value(), entry.info_bits, e),
            Kept::Other(value) => self.encode_whole(value, entry.info_bits, e),
        }
    }

    fn encode_whole(self, value: &DataValue, info_bits: u16, e: &mut Encoder<'_>) {
        let status = value.status().0 | u32::from(info_bits);
        let head = DataValueHead {
            status: StatusCode(status),
            source_timestamp: value.source_timestamp.filter(|_| self.source),
            source_picoseconds: value.source_picoseconds.filter(|_| self.source),
            server_timestamp: value.server_timestamp.filter(|_| self.server),
            server_picoseconds: value.server_picoseconds.filter(|_| self.server),
        };
        e.data_value(&head, Some(&value.value).filter(|value| !value.is_empty()));
    }
}
