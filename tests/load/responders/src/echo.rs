//! The answer that costs nothing: a Read response made once, copied for every request.
//!
//! Only request id and RequestHandle are the request's own. Its body is not looked at beyond the type id, so every service but those around
//! a session gets the same answer. The first requests of a connection are exempt, because clients look for their namespace there.

use backplane_types::{
    ActivateSessionRequest, BinaryDecode, BinaryEncode, CloseSessionRequest, CreateSessionRequest, DataValue, DateTime,
    DecodeLimits, Decoder, Encoder, GetEndpointsRequest, NodeId, ReadRequest, ReadResponse, ResponseHeader, StatusCode,
    Structure, UaString, Variant,
};

use crate::channel::{CHUNK, Message, Reply, response_header};
use crate::serve::Responder;
use crate::services::{Services, standard_values};
use crate::wire::{CHUNK_HEADER, Reader, type_id};

/// Requests at the start of a connection that are looked into, in case they read standard nodes.
const LOOKED_INTO: u32 = 32;
/// Where a response's RequestHandle is: behind the chunk's headers, a type id of four bytes and the timestamp.
const HANDLE: usize = CHUNK_HEADER + 4 + 8;

const AROUND_SESSIONS: [[u8; 4]; 4] = [
    type_id(GetEndpointsRequest::ENCODING_ID),
    type_id(CreateSessionRequest::ENCODING_ID),
    type_id(ActivateSessionRequest::ENCODING_ID),
    type_id(CloseSessionRequest::ENCODING_ID),
];

/// The responder of one connection.
#[derive(Clone, Debug)]
pub struct Echo {
    chunk: std::sync::Arc<[u8]>,
    services: Services,
    looked_into: u32,
}

impl Echo {
    /// Answers with chunks of exactly `bytes` bytes, headers included: as many Doubles with both timestamps as fit, and a string of zeros
    /// for the rest.
    ///
    /// # Errors
    /// A text for people if no response has that size: 60, or 64 to 65,536, are possible.
    pub fn new(bytes: usize, services: Services) -> Result<Self, String> {
        Ok(Self {
            chunk: response(bytes)?.into(),
            services,
            looked_into: 0,
        })
    }

    /// A response of the standard nodes' values, if the request reads nothing else.
    fn standard(message: Message<'_>, reply: &mut Reply<'_>) -> Option<()> {
        let mut decoder = Decoder::new(message.body, DecodeLimits::DEFAULT);
        if NodeId::decode(&mut decoder).ok()?.as_standard() != Some(ReadRequest::ENCODING_ID) {
            return None;
        }
        let request = ReadRequest::decode(&mut decoder).ok()?;
        let standard = standard_values();
        let value = |id: Option<u32>| standard.iter().find(|(known, _)| Some(*known) == id);
        let ids = request.nodes_to_read.iter().map(|node| node.node_id.as_standard());
        let values: Vec<_> = ids.map(value).collect::<Option<_>>()?;
        let header = response_header(message.now, request.request_header.request_handle);
        let mut encoder = reply.encoder();
        NodeId::numeric(0, ReadResponse::ENCODING_ID).encode(&mut encoder);
        header.encode(&mut encoder);
        encoder.length(values.len());
        for (_, variant) in values {
            encoder.u8(1);
            encoder.raw(variant);
        }
        encoder.empty_list();
        Some(())
    }
}

impl Responder for Echo {
    #[inline]
    fn answer(&mut self, message: Message<'_>, reply: &mut Reply<'_>) {
        let Some((service, header)) = message.body.split_first_chunk::<4>() else {
            return self.services.answer(message, reply);
        };
        if AROUND_SESSIONS.contains(service) {
            return self.services.answer(message, reply);
        }
        if self.looked_into < LOOKED_INTO {
            self.looked_into = self.looked_into.saturating_add(1);
            if Self::standard(message, reply).is_some() {
                return;
            }
        }
        reply.put_chunk(&self.chunk);
        let handle = Reader::new(header).handle();
        reply.patch(HANDLE, handle.unwrap_or(0).to_le_bytes());
    }
}

/// A chunk with a Read response, its headers still zeros.
fn response(bytes: usize) -> Result<Vec<u8>, String> {
    let impossible = || format!("no Read response has {bytes} bytes: 60, or 64 to {CHUNK}");
    let empty = encode(0, None).len();
    let one = encode(1, None).len().saturating_sub(empty);
    let room = bytes
        .checked_sub(empty)
        .filter(|_| bytes <= CHUNK)
        .ok_or_else(impossible)?;
    let (values, rest) = (room / one, room % one);
    // A string takes four bytes and its own.
    let (values, rest) = match rest {
        0 => return Ok(encode(values, None)),
        1..=3 => (values.checked_sub(1).ok_or_else(impossible)?, rest.saturating_add(one)),
        _ => (values, rest),
    };
    Ok(encode(values, Some(rest.saturating_sub(4))))
}

fn encode(values: usize, filler: Option<usize>) -> Vec<u8> {
    let now = DateTime::from_system_time(std::time::SystemTime::now());
    let value = DataValue {
        value: Variant::Double(0.0),
        source_timestamp: Some(now),
        server_timestamp: Some(now),
        ..DataValue::default()
    };
    let string_table: Vec<UaString> = filler
        .map(|length| "0".repeat(length).as_str().into())
        .into_iter()
        .collect();
    let response = ReadResponse {
        response_header: ResponseHeader {
            timestamp: now,
            service_result: StatusCode::GOOD,
            string_table,
            ..ResponseHeader::default()
        },
        results: vec![value; values],
        ..ReadResponse::default()
    };
    let mut chunk = vec![0; CHUNK_HEADER];
    let mut encoder = Encoder::new(&mut chunk);
    NodeId::numeric(0, ReadResponse::ENCODING_ID).encode(&mut encoder);
    response.encode(&mut encoder);
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunk: &[u8]) -> ReadResponse {
        let mut decoder = Decoder::new(&chunk[CHUNK_HEADER..], DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).unwrap();
        assert_eq!(type_id, NodeId::numeric(0, ReadResponse::ENCODING_ID));
        let response = ReadResponse::decode(&mut decoder).unwrap();
        assert!(decoder.is_empty());
        response
    }

    #[test]
    fn a_response_has_the_size_that_was_asked_for() {
        for bytes in (64..400).chain([60, 2_660, CHUNK]) {
            let chunk = response(bytes).unwrap();
            assert_eq!(chunk.len(), bytes);
            decode(&chunk);
        }
        assert_eq!(decode(&response(86).unwrap()).results.len(), 1);
        assert_eq!(decode(&response(2_660).unwrap()).results.len(), 100);
    }

    #[test]
    fn sizes_that_no_response_has_are_refused() {
        for bytes in [0, 59, 61, 62, 63, CHUNK + 1] {
            assert!(response(bytes).is_err(), "{bytes}");
        }
    }

    #[test]
    fn the_handle_is_where_it_is_patched() {
        let mut chunk = response(86).unwrap();
        chunk[HANDLE..HANDLE + 4].copy_from_slice(&77_u32.to_le_bytes());
        assert_eq!(decode(&chunk).response_header.request_handle, 77);
    }
}
