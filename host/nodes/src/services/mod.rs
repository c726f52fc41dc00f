//! The services on nodes, from the body of a request to the body of its response.
//!
//! Every function takes the body that follows the request header, decodes its operations in place, and appends what follows the response header:
//! results, and an empty list of diagnostics. An `Err` is a ServiceFault: whatever was appended is to be dropped. Nothing in here must know sessions,
//! channels or executors.
//!
//! Read, Write and Call exist twice. The plain function answers everything that needs no manager; if an operation does, it appends nothing, does
//! nothing and says [`Progress::MustWait`], and the `_waiting` twin is run on the same body. Reads of one caller that must wait are better put
//! together in a [`ReadBatch`]: each manager is then asked once for all of them.

mod browse;
mod call;
mod continuation;
mod fan_out;
pub(crate) mod pages;
mod read;
mod read_batch;
mod register;
mod translate;
mod write;

use backplane_types::{DecodeLimits, Decoder, Encoder, Now, StatusCode};

pub use browse::{browse, browse_next};
pub use call::{call, call_waiting};
pub use continuation::ContinuationPoints;
pub use read::{read, read_waiting, sample};
pub use read_batch::{Asking, MAX_BATCHED_READS, MAX_BATCHED_TAGS, MAX_TAGS_PER_CALL, ReadBatch, Until};
pub use register::{register_nodes, unregister_nodes};
pub use translate::translate_browse_paths;
pub use write::{write, write_waiting};

use crate::manager::CallContext;

/// What a service needs beside the snapshot and the body.
#[derive(Debug, Clone, Copy)]
pub struct ServiceContext<'a> {
    /// Who asks, and until when.
    pub call: &'a CallContext,
    /// The present.
    pub now: Now,
    /// Limits for decoding the body.
    pub decode: DecodeLimits,
    /// Bytes that the response body may have; more: `BadResponseTooLarge`.
    pub max_response_size: usize,
}

/// How far a service came without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The response is complete.
    Done,
    /// Nothing was appended and nothing has happened: a manager must be asked.
    MustWait,
}

/// Appends the empty list of diagnostics that ends every response in here.
fn no_diagnostics(out: &mut Encoder<'_>) {
    out.empty_list();
}

/// Checks the number of operations.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`.
fn check_count(count: usize, limit: u32) -> Result<(), StatusCode> {
    match count {
        0 => Err(StatusCode::BAD_NOTHING_TO_DO),
        count if count > limit as usize => Err(StatusCode::BAD_TOO_MANY_OPERATIONS),
        _ => Ok(()),
    }
}

/// Opens a list of operations whose elements have at least `min_size` bytes, and appends the length of the list of results.
fn open_list(decoder: &mut Decoder<'_>, min_size: usize, limit: u32) -> Result<usize, StatusCode> {
    let count = decoder.array_length(min_size).map_err(StatusCode::from)?.unwrap_or(0);
    check_count(count, limit)?;
    Ok(count)
}

/// Whether the response has become too large.
fn check_size(out: &Encoder<'_>, start: usize, cx: &ServiceContext<'_>) -> Result<(), StatusCode> {
    let too_large = out.position().saturating_sub(start) > cx.max_response_size;
    if too_large {
        Err(StatusCode::BAD_RESPONSE_TOO_LARGE)
    } else {
        Ok(())
    }
}
