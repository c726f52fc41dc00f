//! Whether a response is the one that was asked for, and good, without decoding it into structures.
//!
//! Owns the walk through response bodies on the hot path. What it does not know by heart it decodes. Knows no sockets.

use backplane_types::{
    ArrayValues, BinaryDecode, BrowseResponse, DataValue, DecodeLimits, Decoder, NodeId, ReadResponse, ResponseHeader,
    ServiceFault, StatusCode, Structure, Variant, WriteResponse,
};

use crate::requests::Ask;

/// The bits of a DataValue's mask (Part 6, 5.2.2.17).
const VALUE: u8 = 0x01;
const STATUS: u8 = 0x02;
/// Source timestamp, server timestamp, and their picoseconds.
const TIMES: [(u8, usize); 4] = [(0x04, 8), (0x10, 2), (0x08, 8), (0x20, 2)];
/// The severity Bad in a status code (Part 4, 7.39).
const BAD: u32 = 0x8000_0000;

/// What is wrong with a response; not the end of the run, but an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A ServiceFault or a bad ServiceResult.
    Fault(StatusCode),
    /// A bad status of one operation.
    Operation(StatusCode),
    /// Not the response, or not as long as it should be.
    Shape(&'static str),
}

/// Checks the responses of one closed loop.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    ask: Ask,
    count: usize,
    /// The part behind the header of the last Browse response that was decoded and found good.
    known: Vec<u8>,
}

impl Verifier {
    /// For responses to `ask` with `count` operations.
    pub(crate) fn new(ask: Ask, count: usize) -> Self {
        Self {
            ask,
            count,
            known: Vec::new(),
        }
    }

    /// The RequestHandle, and what is wrong if anything is.
    pub(crate) fn check(&mut self, body: &[u8]) -> (Option<u32>, Result<(), Wrong>) {
        let Some(header) = Header::read(body) else {
            return (None, Err(Wrong::Shape("no response header")));
        };
        let handle = Some(header.handle);
        if header.type_id == ServiceFault::ENCODING_ID || header.result.is_bad() {
            return (handle, Err(Wrong::Fault(header.result)));
        }
        let wanted = match self.ask {
            Ask::Read => ReadResponse::ENCODING_ID,
            Ask::Write => WriteResponse::ENCODING_ID,
            Ask::Browse => BrowseResponse::ENCODING_ID,
        };
        if header.type_id != wanted {
            return (handle, Err(Wrong::Shape("a response of another service")));
        }
        let rest = body.get(header.end..).unwrap_or_default();
        let result = match self.ask {
            Ask::Read => values(rest, self.count),
            Ask::Write => statuses(rest, self.count),
            Ask::Browse if !self.known.is_empty() && self.known == rest => Ok(()),
            Ask::Browse => self.references(body, rest),
        };
        (handle, result)
    }

    fn references(&mut self, body: &[u8], rest: &[u8]) -> Result<(), Wrong> {
        let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
        let malformed = |_| Wrong::Shape("a response that cannot be decoded");
        NodeId::decode(&mut decoder).map_err(malformed)?;
        let response = BrowseResponse::decode(&mut decoder).map_err(malformed)?;
        for result in &response.results {
            if result.status_code.is_bad() {
                return Err(Wrong::Operation(result.status_code));
            }
            if result.references.is_empty() || !result.continuation_point.is_empty() {
                return Err(Wrong::Shape("not all references"));
            }
        }
        if response.results.len() != self.count {
            return Err(Wrong::Shape("another number of results"));
        }
        self.known.clear();
        self.known.extend_from_slice(rest);
        Ok(())
    }
}

/// What stands in front of every response.
struct Header {
    type_id: u32,
    handle: u32,
    result: StatusCode,
    /// Where the service's own fields begin.
    end: usize,
}

impl Header {
    fn read(body: &[u8]) -> Option<Self> {
        let (type_id, at) = match body {
            [0, id, ..] => (u32::from(*id), 2usize),
            [1, 0, low, high, ..] => (u32::from(u16::from_le_bytes([*low, *high])), 4),
            [2, 0, 0, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]), 7),
            _ => return None,
        };
        let fields = body.get(at..)?;
        let handle = word(fields, 8)?;
        let result = StatusCode(word(fields, 12)?);
        // No diagnostics, no strings, no additional header; a null list of strings is as good as an empty one.
        let common = matches!(
            fields.get(16..24)?,
            [0, 0, 0, 0, 0, 0, 0, 0] | [0, 255, 255, 255, 255, 0, 0, 0]
        );
        let end = if common {
            at.checked_add(24)?
        } else {
            let mut decoder = Decoder::new(fields, DecodeLimits::DEFAULT);
            ResponseHeader::decode(&mut decoder).ok()?;
            at.checked_add(decoder.position())?
        };
        Some(Self {
            type_id,
            handle,
            result,
            end,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|field| u32::from_le_bytes(*field))
}

/// Takes the length of a list off the front, which has to be `count`.
fn list(bytes: &[u8], count: usize) -> Result<&[u8], Wrong> {
    let length = word(bytes, 0).map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    match bytes.get(4..) {
        Some(rest) if length == Some(count) => Ok(rest),
        _ => Err(Wrong::Shape("another number of results")),
    }
}

/// Diagnostics, of which there are none, and then the end.
fn end(bytes: &[u8]) -> Result<(), Wrong> {
    match word(bytes, 0) {
        Some(0 | u32::MAX) if bytes.len() == 4 => Ok(()),
        _ => Err(Wrong::Shape("something behind the results")),
    }
}

fn statuses(bytes: &[u8], count: usize) -> Result<(), Wrong> {
    let rest = list(bytes, count)?;
    let (results, rest) = rest
        .split_at_checked(count.saturating_mul(4))
        .ok_or(Wrong::Shape("too few results"))?;
    for result in results.as_chunks::<4>().0 {
        let status = u32::from_le_bytes(*result);
        if status & BAD != 0 {
            return Err(Wrong::Operation(StatusCode(status)));
        }
    }
    end(rest)
}

fn values(bytes: &[u8], count: usize) -> Result<(), Wrong> {
    let mut rest = list(bytes, count)?;
    for _ in 0..count {
        rest = value(rest)?;
    }
    end(rest)
}

/// Takes one DataValue with a value and without a bad status off the front.
#[inline]
fn value(bytes: &[u8]) -> Result<&[u8], Wrong> {
    let [mask, kind, ..] = bytes else {
        return Err(Wrong::Shape("too few results"));
    };
    let size = size_of_scalar(*kind);
    if mask & VALUE == 0 || size == 0 {
        return any_value(bytes);
    }
    let mut length = size.saturating_add(2);
    if mask & STATUS != 0 {
        let status = word(bytes, length).unwrap_or(BAD);
        if status & BAD != 0 {
            return Err(Wrong::Operation(StatusCode(status)));
        }
        length = length.saturating_add(4);
    }
    for (bit, size) in TIMES {
        if mask & bit != 0 {
            length = length.saturating_add(size);
        }
    }
    bytes.get(length..).ok_or(Wrong::Shape("too few results"))
}

/// Bytes of the scalars that variables of a load test have; 0 for everything else.
fn size_of_scalar(kind: u8) -> usize {
    match kind {
        1..=3 => 1,
        4 | 5 => 2,
        6 | 7 | 10 | 19 => 4,
        8 | 9 | 11 | 13 => 8,
        _ => 0,
    }
}

fn any_value(bytes: &[u8]) -> Result<&[u8], Wrong> {
    let mut decoder = Decoder::new(bytes, DecodeLimits::DEFAULT);
    let value = DataValue::decode(&mut decoder).map_err(|_| Wrong::Shape("a value that cannot be decoded"))?;
    if value.status().is_bad() {
        return Err(Wrong::Operation(value.status()));
    }
    if value.value == Variant::default() {
        return Err(Wrong::Shape("no value"));
    }
    bytes.get(decoder.position()..).ok_or(Wrong::Shape("too few results"))
}

/// The strings of a value such as NamespaceArray; `None` for anything else.
pub(crate) fn strings(value: &DataValue) -> Option<Vec<String>> {
    let Variant::Array(array) = &value.value else {
        return None;
    };
    match &array.values {
        ArrayValues::String(texts) => Some(texts.iter().map(|text| text.text().to_owned()).collect()),
        _ => None,
    }
}
