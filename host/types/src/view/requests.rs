//! Borrowed forms of the requests of the fast path (Part 4, 5.9 to 5.14), field by field in the order of the wire.

use crate::builtin::{BuiltInType, DateTime, FOUR_BYTE, NodeIdBytes, NodeIdRef};
use crate::codec::{BinaryDecode, DecodeError, DecodeLimits, Decoder};
use crate::{AttributeId, BrowseDirection, RequestHeader, SubscriptionAcknowledgement, TimestampsToReturn};

use super::list::{DecodeRef, ListView, ListViewIter};
use super::skip;
use super::values::{DataValueRef, ExtensionObjectRef, QualifiedNameRef, StrRef, VariantRef};

/// Declares a structure that is read field by field.
macro_rules! borrowed {
    ($(#[$meta:meta])* $name:ident min $min:literal { $($(#[$field_meta:meta])* $field:ident: $type:ty = $read:expr,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name<'a> {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl<'a> DecodeRef<'a> for $name<'a> {
            const MIN_SIZE: usize = $min;

            #[inline]
            fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                $(let $field: $type = { let read: fn(&mut Decoder<'a>) -> Result<$type, DecodeError> = $read; read(d)? };)*
                Ok(Self { $($field,)* })
            }
        }
    };
}

/// Declares a request: [`borrowed`] with a constructor that checks a whole body.
macro_rules! request {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty = $read:expr,)* }) => {
        borrowed! { $(#[$meta])* $name min 4 { $($(#[$field_meta])* $field: $type = $read,)* } }

        impl<'a> $name<'a> {
            /// Checks a body (what follows the request header, see [`RequestPeek::body`]).
            ///
            /// # Errors
            /// [`DecodeError`]: truncated, malformed, or above a limit.
            pub fn parse(body: &'a [u8], limits: DecodeLimits) -> Result<Self, DecodeError> {
                Self::decode_ref(&mut Decoder::new(body, limits))
            }
        }
    };
}

borrowed! {
    /// The request header (Part 4, 7.32).
    RequestHeaderRef min 29 {
        /// The secret name of the session; null for services without a session.
        authentication_token: NodeIdRef<'a> = NodeIdRef::decode,
        /// When the client sent the request, by its own clock.
        timestamp: DateTime = DateTime::decode,
        /// Returned in the response header.
        request_handle: u32 = Decoder::u32,
        /// Which diagnostics to return.
        return_diagnostics: u32 = Decoder::u32,
        /// Name of the action in the client's audit log.
        audit_entry_id: StrRef<'a> = StrRef::decode_ref,
        /// ms until the client gives up; 0 is never.
        timeout_hint: u32 = Decoder::u32,
        /// Reserved by the standard.
        additional_header: ExtensionObjectRef<'a> = ExtensionObjectRef::decode_ref,
    }
}

impl RequestHeaderRef<'_> {
    /// A copy that owns everything.
    #[must_use]
    pub fn to_owned(&self) -> RequestHeader {
        RequestHeader {
            authentication_token: self.authentication_token.to_owned(),
            timestamp: self.timestamp,
            request_handle: self.request_handle,
            return_diagnostics: self.return_diagnostics,
            audit_entry_id: self.audit_entry_id.to_owned(),
            timeout_hint: self.timeout_hint,
            additional_header: self.additional_header.to_owned(),
        }
    }
}

/// A request of which only type and header were read.
#[derive(Debug, Clone)]
pub struct RequestPeek<'a> {
    /// Id of the binary encoding of the request; 0 if it is not a number in namespace 0 (no service has that).
    pub type_id: u32,
    /// The header.
    pub header: RequestHeaderRef<'a>,
    /// What follows the header.
    pub body: &'a [u8],
}

impl<'a> RequestPeek<'a> {
    /// Reads type id and header of a message.
    ///
    /// # Errors
    /// [`DecodeError`] if they are truncated, malformed or above a limit.
    pub fn parse(message: &'a [u8], limits: DecodeLimits) -> Result<Self, DecodeError> {
        let mut d = Decoder::new(message, limits);
        // All requests have numbers that take this form (Part 6, 5.2.2.9).
        let type_id = match d.rest() {
            [FOUR_BYTE, 0, low, high, ..] => {
                d.raw(4)?;
                u32::from(u16::from_le_bytes([*low, *high]))
            }
            _ => NodeIdRef::decode(&mut d)?.as_standard().unwrap_or(0),
        };
        let header = RequestHeaderRef::decode_ref(&mut d)?;
        Ok(Self {
            type_id,
            header,
            body: d.rest(),
        })
    }
}

borrowed! {
    /// One attribute to read (Part 4, 7.29).
    ReadValueIdRef min 16 {
        /// The node.
        node_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// The attribute.
        attribute_id: AttributeId = AttributeId::decode,
        /// A [`NumericRange`](crate::NumericRange), or null or empty.
        index_range: StrRef<'a> = StrRef::decode_ref,
        /// The encoding wanted for structures.
        data_encoding: QualifiedNameRef<'a> = QualifiedNameRef::decode_ref,
    }
}

/// The attribute Value, a null index range and a null data encoding: how nearly all operations end.
const WHOLE_VALUE: [u8; 14] = [13, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff];

/// One attribute to read, as [`ReadValueIdRef`], with the text of the NodeId unchecked: the form in which a server looks nodes up.
#[derive(Debug, Clone, Copy)]
pub struct ReadValueIdBytes<'a> {
    /// The node. When there is none such, [`NodeIdBytes::check`] tells whether the message is to blame.
    pub node_id: NodeIdBytes<'a>,
    /// The attribute.
    pub attribute_id: AttributeId,
    /// A [`NumericRange`](crate::NumericRange), or null or empty.
    pub index_range: StrRef<'a>,
    /// The encoding wanted for structures.
    pub data_encoding: QualifiedNameRef<'a>,
}

impl<'a> ReadValueIdBytes<'a> {
    /// The operation that reads the whole Value of a node.
    #[inline]
    #[must_use]
    pub fn whole_value(node_id: NodeIdBytes<'a>) -> Self {
        Self {
            node_id,
            attribute_id: AttributeId::VALUE,
            index_range: StrRef(None),
            data_encoding: QualifiedNameRef::default(),
        }
    }

    /// Takes the usual operation, [whole Value](Self::whole_value) by string id, if that is what comes next; otherwise nothing is taken, and
    /// [`decode_ref`](DecodeRef::decode_ref) tells what it is.
    #[inline]
    pub fn usual(d: &mut Decoder<'a>) -> Option<NodeIdBytes<'a>> {
        let before = d.rest();
        match NodeIdBytes::decode_string(d) {
            Some(id) if d.skip_if(&WHOLE_VALUE) => Some(id),
            _ => {
                d.back_to(before);
                None
            }
        }
    }
}

impl<'a> DecodeRef<'a> for ReadValueIdBytes<'a> {
    const MIN_SIZE: usize = ReadValueIdRef::MIN_SIZE;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let node_id = NodeIdBytes::decode(d)?;
        let attribute_id = AttributeId::decode(d)?;
        Ok(Self {
            node_id,
            attribute_id,
            index_range: StrRef::decode_ref(d)?,
            data_encoding: QualifiedNameRef::decode_ref(d)?,
        })
    }
}

request! {
    /// Read (Part 4, 5.11.2).
    ReadView {
        /// How old a value may be, in ms; 0 asks for a new one. May be negative or NaN as sent.
        max_age: f64 = Decoder::f64,
        /// Which timestamps to return; a value that is not known is `BadTimestampsToReturnInvalid`.
        timestamps_to_return: TimestampsToReturn = TimestampsToReturn::decode,
        /// What to read.
        nodes_to_read: ListView<'a, ReadValueIdRef<'a>> = ListView::decode_ref,
    }
}

impl<'a> ReadView<'a> {
    /// What to read.
    #[inline]
    #[must_use]
    pub fn operations(&self) -> ListViewIter<'a, ReadValueIdRef<'a>> {
        self.nodes_to_read.iter()
    }
}

borrowed! {
    /// One attribute to write (Part 4, 5.11.4).
    WriteValueRef min 11 {
        /// The node.
        node_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// The attribute.
        attribute_id: AttributeId = AttributeId::decode,
        /// A [`NumericRange`](crate::NumericRange), or null or empty.
        index_range: StrRef<'a> = StrRef::decode_ref,
        /// The value, decoded on demand.
        value: DataValueRef<'a> = DataValueRef::decode_ref,
    }
}

/// One attribute to write, as [`WriteValueRef`], with the text of the NodeId unchecked: the form in which a server looks nodes up.
#[derive(Debug, Clone)]
pub struct WriteValueBytes<'a> {
    /// The node.
    pub node_id: NodeIdBytes<'a>,
    /// The attribute.
    pub attribute_id: AttributeId,
    /// A [`NumericRange`](crate::NumericRange), or null or empty.
    pub index_range: StrRef<'a>,
    /// The value, decoded on demand.
    pub value: DataValueRef<'a>,
}

/// The attribute Value, a null index range, and a DataValue that is a Value alone.
const PLAIN_VALUE: [u8; 9] = [13, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1];

impl<'a> WriteValueBytes<'a> {
    /// Takes the usual operation, a number or Boolean as the whole Value of a node with a string id, without status and times, if that is what comes
    /// next; the value in the form of [`Variant::to_bits`](crate::Variant::to_bits). Otherwise nothing is taken, and
    /// [`decode_ref`](DecodeRef::decode_ref) tells what it is.
    #[inline]
    pub fn usual(d: &mut Decoder<'a>) -> Option<(NodeIdBytes<'a>, BuiltInType, u64)> {
        let before = d.rest();
        let taken = Self::take_usual(d);
        if taken.is_none() {
            d.back_to(before);
        }
        taken
    }

    #[inline]
    fn take_usual(d: &mut Decoder<'a>) -> Option<(NodeIdBytes<'a>, BuiltInType, u64)> {
        let id = NodeIdBytes::decode_string(d)?;
        if !d.skip_if(&PLAIN_VALUE) {
            return None;
        }
        let kind = BuiltInType::from_id(d.u8().ok()?).filter(|kind| *kind <= BuiltInType::Double)?;
        let bits = match kind.fixed_size()? {
            1 => d.u8().ok()?.into(),
            2 => d.u16().ok()?.into(),
            4 => d.u32().ok()?.into(),
            _ => d.u64().ok()?,
        };
        // Every byte but 0 is true (Part 6, 5.2.2.1).
        let bits = if kind == BuiltInType::Boolean {
            u64::from(bits != 0)
        } else {
            bits
        };
        Some((id, kind, bits))
    }

    /// Passes over an operation and answers its node and attribute. All of it is checked, the text of the NodeId too.
    ///
    /// # Errors
    /// Those of decoding.
    #[inline]
    pub fn check(d: &mut Decoder<'a>) -> Result<(NodeIdBytes<'a>, AttributeId), DecodeError> {
        let node_id = NodeIdBytes::decode(d)?;
        node_id.check()?;
        let attribute_id = AttributeId::decode(d)?;
        d.string()?;
        skip::data_value(d)?;
        Ok((node_id, attribute_id))
    }
}

impl<'a> DecodeRef<'a> for WriteValueBytes<'a> {
    const MIN_SIZE: usize = WriteValueRef::MIN_SIZE;

    #[inline]
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            node_id: NodeIdBytes::decode(d)?,
            attribute_id: AttributeId::decode(d)?,
            index_range: StrRef::decode_ref(d)?,
            value: DataValueRef::decode_ref(d)?,
        })
    }
}

request! {
    /// Write (Part 4, 5.11.4).
    WriteView {
        /// What to write.
        nodes_to_write: ListView<'a, WriteValueRef<'a>> = ListView::decode_ref,
    }
}

impl<'a> WriteView<'a> {
    /// What to write.
    #[inline]
    #[must_use]
    pub fn operations(&self) -> ListViewIter<'a, WriteValueRef<'a>> {
        self.nodes_to_write.iter()
    }
}

borrowed! {
    /// One method to call (Part 4, 5.12.2).
    CallMethodRequestRef min 8 {
        /// The object or type the method belongs to.
        object_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// The method.
        method_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// The arguments, decoded on demand.
        input_arguments: ListView<'a, VariantRef<'a>> = ListView::decode_ref,
    }
}

request! {
    /// Call (Part 4, 5.12.2).
    CallView {
        /// The methods to call.
        methods_to_call: ListView<'a, CallMethodRequestRef<'a>> = ListView::decode_ref,
    }
}

impl<'a> CallView<'a> {
    /// The methods to call.
    #[must_use]
    pub fn operations(&self) -> ListViewIter<'a, CallMethodRequestRef<'a>> {
        self.methods_to_call.iter()
    }
}

impl DecodeRef<'_> for SubscriptionAcknowledgement {
    const MIN_SIZE: usize = 8;

    #[inline]
    fn decode_ref(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode(d)
    }
}

request! {
    /// Publish (Part 4, 5.14.5).
    PublishView {
        /// The messages that the client received.
        acknowledgements: ListView<'a, SubscriptionAcknowledgement> = ListView::decode_ref,
    }
}

impl<'a> PublishView<'a> {
    /// The messages that the client received.
    #[must_use]
    pub fn operations(&self) -> ListViewIter<'a, SubscriptionAcknowledgement> {
        self.acknowledgements.iter()
    }
}

borrowed! {
    /// One node to browse (Part 4, 5.9.2).
    BrowseDescriptionRef min 17 {
        /// The node.
        node_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// The direction; a value that is not known is `BadBrowseDirectionInvalid`.
        browse_direction: BrowseDirection = BrowseDirection::decode,
        /// The type of the references to follow; null is all.
        reference_type_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// Whether subtypes of it are followed too.
        include_subtypes: bool = Decoder::bool,
        /// The classes of nodes to return; 0 is all.
        node_class_mask: u32 = Decoder::u32,
        /// The fields to return.
        result_mask: u32 = Decoder::u32,
    }
}

request! {
    /// Browse (Part 4, 5.9.2).
    BrowseView {
        /// The view; null is the whole address space.
        view_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// The time of the view; to be ignored without a view.
        view_timestamp: DateTime = DateTime::decode,
        /// The version of the view; to be ignored without a view.
        view_version: u32 = Decoder::u32,
        /// Most references for each node; 0 leaves it to the server.
        requested_max_references_per_node: u32 = Decoder::u32,
        /// The nodes to browse.
        nodes_to_browse: ListView<'a, BrowseDescriptionRef<'a>> = ListView::decode_ref,
    }
}

impl<'a> BrowseView<'a> {
    /// The nodes to browse.
    #[must_use]
    pub fn operations(&self) -> ListViewIter<'a, BrowseDescriptionRef<'a>> {
        self.nodes_to_browse.iter()
    }
}

request! {
    /// BrowseNext (Part 4, 5.9.3).
    BrowseNextView {
        /// Whether to free the continuation points instead of using them.
        release_continuation_points: bool = Decoder::bool,
        /// The continuation points; `None` is a null one.
        continuation_points: ListView<'a, Option<&'a [u8]>> = ListView::decode_ref,
    }
}

borrowed! {
    /// One step of a path (Part 4, 7.31).
    RelativePathElementRef min 10 {
        /// The type of the reference to follow; null is any.
        reference_type_id: NodeIdRef<'a> = NodeIdRef::decode,
        /// Whether to follow it backwards.
        is_inverse: bool = Decoder::bool,
        /// Whether subtypes of it are followed too.
        include_subtypes: bool = Decoder::bool,
        /// The name to look for.
        target_name: QualifiedNameRef<'a> = QualifiedNameRef::decode_ref,
    }
}

borrowed! {
    /// One path to resolve (Part 4, 5.9.4).
    BrowsePathRef min 6 {
        /// Where it starts.
        starting_node: NodeIdRef<'a> = NodeIdRef::decode,
        /// Its steps.
        elements: ListView<'a, RelativePathElementRef<'a>> = ListView::decode_ref,
    }
}

request! {
    /// TranslateBrowsePathsToNodeIds (Part 4, 5.9.4).
    TranslateView {
        /// The paths to resolve.
        browse_paths: ListView<'a, BrowsePathRef<'a>> = ListView::decode_ref,
    }
}

impl<'a> TranslateView<'a> {
    /// The paths to resolve.
    #[must_use]
    pub fn operations(&self) -> ListViewIter<'a, BrowsePathRef<'a>> {
        self.browse_paths.iter()
    }
}

request! {
    /// RegisterNodes and UnregisterNodes (Part 4, 5.9.5 and 5.9.6).
    NodeIdsView {
        /// The nodes.
        nodes: ListView<'a, NodeIdRef<'a>> = ListView::decode_ref,
    }
}
