//! Structures that travel in ExtensionObjects: filters, operands, tokens, notifications, history, attributes, definitions.
//!
//! Input: an ExtensionObject.

use backplane_types::view::{DecodeRef, ExtensionObjectRef};
use backplane_types::{BinaryDecode, Decimal, DecodeLimits, Decoder, ExtensionObject, Structure, structures};

use crate::check::{TIGHT, bounded, round_trip, same};
use crate::feedback::note;

/// A body decodes as the type that its id names, and as no other; what is accepted survives encoding, alone and in an ExtensionObject.
pub fn extension(data: &[u8]) {
    for limits in [DecodeLimits::DEFAULT, TIGHT] {
        let mut decoder = Decoder::new(data, limits);
        let Ok(object) = ExtensionObject::decode(&mut decoder) else {
            assert!(ExtensionObjectRef::decode_ref(&mut Decoder::new(data, limits)).is_err());
            return;
        };
        note(object.type_id.as_standard());
        if let Ok(decimal) = Decimal::from_extension_object(&object) {
            let again = Decimal::from_extension_object(&decimal.to_extension_object());
            assert_eq!(again, Ok(decimal.clone()));
            if let Some(number) = decimal.unscaled() {
                assert_eq!(Decimal::new(number, decimal.scale).unscaled(), Some(number));
            }
        }
        dispatch(&object, limits);
    }
}

fn decode<T: Structure + PartialEq + std::fmt::Debug>(object: &ExtensionObject, limits: DecodeLimits) {
    let bytes = object.binary().unwrap_or(&[]);
    let decoded = bounded(bytes.len(), || object.decode_with::<T>(limits, 0));
    let mut decoder = Decoder::at_depth(bytes, limits, 1);
    let alone = round_trip::<T>(&mut decoder);
    let whole = decoder.is_empty() && object.is::<T>();
    match (decoded, alone) {
        (Ok(decoded), Ok(alone)) => {
            assert!(whole && same(&decoded, &alone));
            let again = ExtensionObject::from_structure(&decoded).decode_with::<T>(limits, 0);
            assert!(again.is_ok_and(|again| same(&decoded, &again)), "{decoded:?}");
        }
        (Err(_), Ok(_)) => assert!(!whole),
        (Err(_), Err(_)) => {}
        (Ok(decoded), Err(error)) => panic!("{error}, but {decoded:?}"),
    }
    assert!(object.decode_with::<T>(limits, limits.max_depth).is_err());
}

macro_rules! dispatch {
    ($($name:ident)*) => {
        fn dispatch(object: &ExtensionObject, limits: DecodeLimits) {
            $(
                if object.type_id.as_standard() == Some(structures::$name::ENCODING_ID) {
                    decode::<structures::$name>(object, limits);
                } else {
                    assert!(object.decode_with::<structures::$name>(limits, 0).is_err());
                }
            )*
        }

        /// The bodies of default values, with their encoding ids.
        pub(crate) fn defaults() -> Vec<(&'static str, ExtensionObject)> {
            vec![$((stringify!($name), ExtensionObject::from_structure(&structures::$name::default())),)*]
        }
    };
}

dispatch! {
    AnonymousIdentityToken UserNameIdentityToken X509IdentityToken IssuedIdentityToken
    DataChangeFilter EventFilter EventFilterResult AggregateFilter AggregateFilterResult
    ElementOperand LiteralOperand AttributeOperand SimpleAttributeOperand ContentFilter
    DataChangeNotification EventNotificationList StatusChangeNotification
    ReadEventDetails ReadRawModifiedDetails ReadProcessedDetails ReadAtTimeDetails ReadAnnotationDataDetails
    HistoryData HistoryModifiedData HistoryEvent
    UpdateDataDetails UpdateStructureDataDetails UpdateEventDetails DeleteRawModifiedDetails DeleteAtTimeDetails
    DeleteEventDetails
    ObjectAttributes VariableAttributes MethodAttributes ObjectTypeAttributes VariableTypeAttributes
    ReferenceTypeAttributes DataTypeAttributes ViewAttributes GenericAttributes
    MdnsDiscoveryConfiguration AdditionalParametersType EphemeralKeyType TraceContextDataType
    StructureDefinition EnumDefinition Argument EUInformation Range EnumValueType RolePermissionType
    ServerStatusDataType SessionDiagnosticsDataType LogRecord DataSetMetaDataType PubSubConfigurationDataType
    UABinaryFileDataType AxisInformation XVType ModelChangeStructureDataType SemanticChangeStructureDataType
}
