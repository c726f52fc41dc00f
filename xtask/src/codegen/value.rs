//! Values in a nodeset (uax types, Part 6, 5.3) turned into encoded Variants.
//!
//! Structures inside are encoded by their definitions, so no data type is special here. Descriptive texts are left out:
//! fields named Description are null, except where they are a name themselves (the unit in an EUInformation).

use super::data_types::{DataTypes, Kind};
use super::encode::Writer;
use super::error::CodegenError;
use super::nodeset::Field;
use super::xml::Element;

/// Structures whose Description is data.
const DESCRIBED: &[&str] = &["EUInformation"];

/// Encodes a value as a Variant. `None` for a ByteString: in namespace 0 those hold schema documents, which the table does
/// not repeat.
pub(crate) fn variant(types: &DataTypes<'_>, value: &Element) -> Result<Option<Vec<u8>>, CodegenError> {
    let (name, is_array) = match value.name.strip_prefix("ListOf") {
        Some(name) => (name, true),
        None => (value.name.as_str(), false),
    };
    let kind = built_in_number(name).ok_or_else(|| CodegenError::schema(name, "unexpected type of a value"))?;
    if name == "ByteString" {
        return Ok(None);
    }
    let mut writer = Writer::default();
    writer.u8(kind | if is_array { 0x80 } else { 0 });
    if is_array {
        writer.length(value.children.len());
        for child in &value.children {
            built_in(types, kind, Some(child), &mut writer)?;
        }
    } else {
        built_in(types, kind, Some(value), &mut writer)?;
    }
    Ok(Some(writer.finish()))
}

fn built_in_number(name: &str) -> Option<u8> {
    Some(match name {
        "Boolean" => 1,
        "Int32" => 6,
        "UInt32" => 7,
        "Int64" => 8,
        "Double" => 11,
        "String" => 12,
        "DateTime" => 13,
        "ByteString" => 15,
        "NodeId" => 17,
        "LocalizedText" => 21,
        "ExtensionObject" => 22,
        _ => return None,
    })
}

fn parse<T: std::str::FromStr + Default>(element: Option<&Element>) -> Result<T, CodegenError> {
    match element.map(Element::text).filter(|text| !text.is_empty()) {
        Some(text) => text
            .parse()
            .map_err(|_| CodegenError::schema(text, "not a valid number")),
        None => Ok(T::default()),
    }
}

/// Encodes a value of a built-in type; an absent element is the type's null or zero.
fn built_in(
    types: &DataTypes<'_>,
    kind: u8,
    element: Option<&Element>,
    writer: &mut Writer,
) -> Result<(), CodegenError> {
    match kind {
        1 => writer.bool(parse(element)?),
        6 => writer.i32(parse(element)?),
        7 => writer.u32(parse(element)?),
        8 => writer.i64(parse(element)?),
        11 => writer.raw(&parse::<f64>(element)?.to_le_bytes()),
        12 => match element {
            Some(element) => writer.string(element.text()),
            None => writer.null(),
        },
        13 => writer.i64(element.map_or(Ok(0), |element| ticks(element.text()))?),
        17 => writer.node_id(
            element
                .and_then(|id| id.child("Identifier"))
                .map_or(Ok(0), identifier)?,
        ),
        21 => {
            let part = |name| element.and_then(|text| text.child(name)).map(Element::text);
            writer.localized_text(part("Locale").filter(|locale| !locale.is_empty()), part("Text"));
        }
        22 => match element {
            Some(element) => extension_object(types, element, writer)?,
            None => writer.raw(&[0, 0, 0]),
        },
        _ => return Err(CodegenError::schema(kind, "built-in type is not supported in a value")),
    }
    Ok(())
}

fn identifier(element: &Element) -> Result<u32, CodegenError> {
    let digits = element.text().strip_prefix("i=").and_then(|digits| digits.parse().ok());
    digits.ok_or_else(|| CodegenError::schema(element.text(), "not a numeric NodeId"))
}

fn extension_object(types: &DataTypes<'_>, element: &Element, writer: &mut Writer) -> Result<(), CodegenError> {
    let encoding = element
        .child("TypeId")
        .and_then(|id| id.child("Identifier"))
        .map_or(Ok(0), identifier)?;
    let unknown = || CodegenError::schema(encoding, "ExtensionObject of unknown type");
    let data_type = types.of_xml_encoding(encoding).ok_or_else(unknown)?;
    let binary = types.encodings(data_type).binary.ok_or_else(unknown)?;
    let body = element
        .child("Body")
        .and_then(|body| body.children.first())
        .ok_or_else(unknown)?;
    let mut inner = Writer::default();
    structure(types, data_type, body, &mut inner)?;
    writer.extension_object(binary, &inner.finish());
    Ok(())
}

fn structure(types: &DataTypes<'_>, id: u32, body: &Element, writer: &mut Writer) -> Result<(), CodegenError> {
    let name = &types.node(id)?.browse_name;
    let described = DESCRIBED.contains(&name.as_str());
    for field in types.fields(id) {
        if field.optional || field.allow_subtypes {
            return Err(CodegenError::schema(
                name,
                "optional fields are not supported in a value",
            ));
        }
        let element = body
            .child(&field.name)
            .filter(|_| described || field.name != "Description");
        structure_field(types, field, element, writer)?;
    }
    Ok(())
}

fn structure_field(
    types: &DataTypes<'_>,
    field: &Field,
    element: Option<&Element>,
    writer: &mut Writer,
) -> Result<(), CodegenError> {
    if field.value_rank < 1 {
        return single(types, field.data_type, element, writer);
    }
    let Some(element) = element.filter(|element| !element.children.is_empty()) else {
        writer.null();
        return Ok(());
    };
    writer.length(element.children.len());
    for child in &element.children {
        single(types, field.data_type, Some(child), writer)?;
    }
    Ok(())
}

fn single(
    types: &DataTypes<'_>,
    data_type: u32,
    element: Option<&Element>,
    writer: &mut Writer,
) -> Result<(), CodegenError> {
    match (types.kind(data_type)?, element) {
        (Kind::BuiltIn(kind) | Kind::OptionSet(kind), element) => built_in(types, kind, element, writer),
        (Kind::Enumeration, element) => {
            // The text form is Name_Number.
            let number = element
                .and_then(|element| element.text().rsplit('_').next())
                .unwrap_or("0");
            let number = number
                .parse()
                .map_err(|_| CodegenError::schema(number, "not an enumeration value"))?;
            writer.i32(number);
            Ok(())
        }
        (Kind::AbstractStructure, element) => built_in(types, 22, element, writer),
        (Kind::Structure, Some(element)) => structure(types, data_type, element, writer),
        (Kind::Structure, None) => structure(types, data_type, &Element::default(), writer),
    }
}

/// `2026-07-30T00:00:00Z` to 100 ns ticks since 1601-01-01 (Part 6, 5.2.2.5). Whole seconds, UTC.
fn ticks(text: &str) -> Result<i64, CodegenError> {
    let invalid = || CodegenError::schema(text, "not a UTC time");
    let parts: Vec<i64> = text
        .strip_suffix('Z')
        .ok_or_else(invalid)?
        .split(['-', 'T', ':'])
        .map(|part| part.parse().map_err(|_| invalid()))
        .collect::<Result<_, _>>()?;
    let [year, month, day, hour, minute, second] = parts[..] else {
        return Err(invalid());
    };
    if !(1601..=9999).contains(&year) || !(1..=12).contains(&month) {
        return Err(invalid());
    }
    // Days since 0000-03-01 in the proleptic Gregorian calendar: years start in March, so that leap days come last.
    let (shifted_year, shifted_month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = |y: i64, m: i64| 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5;
    let since_1601 = days(shifted_year, shifted_month) + day - 1 - days(1600, 10);
    Ok((((since_1601 * 24 + hour) * 60 + minute) * 60 + second) * 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn ticks_of_known_days() {
        assert_eq!(ticks("1601-01-01T00:00:00Z").unwrap(), 0);
        assert_eq!(ticks("1601-01-02T00:00:01Z").unwrap(), 864_010_000_000);
        assert_eq!(ticks("1970-01-01T00:00:00Z").unwrap(), 116_444_736_000_000_000);
        assert_eq!(ticks("2000-03-01T00:00:00Z").unwrap(), 125_963_424_000_000_000);
        assert!(ticks("yesterday").is_err());
        assert!(ticks("2000-13-01T00:00:00Z").is_err());
    }
}
