//! The Read service over a hash map of string nodes, written by hand for one purpose: what decoding, looking up and encoding cost at least.
//!
//! Every ReadValueId is read as a server has to read it and gets a status code of its own, but no session is checked, no node locked and no
//! operation limit kept.

use std::sync::Arc;

use backplane_types::{DateTime, ReadRequest, ReadResponse, StatusCode, Structure};
use hashbrown::HashMap;

use crate::channel::{Message, Reply};
use crate::serve::Responder;
use crate::services::{NAMESPACE_INDEX, Services, fault, standard_values};
use crate::wire::{Id, Reader, type_id};

const ATTRIBUTE_VALUE: u32 = 13;
/// Bytes of a DataValue with a Double and both timestamps.
const DATA_VALUE: usize = 26;
const READ: [u8; 4] = type_id(ReadRequest::ENCODING_ID);

const HAS_VALUE: u8 = 1;
const HAS_STATUS: u8 = 2;
const HAS_SOURCE: u8 = 4;
const HAS_SERVER: u8 = 8;
const DOUBLE: u8 = 11;

/// The values of a server: Doubles by name, and a few of namespace 0.
#[derive(Debug)]
pub struct Table {
    nodes: HashMap<Box<[u8]>, f64>,
    standard: [(u32, Vec<u8>); 3],
    changed: DateTime,
}

impl Table {
    /// `v0` to `v<nodes - 1>`, each with its own number as value, all with the source timestamp `changed`.
    #[must_use]
    pub fn new(nodes: u32, changed: DateTime) -> Self {
        let name = |number| format!("v{number}").into_bytes().into_boxed_slice();
        Self {
            nodes: (0..nodes).map(|number| (name(number), f64::from(number))).collect(),
            standard: standard_values(),
            changed,
        }
    }
}

/// The responder of one connection.
#[derive(Clone, Debug)]
pub struct Parsing {
    table: Arc<Table>,
    services: Services,
}

/// What one operation asks for.
struct Operation<'a> {
    node: (u16, Id<'a>),
    attribute: u32,
    ranged: bool,
    encoded: bool,
}

impl Parsing {
    /// Answers from `table`.
    #[must_use]
    pub fn new(table: Arc<Table>, services: Services) -> Self {
        Self { table, services }
    }

    /// Answers a Read whose body stands behind its type id; `None` if it cannot be read.
    #[inline]
    fn read(&self, body: &[u8], now: DateTime, reply: &mut Reply<'_>) -> Option<()> {
        let mut reader = Reader::new(body);
        let handle = reader.request_header()?;
        let _max_age = reader.array::<8>()?;
        let timestamps = reader.u32()?;
        if timestamps > 3 {
            fault(now, handle, StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID, reply);
            return Some(());
        }
        let count = reader.u32()?;
        if count == 0 || count == u32::MAX {
            fault(now, handle, StatusCode::BAD_NOTHING_TO_DO, reply);
            return Some(());
        }
        // An operation has at least 18 bytes, so a count that lies is no reason to reserve much.
        let at_most = reader.rest().len() / 18;
        let expected = usize::try_from(count).unwrap_or(usize::MAX).min(at_most);
        reply.reserve(expected.saturating_mul(DATA_VALUE).saturating_add(40));
        let ticks = now.ticks().to_le_bytes();
        reply.put(&type_id(ReadResponse::ENCODING_ID));
        reply.put(&ticks);
        reply.put(&handle.to_le_bytes());
        // ServiceResult, no diagnostics, no strings, no additional header.
        reply.put(&[0; 12]);
        reply.put(&count.to_le_bytes());
        for _ in 0..count {
            let operation = operation(&mut reader)?;
            self.value(&operation, timestamps, ticks, reply);
        }
        reply.put(&[0; 4]);
        Some(())
    }

    #[inline]
    fn value(&self, operation: &Operation<'_>, timestamps: u32, now: [u8; 8], reply: &mut Reply<'_>) {
        if operation.attribute != ATTRIBUTE_VALUE {
            return bad(StatusCode::BAD_ATTRIBUTE_ID_INVALID, reply);
        }
        if operation.ranged {
            return bad(StatusCode::BAD_INDEX_RANGE_NO_DATA, reply);
        }
        if operation.encoded {
            return bad(StatusCode::BAD_DATA_ENCODING_INVALID, reply);
        }
        match operation.node {
            (NAMESPACE_INDEX, Id::String(name)) => match self.table.nodes.get(name) {
                Some(value) => self.double(*value, timestamps, now, reply),
                None => bad(StatusCode::BAD_NODE_ID_UNKNOWN, reply),
            },
            (0, Id::Numeric(id)) => match self.table.standard.iter().find(|(standard, _)| *standard == id) {
                Some((_, variant)) => {
                    reply.put(&[HAS_VALUE]);
                    reply.put(variant);
                }
                None => bad(StatusCode::BAD_NODE_ID_UNKNOWN, reply),
            },
            _ => bad(StatusCode::BAD_NODE_ID_UNKNOWN, reply),
        }
    }

    #[inline]
    fn double(&self, value: f64, timestamps: u32, now: [u8; 8], reply: &mut Reply<'_>) {
        let (value, changed) = (value.to_le_bytes(), self.table.changed.ticks().to_le_bytes());
        let [v0, v1, v2, v3, v4, v5, v6, v7] = value;
        let [c0, c1, c2, c3, c4, c5, c6, c7] = changed;
        let [n0, n1, n2, n3, n4, n5, n6, n7] = now;
        // Source is 0, Server 1, Both 2 and Neither 3 (Part 4, 7.40).
        let mask = match timestamps {
            0 => HAS_VALUE | HAS_SOURCE,
            1 => HAS_VALUE | HAS_SERVER,
            2 => HAS_VALUE | HAS_SOURCE | HAS_SERVER,
            _ => HAS_VALUE,
        };
        if timestamps == 2 {
            let whole: [u8; DATA_VALUE] = [
                mask, DOUBLE, v0, v1, v2, v3, v4, v5, v6, v7, c0, c1, c2, c3, c4, c5, c6, c7, n0, n1, n2, n3, n4, n5,
                n6, n7,
            ];
            return reply.put(&whole);
        }
        reply.put(&[mask, DOUBLE, v0, v1, v2, v3, v4, v5, v6, v7]);
        if mask & HAS_SOURCE != 0 {
            reply.put(&changed);
        }
        if mask & HAS_SERVER != 0 {
            reply.put(&now);
        }
    }
}

impl Responder for Parsing {
    #[inline]
    fn answer(&mut self, message: Message<'_>, reply: &mut Reply<'_>) {
        match message.body.split_first_chunk() {
            Some((&READ, body)) => {
                if self.read(body, message.now, reply).is_none() {
                    let handle = Reader::new(body).request_header();
                    fault(message.now, handle.unwrap_or(0), StatusCode::BAD_DECODING_ERROR, reply);
                }
            }
            _ => self.services.answer(message, reply),
        }
    }
}

/// Reads a ReadValueId (Part 4, 7.29).
#[inline]
fn operation<'a>(reader: &mut Reader<'a>) -> Option<Operation<'a>> {
    Some(Operation {
        node: reader.node_id()?,
        attribute: reader.u32()?,
        ranged: reader.bytes()?.is_some_and(|range| !range.is_empty()),
        encoded: {
            reader.u16()?;
            reader.bytes()?.is_some_and(|name| !name.is_empty())
        },
    })
}

fn bad(status: StatusCode, reply: &mut Reply<'_>) {
    reply.put(&[HAS_STATUS]);
    reply.put(&status.0.to_le_bytes());
}
