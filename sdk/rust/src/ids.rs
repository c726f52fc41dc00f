//! Numbers of namespace 0 that plugin authors name most often. Owns numbers only; [`crate::NodeId::standard`] takes any other.

macro_rules! ids {
    ($($name:ident = $number:literal, $what:literal;)*) => {
        $(#[doc = concat!($what, ".")] pub const $name: u32 = $number;)*
    };
}

ids! {
    OBJECTS_FOLDER = 85, "Objects";
    TYPES_FOLDER = 86, "Types";
    SERVER = 2253, "Server";

    REFERENCES = 31, "References";
    HAS_EVENT_SOURCE = 36, "HasEventSource";
    ORGANIZES = 35, "Organizes";
    HAS_TYPE_DEFINITION = 40, "HasTypeDefinition";
    GENERATES_EVENT = 41, "GeneratesEvent";
    HAS_SUBTYPE = 45, "HasSubtype";
    HAS_PROPERTY = 46, "HasProperty";
    HAS_COMPONENT = 47, "HasComponent";
    HAS_NOTIFIER = 48, "HasNotifier";
    HAS_MODELLING_RULE = 37, "HasModellingRule";

    BASE_OBJECT_TYPE = 58, "BaseObjectType";
    FOLDER_TYPE = 61, "FolderType";
    BASE_VARIABLE_TYPE = 62, "BaseVariableType";
    BASE_DATA_VARIABLE_TYPE = 63, "BaseDataVariableType";
    PROPERTY_TYPE = 68, "PropertyType";
    BASE_EVENT_TYPE = 2041, "BaseEventType";
    DEVICE_FAILURE_EVENT_TYPE = 2131, "DeviceFailureEventType";
    ANALOG_ITEM_TYPE = 2368, "AnalogItemType";

    BOOLEAN = 1, "Boolean";
    SBYTE = 2, "SByte";
    BYTE = 3, "Byte";
    INT16 = 4, "Int16";
    UINT16 = 5, "UInt16";
    INT32 = 6, "Int32";
    UINT32 = 7, "UInt32";
    INT64 = 8, "Int64";
    UINT64 = 9, "UInt64";
    FLOAT = 10, "Float";
    DOUBLE = 11, "Double";
    STRING = 12, "String";
    DATE_TIME = 13, "DateTime";
    GUID = 14, "Guid";
    BYTE_STRING = 15, "ByteString";
    XML_ELEMENT = 16, "XmlElement";
    NODE_ID = 17, "NodeId";
    EXPANDED_NODE_ID = 18, "ExpandedNodeId";
    STATUS_CODE = 19, "StatusCode";
    QUALIFIED_NAME = 20, "QualifiedName";
    LOCALIZED_TEXT = 21, "LocalizedText";
    STRUCTURE = 22, "Structure";
    BASE_DATA_TYPE = 24, "BaseDataType";
    NUMBER = 26, "Number";
    ENUMERATION = 29, "Enumeration";
    UTC_TIME = 294, "UtcTime";
    DURATION = 290, "Duration";
}

/// Attributes that `Change::attribute` sets (Part 6, A.1).
pub mod attribute {
    ids! {
        DISPLAY_NAME = 4, "LocalizedText";
        DESCRIPTION = 5, "LocalizedText";
        WRITE_MASK = 6, "UInt32";
        IS_ABSTRACT = 8, "Boolean";
        EVENT_NOTIFIER = 12, "Byte";
        VALUE_RANK = 15, "Int32";
        ARRAY_DIMENSIONS = 16, "UInt32 array";
        MINIMUM_SAMPLING_INTERVAL = 19, "Double, ms";
        HISTORIZING = 20, "Boolean";
        ROLE_PERMISSIONS = 24, "RolePermissionType array";
        ACCESS_RESTRICTIONS = 26, "UInt16";
    }
}

/// Bits of the access level of a variable (AccessLevelExType, Part 3, 8.57).
pub mod access {
    ids! {
        CURRENT_READ = 1, "Bit 0";
        CURRENT_WRITE = 2, "Bit 1";
        HISTORY_READ = 4, "Bit 2";
        HISTORY_WRITE = 8, "Bit 3";
        SEMANTIC_CHANGE = 16, "Bit 4";
        STATUS_WRITE = 32, "Bit 5";
        TIMESTAMP_WRITE = 64, "Bit 6";
    }
}
