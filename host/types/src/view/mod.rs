//! Views: requests that are read where they lie, without allocating.
//!
//! A view checks a whole body once, against the same rules and limits as the decoders (truncation, UTF-8, lengths, nesting), and then iterates
//! over its operations as often as needed. This module owns borrowed forms of values and requests. It must not know what a service does.
//!
//! Bytes after the last field of a request are ignored.

mod list;
mod requests;
mod skip;
mod values;

pub use list::{DecodeRef, ListView, ListViewIter};
pub use requests::{
    BrowseDescriptionRef, BrowseNextView, BrowsePathRef, BrowseView, CallMethodRequestRef, CallView, NodeIdsView,
    PublishView, ReadValueIdBytes, ReadValueIdRef, ReadView, RelativePathElementRef, RequestHeaderRef, RequestPeek,
    TranslateView, WriteValueBytes, WriteValueRef, WriteView,
};
pub use values::{DataValueRef, ExtensionObjectRef, QualifiedNameRef, StrRef, VariantRef};

pub use crate::builtin::{IdentifierRef, NodeIdBytes, NodeIdRef};
