//! Requests that are read in place: their views and their decoders say the same.
//!
//! Input: as for `message`; other messages are passed over.

use std::fmt::Debug;

use backplane_types::service::RequestKind;
use backplane_types::view::{
    BrowseNextView, BrowseView, CallView, NodeIdsView, PublishView, ReadView, RequestPeek, TranslateView, WriteView,
};
use backplane_types::{
    BinaryDecode, BrowseNextRequest, BrowseRequest, ByteString, CallRequest, DecodeError, DecodeLimits, Decoder,
    PublishRequest, ReadRequest, RegisterNodesRequest, TranslateBrowsePathsToNodeIdsRequest, UnregisterNodesRequest,
    WriteRequest,
};

use crate::check::{TIGHT, same, within};
use crate::feedback::note;

/// View and decoder accept the same bodies, refuse the others with the same error, and read the same operations. Checking a body and walking
/// through its operations allocates nothing.
pub fn view(data: &[u8]) {
    for limits in [DecodeLimits::DEFAULT, TIGHT] {
        let Ok(peek) = RequestPeek::parse(data, limits) else {
            return;
        };
        if let Some(kind) = RequestKind::from_encoding_id(peek.type_id) {
            note(kind);
            compare(
                kind,
                &Request {
                    message: data,
                    peek: &peek,
                    limits,
                },
            );
        }
    }
}

fn compare(kind: RequestKind, request: &Request<'_>) {
    match kind {
        RequestKind::Read => read(request),
        RequestKind::Write => write(request),
        RequestKind::Call => call(request),
        RequestKind::Publish => publish(request),
        RequestKind::Browse => browse(request),
        RequestKind::BrowseNext => browse_next(request),
        RequestKind::TranslateBrowsePathsToNodeIds => translate(request),
        RequestKind::RegisterNodes => register(request),
        RequestKind::UnregisterNodes => unregister(request),
        _ => {}
    }
}

struct Request<'a> {
    message: &'a [u8],
    peek: &'a RequestPeek<'a>,
    limits: DecodeLimits,
}

impl<'a> Request<'a> {
    /// The request, decoded and in place, if both accept it.
    fn both<T: BinaryDecode + Debug, V>(
        &self,
        parse: impl FnOnce(&'a [u8], DecodeLimits) -> Result<V, DecodeError>,
    ) -> Option<(T, V)> {
        // The request header comes first in every request, and its decoder is compared elsewhere.
        let start = self.message.len() - self.peek.body.len();
        let view = within(0, || parse(self.peek.body, self.limits));
        let mut decoder = Decoder::new(self.message, self.limits);
        let decoded = decoder
            .get::<backplane_types::NodeId>()
            .and_then(|_| decoder.get::<T>());
        note((decoder.position(), view.as_ref().err().map(DecodeError::to_string)));
        match (decoded, view) {
            (Ok(decoded), Ok(view)) => {
                assert!(decoder.position() >= start);
                Some((decoded, view))
            }
            (Err(one), Err(other)) => {
                assert_eq!(one, other);
                None
            }
            (Ok(decoded), Err(error)) => panic!("refused only in place, {error}: {decoded:?}"),
            (Err(error), Ok(_)) => panic!("accepted only in place: {error}"),
        }
    }
}

/// Walks through two lists at once; they have the same length, and no element in place turns out bad.
fn pairs<T: Debug, V>(
    decoded: &[T],
    in_place: impl Iterator<Item = Result<V, DecodeError>>,
    mut compare: impl FnMut(&T, V),
) {
    let mut decoded = decoded.iter();
    for element in in_place {
        let element = element.unwrap_or_else(|error| panic!("checked and then refused: {error}"));
        let one = decoded.next().expect("more operations in place than decoded");
        compare(one, element);
    }
    assert!(decoded.next().is_none(), "fewer operations in place than decoded");
}

fn read(request: &Request<'_>) {
    let Some((owned, view)) = request.both::<ReadRequest, _>(ReadView::parse) else {
        return;
    };
    assert_eq!(owned.max_age.to_bits(), view.max_age.to_bits());
    assert_eq!(owned.timestamps_to_return, view.timestamps_to_return);
    assert_eq!(owned.nodes_to_read.len(), view.nodes_to_read.len());
    pairs(&owned.nodes_to_read, view.operations(), |one, other| {
        assert!(other.node_id == one.node_id);
        assert_eq!(other.attribute_id.0, one.attribute_id);
        assert_eq!(other.index_range.to_owned(), one.index_range);
        assert_eq!(other.data_encoding.to_owned(), one.data_encoding);
    });
    within(0, || assert_eq!(view.operations().count(), view.nodes_to_read.len()));
}

fn write(request: &Request<'_>) {
    let Some((owned, view)) = request.both::<WriteRequest, _>(WriteView::parse) else {
        return;
    };
    pairs(&owned.nodes_to_write, view.operations(), |one, other| {
        assert!(other.node_id == one.node_id);
        assert_eq!(other.attribute_id.0, one.attribute_id);
        assert_eq!(other.index_range.to_owned(), one.index_range);
        let value = other
            .value
            .to_owned()
            .unwrap_or_else(|error| panic!("{error}: {one:?}"));
        assert!(same(&value, &one.value), "{one:?} is in place {value:?}");
    });
    within(0, || assert_eq!(view.operations().count(), view.nodes_to_write.len()));
}

fn call(request: &Request<'_>) {
    let Some((owned, view)) = request.both::<CallRequest, _>(CallView::parse) else {
        return;
    };
    pairs(&owned.methods_to_call, view.operations(), |one, other| {
        assert!(other.object_id == one.object_id && other.method_id == one.method_id);
        assert_eq!(other.input_arguments.len(), one.input_arguments.len());
        pairs(&one.input_arguments, other.input_arguments.iter(), |one, other| {
            let value = other.decode().unwrap_or_else(|error| panic!("{error}: {one:?}"));
            assert!(same(&value, one), "{one:?} is in place {value:?}");
        });
    });
}

fn publish(request: &Request<'_>) {
    let Some((owned, view)) = request.both::<PublishRequest, _>(PublishView::parse) else {
        return;
    };
    pairs(&owned.subscription_acknowledgements, view.operations(), |one, other| {
        assert_eq!(*one, other)
    });
}

fn browse(request: &Request<'_>) {
    let Some((owned, view)) = request.both::<BrowseRequest, _>(BrowseView::parse) else {
        return;
    };
    assert!(view.view_id == owned.view.view_id);
    assert_eq!(view.view_timestamp, owned.view.timestamp);
    assert_eq!(view.view_version, owned.view.view_version);
    assert_eq!(
        view.requested_max_references_per_node,
        owned.requested_max_references_per_node
    );
    pairs(&owned.nodes_to_browse, view.operations(), |one, other| {
        assert!(other.node_id == one.node_id && other.reference_type_id == one.reference_type_id);
        assert_eq!(other.browse_direction, one.browse_direction);
        assert_eq!(other.include_subtypes, one.include_subtypes);
        assert_eq!(other.node_class_mask, one.node_class_mask);
        assert_eq!(other.result_mask, one.result_mask);
    });
}

fn browse_next(request: &Request<'_>) {
    let Some((owned, view)) = request.both::<BrowseNextRequest, _>(BrowseNextView::parse) else {
        return;
    };
    assert_eq!(owned.release_continuation_points, view.release_continuation_points);
    pairs(
        &owned.continuation_points,
        view.continuation_points.iter(),
        |one, other| {
            assert_eq!(*one, ByteString::from(other));
        },
    );
}

fn translate(request: &Request<'_>) {
    let Some((owned, view)) = request.both::<TranslateBrowsePathsToNodeIdsRequest, _>(TranslateView::parse) else {
        return;
    };
    pairs(&owned.browse_paths, view.operations(), |one, other| {
        assert!(other.starting_node == one.starting_node);
        pairs(&one.relative_path.elements, other.elements.iter(), |one, other| {
            assert!(other.reference_type_id == one.reference_type_id);
            assert_eq!(other.is_inverse, one.is_inverse);
            assert_eq!(other.include_subtypes, one.include_subtypes);
            assert_eq!(other.target_name.to_owned(), one.target_name);
        });
    });
}

fn register(request: &Request<'_>) {
    if let Some((owned, view)) = request.both::<RegisterNodesRequest, _>(NodeIdsView::parse) {
        pairs(&owned.nodes_to_register, view.nodes.iter(), |one, other| {
            assert!(other == *one)
        });
    }
}

fn unregister(request: &Request<'_>) {
    if let Some((owned, view)) = request.both::<UnregisterNodesRequest, _>(NodeIdsView::parse) {
        pairs(&owned.nodes_to_unregister, view.nodes.iter(), |one, other| {
            assert!(other == *one)
        });
    }
}
