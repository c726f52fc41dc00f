//! How responses begin and how requests fail.

use backplane_types::service::RequestKind;
use backplane_types::{Encoder, NodeId, Now, ResponseHeader, StatusCode, Structure};

/// What every response repeats of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) now: Now,
    pub(crate) request_handle: u32,
}

impl Context {
    pub(crate) fn header(self) -> ResponseHeader {
        ResponseHeader {
            timestamp: self.now.utc,
            request_handle: self.request_handle,
            ..ResponseHeader::default()
        }
    }

    pub(crate) fn begin(self, kind: RequestKind, out: &mut Vec<u8>) {
        let id = kind.response_encoding_id();
        Encoder::new(out).response_header(id, self.now.utc, self.request_handle, StatusCode::GOOD);
    }

    pub(crate) fn fault_message(self, status: StatusCode) -> Vec<u8> {
        let mut out = Vec::new();
        Encoder::new(&mut out).service_fault(self.now.utc, self.request_handle, status);
        out
    }
}

/// A response that was built as a structure, or a request.
pub(crate) fn encoded<T: Structure>(message: &T) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out);
    encoder.put(&NodeId::numeric(0, T::ENCODING_ID));
    encoder.put(message);
    out
}
