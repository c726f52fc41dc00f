//! How responses begin and how requests fail: the response header (Part 4 7.33) and the ServiceFault (7.34).

use std::time::Duration;

use backplane_types::service::RequestKind;
use backplane_types::{
    AdditionalParametersType, Encoder, ExtensionObject, KeyValuePair, NodeId, Now, QualifiedName, ResponseHeader,
    ServiceFault, StatusCode, Structure, Variant,
};

/// What every response repeats of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// The time of the turn in which the request is answered.
    pub(crate) now: Now,
    /// requestHandle of the request.
    pub(crate) request_handle: u32,
}

impl Context {
    /// The header as a structure, for responses that are built as one.
    pub(crate) fn header(self) -> ResponseHeader {
        ResponseHeader {
            timestamp: self.now.utc,
            request_handle: self.request_handle,
            ..ResponseHeader::default()
        }
    }

    /// Writes type id and header of a good response to `kind`; the rest of the body follows.
    pub(crate) fn begin(self, kind: RequestKind, out: &mut Vec<u8>) {
        Encoder::new(out).response_header(
            kind.response_encoding_id(),
            self.now.utc,
            self.request_handle,
            StatusCode::GOOD,
        );
    }

    /// Writes a whole ServiceFault.
    pub(crate) fn fault(self, status: StatusCode, out: &mut Vec<u8>) {
        Encoder::new(out).service_fault(self.now.utc, self.request_handle, status);
    }

    /// A whole `BadServerTooBusy` ServiceFault that says when to try again, in its additionalHeader.
    pub(crate) fn busy(self, retry_after: Duration, out: &mut Vec<u8>) {
        let milliseconds = u32::try_from(retry_after.as_millis()).unwrap_or(u32::MAX);
        let parameters = AdditionalParametersType {
            parameters: vec![KeyValuePair {
                key: QualifiedName {
                    namespace: 0,
                    name: "RetryAfterMs".into(),
                },
                value: Variant::UInt32(milliseconds),
            }],
        };
        let fault = ServiceFault {
            response_header: ResponseHeader {
                service_result: StatusCode::BAD_SERVER_TOO_BUSY,
                additional_header: ExtensionObject::from_structure(&parameters),
                ..self.header()
            },
        };
        structure(&fault, out);
    }

    /// A whole ServiceFault in a buffer of its own.
    pub(crate) fn fault_message(self, status: StatusCode) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        self.fault(status, &mut out);
        out
    }
}

/// Writes a response that was built as a structure.
pub(crate) fn structure<T: Structure>(response: &T, out: &mut Vec<u8>) {
    let mut encoder = Encoder::new(out);
    encoder.put(&NodeId::numeric(0, T::ENCODING_ID));
    encoder.put(response);
}
