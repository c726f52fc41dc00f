//! Engineering units: the common codes of UNECE Recommendation 20 as EUInformation values (Part 8, 5.6.4.3).
//!
//! Owns the look-up by code and by unit id. The list itself is generated.

use backplane_types::{EUInformation, LocalizedText};

use crate::generated::units::UNITS;

/// The namespace of the unit ids in this list, as it stands in an EUInformation.
pub const NAMESPACE_URI: &str = "http://www.opcfoundation.org/UA/units/un/cefact";

/// One unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Common code, one to three ASCII characters, for example `CEL`.
    pub code: &'static str,
    /// Symbol, for example `°C`.
    pub display_name: &'static str,
    /// Name in English, for example `degree Celsius`.
    pub description: &'static str,
}

impl Unit {
    pub(crate) const fn new(code: &'static str, display_name: &'static str, description: &'static str) -> Self {
        Self {
            code,
            display_name,
            description,
        }
    }

    /// All units, ascending by code.
    #[must_use]
    pub fn all() -> &'static [Self] {
        UNITS
    }

    /// The unit with this common code.
    #[must_use]
    pub fn by_code(code: &str) -> Option<&'static Self> {
        let found = UNITS.binary_search_by(|unit| unit.code.cmp(code)).ok()?;
        UNITS.get(found)
    }

    /// The unit with this unit id.
    #[must_use]
    pub fn by_id(unit_id: i32) -> Option<&'static Self> {
        let bytes = unit_id.to_be_bytes();
        let start = bytes.iter().position(|byte| *byte != 0)?;
        Self::by_code(std::str::from_utf8(bytes.get(start..)?).ok()?)
    }

    /// The unit id: the characters of the code as one number, the first one highest.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.code.bytes().fold(0, |id, byte| id << 8 | i32::from(byte))
    }

    /// The unit as a value of the EngineeringUnits property.
    #[must_use]
    pub fn eu_information(&self) -> EUInformation {
        let text = |text: &str| LocalizedText {
            locale: "en".into(),
            text: text.into(),
        };
        EUInformation {
            namespace_uri: NAMESPACE_URI.into(),
            unit_id: self.id(),
            display_name: text(self.display_name),
            description: text(self.description),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn degree_celsius_is_the_standards_example() {
        let unit = Unit::by_code("CEL").unwrap();
        assert_eq!(unit.id(), 4_408_652);
        assert_eq!(unit.display_name, "°C");
        assert_eq!(Unit::by_id(4_408_652), Some(unit));
        assert_eq!(unit.eu_information().description.text.text(), "degree Celsius");
    }

    #[test]
    fn every_unit_is_found_by_code_and_by_id() {
        assert!(Unit::all().len() > 1_800);
        for unit in Unit::all() {
            assert_eq!(Unit::by_code(unit.code), Some(unit));
            assert_eq!(Unit::by_id(unit.id()), Some(unit));
        }
        for absent in [0, -1, i32::MIN, i32::MAX] {
            assert_eq!(Unit::by_id(absent), None);
        }
    }
}
