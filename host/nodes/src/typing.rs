//! Whether a value fits a DataType, a ValueRank and ArrayDimensions.
//!
//! Owns the rules of Part 3 (5.6.2, 8.x) and Part 4 (5.11.4) that need no look at the address space: a data type is reduced to a [`TypeRule`] when
//! its variable is declared. It must not know nodes.

use backplane_types::{Array, ArrayValues, BuiltInType, ByteString, StatusCode, Variant};

/// What a value of some data type looks like on the wire: the number of a built-in type, or one of the abstract families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeRule(u8);

impl TypeRule {
    /// BaseDataType: any value.
    pub const ANY: Self = Self(24);
    /// A structure in an ExtensionObject.
    pub const STRUCTURE: Self = Self(22);
    const NUMBER: Self = Self(26);
    const INTEGER: Self = Self(27);
    const UNSIGNED: Self = Self(28);
    /// An enumeration, sent as Int32.
    pub const ENUMERATION: Self = Self(29);

    /// The rule of a data type of namespace 0 that has one of its own; none for derived types, whose rule is that of their supertype.
    #[must_use]
    pub fn of_standard_type(id: u32) -> Option<Self> {
        match id {
            // A Decimal is a structure, although it derives from Number (Part 6, 5.2.2.19).
            50 => Some(Self::STRUCTURE),
            1..=29 => u8::try_from(id).ok().map(Self),
            _ => None,
        }
    }

    /// The built-in type, where there is only one.
    #[must_use]
    pub fn built_in(self) -> Option<BuiltInType> {
        if self == Self::ANY {
            None
        } else {
            BuiltInType::from_id(self.0)
        }
    }

    /// Whether values are numbers (Boolean and enumerations are not).
    #[must_use]
    pub fn is_number(self) -> bool {
        (2..=11).contains(&self.0) || (26..=28).contains(&self.0)
    }

    /// Whether one value of the built-in type `built_in` fits.
    #[must_use]
    pub fn accepts(self, built_in: BuiltInType) -> bool {
        let number = built_in as u8;
        match self {
            Self::ANY => true,
            Self::NUMBER => (2..=11).contains(&number) || number == 22,
            Self::INTEGER => (2..=9).contains(&number),
            Self::UNSIGNED => matches!(number, 3 | 5 | 7 | 9),
            Self::ENUMERATION => number == 6,
            Self(rule) => rule == number,
        }
    }
}

/// Whether a number of dimensions (0 for a scalar) fits a ValueRank (Part 3, 5.6.2).
#[must_use]
pub fn rank_fits(rank: i32, dimensions: u32) -> bool {
    match rank {
        -3 => dimensions <= 1,
        -2 => true,
        -1 => dimensions == 0,
        0 => dimensions >= 1,
        rank => u32::try_from(rank).is_ok_and(|rank| rank == dimensions),
    }
}

/// The number of dimensions of a value; 0 for a scalar.
#[must_use]
pub fn dimensions_of(value: &Variant) -> u32 {
    match value {
        Variant::Array(array) if array.dimensions.is_empty() => 1,
        Variant::Array(array) => u32::try_from(array.dimensions.len()).unwrap_or(u32::MAX),
        _ => 0,
    }
}

/// Checks a whole value against what its variable or argument declares. A ByteString becomes a Byte array, and the reverse, where the declaration
/// asks for the other one (Part 4, 5.11.4.2).
///
/// # Errors
/// `BadTypeMismatch` for a wrong type or rank, `BadOutOfRange` for more elements than ArrayDimensions allow.
pub fn fit(value: Variant, rule: TypeRule, rank: i32, dimensions: &[u32]) -> Result<Variant, StatusCode> {
    if is_declared_scalar(&value, rule, rank) {
        return Ok(value);
    }
    let value = adapt_bytes(value, rule, rank);
    let Some(built_in) = value.built_in_type() else {
        return if rule == TypeRule::ANY {
            Ok(value)
        } else {
            Err(StatusCode::BAD_TYPE_MISMATCH)
        };
    };
    if !elements_fit(&value, built_in, rule) || !rank_fits(rank, dimensions_of(&value)) {
        return Err(StatusCode::BAD_TYPE_MISMATCH);
    }
    if let Variant::Array(array) = &value {
        lengths_fit(array, dimensions)?;
    }
    Ok(value)
}

/// Whether a value is a scalar of exactly the declared type, which nearly all are. False for what has to be looked at more closely.
#[inline]
pub(crate) fn is_declared_scalar(value: &Variant, rule: TypeRule, rank: i32) -> bool {
    value
        .to_bits()
        .is_some_and(|(kind, _)| declares_scalar(kind, rule, rank))
}

/// The same for the type of a value.
#[inline]
pub(crate) fn declares_scalar(kind: BuiltInType, rule: TypeRule, rank: i32) -> bool {
    rank_fits(rank, 0) && rule == TypeRule(kind.id())
}

/// An array of Variant may stand for an array of an abstract type, if every element fits.
fn elements_fit(value: &Variant, built_in: BuiltInType, rule: TypeRule) -> bool {
    if rule.accepts(built_in) {
        return true;
    }
    let Variant::Array(array) = value else { return false };
    let ArrayValues::Variant(elements) = &array.values else {
        return false;
    };
    let is_family = matches!(rule, TypeRule::NUMBER | TypeRule::INTEGER | TypeRule::UNSIGNED);
    is_family
        && elements.iter().all(|element| {
            element.built_in_type().is_some_and(|kind| rule.accepts(kind)) && dimensions_of(element) == 0
        })
}

fn lengths_fit(array: &Array, declared: &[u32]) -> Result<(), StatusCode> {
    let exceeds = |(length, limit): (u32, &u32)| *limit != 0 && length > *limit;
    let too_long = if array.dimensions.is_empty() {
        let length = u32::try_from(array.values.len()).unwrap_or(u32::MAX);
        std::iter::once(length).zip(declared).any(exceeds)
    } else {
        array.dimensions.iter().copied().zip(declared).any(exceeds)
    };
    if too_long {
        Err(StatusCode::BAD_OUT_OF_RANGE)
    } else {
        Ok(())
    }
}

/// A ByteString for a Byte array, and the reverse, where the declaration asks for the other one.
pub(crate) fn adapt_bytes(value: Variant, rule: TypeRule, rank: i32) -> Variant {
    let wants_array = rule == TypeRule(BuiltInType::Byte as u8) && rank_fits(rank, 1) && !rank_fits(rank, 0);
    let wants_string = rule == TypeRule(BuiltInType::ByteString as u8) && rank_fits(rank, 0);
    match value {
        Variant::ByteString(bytes) if wants_array => Variant::from(Array {
            values: ArrayValues::Byte(bytes.bytes().to_vec()),
            dimensions: Vec::new(),
        }),
        Variant::Array(array) if wants_string && array.dimensions.is_empty() => match array.values {
            ArrayValues::Byte(bytes) => Variant::ByteString(ByteString::from(bytes)),
            values => Variant::from(Array {
                values,
                dimensions: array.dimensions,
            }),
        },
        other => other,
    }
}

/// Checks numbers against a range, such as InstrumentRange (Part 8, 5.3.2.3).
///
/// # Errors
/// `BadOutOfRange`.
pub(crate) fn check_limits(value: &Variant, range: Option<(f64, f64)>) -> Result<(), StatusCode> {
    let Some((low, high)) = range else { return Ok(()) };
    let outside = |value: &Variant| value.as_f64().is_some_and(|number| !(low..=high).contains(&number));
    let any = match value {
        Variant::Array(array) => array.values.iter().any(|element| outside(&element)),
        scalar => outside(scalar),
    };
    if any { Err(StatusCode::BAD_OUT_OF_RANGE) } else { Ok(()) }
}
