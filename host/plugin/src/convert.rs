//! Values and identifiers between the contract and the server, with namespace indexes translated.
//!
//! Owns strictness: what a guest sends is either exactly a value of the standard or refused with a status code. It must not know who sent it.

use backplane_types::{
    Array, ArrayValues, BinaryDecode, BinaryEncode, ByteString, DataValue, DateTime, DecodeLimits, Decoder, Encoder,
    ExpandedNodeId, ExtensionObject, Guid, Identifier, LocalizedText, NodeId, QualifiedName, StatusCode, UaString,
    Variant,
};

use crate::bindings::ua;

#[cfg(test)]
mod tests;

/// The plugin's own namespace table, beside the server's.
#[derive(Debug, Clone)]
pub(crate) struct Namespaces {
    /// The server's index for each local one; 0 is OPC UA in both.
    server: Vec<u16>,
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        Self { server: vec![0] }
    }

    /// The local index of a namespace that the server has, added when it is new. None: the table is full.
    pub(crate) fn local(&mut self, server: u16) -> Option<u16> {
        let known = self.server.iter().position(|index| *index == server);
        let index = known.unwrap_or_else(|| {
            self.server.push(server);
            self.server.len() - 1
        });
        u16::try_from(index).ok()
    }

    /// The server's index of a local one.
    ///
    /// # Errors
    /// `BadNodeIdInvalid` for an index that the plugin does not have.
    pub(crate) fn server(&self, local: u16) -> Result<u16, StatusCode> {
        self.server
            .get(usize::from(local))
            .copied()
            .ok_or(StatusCode::BAD_NODE_ID_INVALID)
    }

    /// How many there are, OPC UA among them.
    pub(crate) fn len(&self) -> usize {
        self.server.len()
    }
}

pub(crate) fn node_id(names: &Namespaces, id: ua::NodeId) -> Result<NodeId, StatusCode> {
    let namespace = names.server(id.namespace)?;
    let identifier = match id.identifier {
        ua::Identifier::Numeric(number) => Identifier::Numeric(number),
        ua::Identifier::Text(text) => Identifier::String(UaString::from(text)),
        ua::Identifier::Guid(bytes) => Identifier::Guid(guid(&bytes).ok_or(StatusCode::BAD_NODE_ID_INVALID)?),
        ua::Identifier::Opaque(bytes) => Identifier::Opaque(ByteString::from(bytes)),
    };
    Ok(NodeId { namespace, identifier })
}

fn guid(bytes: &[u8]) -> Option<Guid> {
    bytes.try_into().ok().map(Guid)
}

pub(crate) fn qualified_name(names: &Namespaces, name: ua::QualifiedName) -> Result<QualifiedName, StatusCode> {
    let namespace = names
        .server(name.namespace)
        .map_err(|_| StatusCode::BAD_BROWSE_NAME_INVALID)?;
    Ok(QualifiedName {
        namespace,
        name: UaString::from(name.name),
    })
}

/// A text of the guest; one without locale has none at all.
pub(crate) fn localized_text(text: ua::LocalizedText) -> LocalizedText {
    let locale = if text.locale.is_empty() {
        UaString::NULL
    } else {
        UaString::from(text.locale)
    };
    LocalizedText {
        locale,
        text: UaString::from(text.text),
    }
}

/// A time; 0 and what lies before 1601 mean "not set".
pub(crate) fn time(ticks: i64) -> Option<DateTime> {
    (ticks > 0).then_some(DateTime::from_ticks(ticks))
}

/// A value of the guest.
///
/// # Errors
/// `BadDecodingError` or `BadEncodingLimitsExceeded` for what is no value, `BadNodeIdInvalid` for an unknown namespace.
pub(crate) fn variant(names: &Namespaces, value: ua::Value) -> Result<Variant, StatusCode> {
    let one = |values| {
        Variant::Array(Box::new(Array {
            values,
            dimensions: Vec::new(),
        }))
    };
    Ok(match value {
        ua::Value::Empty => Variant::Empty,
        ua::Value::Boolean(v) => Variant::Boolean(v),
        ua::Value::Sbyte(v) => Variant::SByte(v),
        ua::Value::Byte(v) => Variant::Byte(v),
        ua::Value::Int16(v) => Variant::Int16(v),
        ua::Value::Uint16(v) => Variant::UInt16(v),
        ua::Value::Int32(v) => Variant::Int32(v),
        ua::Value::Uint32(v) => Variant::UInt32(v),
        ua::Value::Int64(v) => Variant::Int64(v),
        ua::Value::Uint64(v) => Variant::UInt64(v),
        ua::Value::Float(v) => Variant::Float(v),
        ua::Value::Double(v) => Variant::Double(v),
        ua::Value::Text(v) => Variant::String(UaString::from(v)),
        ua::Value::Time(v) => Variant::DateTime(DateTime::from_ticks(v.max(0))),
        ua::Value::Guid(v) => Variant::Guid(guid(&v).ok_or(StatusCode::BAD_DECODING_ERROR)?),
        ua::Value::Bytes(v) => Variant::ByteString(ByteString::from(v)),
        ua::Value::Node(v) => Variant::NodeId(Box::new(node_id(names, v)?)),
        ua::Value::Status(v) => Variant::StatusCode(StatusCode(v)),
        ua::Value::Qualified(v) => Variant::QualifiedName(Box::new(qualified_name(names, v)?)),
        ua::Value::Localized(v) => Variant::LocalizedText(Box::new(localized_text(v))),
        ua::Value::Booleans(v) => one(ArrayValues::Boolean(v)),
        ua::Value::Int32s(v) => one(ArrayValues::Int32(v)),
        ua::Value::Uint32s(v) => one(ArrayValues::UInt32(v)),
        ua::Value::Int64s(v) => one(ArrayValues::Int64(v)),
        ua::Value::Uint64s(v) => one(ArrayValues::UInt64(v)),
        ua::Value::Floats(v) => one(ArrayValues::Float(v)),
        ua::Value::Doubles(v) => one(ArrayValues::Double(v)),
        ua::Value::Texts(v) => one(ArrayValues::String(v.into_iter().map(UaString::from).collect())),
        ua::Value::Encoded(bytes) => {
            let mut value = decode::<Variant>(&bytes)?;
            translate(&mut value, &mut |local| names.server(local))?;
            value
        }
    })
}

/// Exactly one `T`, and nothing after it.
pub(crate) fn decode<T: BinaryDecode>(bytes: &[u8]) -> Result<T, StatusCode> {
    let mut decoder = Decoder::new(bytes, DecodeLimits::DEFAULT);
    let value = T::decode(&mut decoder).map_err(|error| error.status())?;
    if decoder.remaining() != 0 {
        return Err(StatusCode::BAD_DECODING_ERROR);
    }
    Ok(value)
}

pub(crate) fn encode<T: BinaryEncode>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Encoder::new(&mut bytes));
    bytes
}

/// A value with quality; without a source time it gets `now`.
pub(crate) fn data_value(names: &Namespaces, value: ua::DataValue, now: DateTime) -> Result<DataValue, StatusCode> {
    let status = StatusCode(value.status);
    Ok(DataValue {
        value: variant(names, value.value)?,
        status: (status != StatusCode::GOOD).then_some(status),
        source_timestamp: Some(time(value.source_time).unwrap_or(now)),
        server_timestamp: Some(now),
        ..DataValue::default()
    })
}

pub(crate) fn to_guest_node_id(names: &mut Namespaces, id: &NodeId) -> Result<ua::NodeId, StatusCode> {
    Ok(ua::NodeId {
        namespace: names.local(id.namespace).ok_or(StatusCode::BAD_OUT_OF_RANGE)?,
        identifier: match &id.identifier {
            Identifier::Numeric(number) => ua::Identifier::Numeric(*number),
            Identifier::String(text) => ua::Identifier::Text(text.text().to_owned()),
            Identifier::Guid(guid) => ua::Identifier::Guid(guid.0.to_vec()),
            Identifier::Opaque(bytes) => ua::Identifier::Opaque(bytes.bytes().to_vec()),
        },
    })
}

/// A value for the guest: in the case of its own where there is one, `encoded` otherwise.
///
/// # Errors
/// `BadOutOfRange` when the plugin's namespace table is full.
pub(crate) fn to_guest(names: &mut Namespaces, value: Variant) -> Result<ua::Value, StatusCode> {
    Ok(match value {
        Variant::Empty => ua::Value::Empty,
        Variant::Boolean(v) => ua::Value::Boolean(v),
        Variant::SByte(v) => ua::Value::Sbyte(v),
        Variant::Byte(v) => ua::Value::Byte(v),
        Variant::Int16(v) => ua::Value::Int16(v),
        Variant::UInt16(v) => ua::Value::Uint16(v),
        Variant::Int32(v) => ua::Value::Int32(v),
        Variant::UInt32(v) => ua::Value::Uint32(v),
        Variant::Int64(v) => ua::Value::Int64(v),
        Variant::UInt64(v) => ua::Value::Uint64(v),
        Variant::Float(v) => ua::Value::Float(v),
        Variant::Double(v) => ua::Value::Double(v),
        Variant::String(v) => ua::Value::Text(v.text().to_owned()),
        Variant::DateTime(v) => ua::Value::Time(v.ticks()),
        Variant::Guid(v) => ua::Value::Guid(v.0.to_vec()),
        Variant::ByteString(v) => ua::Value::Bytes(v.bytes().to_vec()),
        Variant::NodeId(v) => ua::Value::Node(to_guest_node_id(names, &v)?),
        Variant::StatusCode(v) => ua::Value::Status(v.0),
        Variant::QualifiedName(v) => ua::Value::Qualified(ua::QualifiedName {
            namespace: names.local(v.namespace).ok_or(StatusCode::BAD_OUT_OF_RANGE)?,
            name: v.name.text().to_owned(),
        }),
        Variant::LocalizedText(v) => ua::Value::Localized(ua::LocalizedText {
            locale: v.locale.text().to_owned(),
            text: v.text.text().to_owned(),
        }),
        Variant::Array(array) if array.dimensions.is_empty() => match array.values {
            ArrayValues::Boolean(v) => ua::Value::Booleans(v),
            ArrayValues::Int32(v) => ua::Value::Int32s(v),
            ArrayValues::UInt32(v) => ua::Value::Uint32s(v),
            ArrayValues::Int64(v) => ua::Value::Int64s(v),
            ArrayValues::UInt64(v) => ua::Value::Uint64s(v),
            ArrayValues::Float(v) => ua::Value::Floats(v),
            ArrayValues::Double(v) => ua::Value::Doubles(v),
            ArrayValues::String(v) => ua::Value::Texts(v.iter().map(|text| text.text().to_owned()).collect()),
            values => to_encoded(
                names,
                Variant::Array(Box::new(Array {
                    values,
                    dimensions: Vec::new(),
                })),
            )?,
        },
        value => to_encoded(names, value)?,
    })
}

fn to_encoded(names: &mut Namespaces, mut value: Variant) -> Result<ua::Value, StatusCode> {
    translate(&mut value, &mut |server| {
        names.local(server).ok_or(StatusCode::BAD_OUT_OF_RANGE)
    })?;
    Ok(ua::Value::Encoded(encode(&value)))
}

pub(crate) fn to_guest_data_value(names: &mut Namespaces, value: DataValue) -> Result<ua::DataValue, StatusCode> {
    Ok(ua::DataValue {
        value: to_guest(names, value.value)?,
        status: value.status.unwrap_or(StatusCode::GOOD).0,
        source_time: value.source_timestamp.map_or(0, |time| time.ticks()),
    })
}

/// Puts every namespace index in a value through `map`. Bodies of ExtensionObjects stay as they are: only their type knows what is in them. The
/// decoder has bounded the nesting.
fn translate(value: &mut Variant, map: &mut dyn FnMut(u16) -> Result<u16, StatusCode>) -> Result<(), StatusCode> {
    match value {
        Variant::NodeId(id) => id.namespace = map(id.namespace)?,
        Variant::ExpandedNodeId(id) => translate_expanded(id, map)?,
        Variant::QualifiedName(name) => name.namespace = map(name.namespace)?,
        Variant::ExtensionObject(object) => translate_object(object, map)?,
        Variant::DataValue(value) => translate(&mut value.value, map)?,
        Variant::Array(array) => match &mut array.values {
            ArrayValues::NodeId(ids) => ids
                .iter_mut()
                .try_for_each(|id| map(id.namespace).map(|index| id.namespace = index))?,
            ArrayValues::ExpandedNodeId(ids) => ids.iter_mut().try_for_each(|id| translate_expanded(id, map))?,
            ArrayValues::QualifiedName(names) => {
                names
                    .iter_mut()
                    .try_for_each(|name| map(name.namespace).map(|index| name.namespace = index))?;
            }
            ArrayValues::ExtensionObject(objects) => objects
                .iter_mut()
                .try_for_each(|object| translate_object(object, map))?,
            ArrayValues::DataValue(values) => values
                .iter_mut()
                .try_for_each(|value| translate(&mut value.value, map))?,
            ArrayValues::Variant(values) => values.iter_mut().try_for_each(|value| translate(value, map))?,
            _ => {}
        },
        _ => {}
    }
    Ok(())
}

/// An index counts only where the URI is not written out, and the node is on this server.
fn translate_expanded(
    id: &mut ExpandedNodeId,
    map: &mut dyn FnMut(u16) -> Result<u16, StatusCode>,
) -> Result<(), StatusCode> {
    if id.server_index == 0 && id.namespace_uri.text().is_empty() {
        id.node_id.namespace = map(id.node_id.namespace)?;
    }
    Ok(())
}

fn translate_object(
    object: &mut ExtensionObject,
    map: &mut dyn FnMut(u16) -> Result<u16, StatusCode>,
) -> Result<(), StatusCode> {
    object.type_id.namespace = map(object.type_id.namespace)?;
    Ok(())
}
