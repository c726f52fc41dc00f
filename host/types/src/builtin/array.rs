//! Array and ArrayValues: the elements of a Variant that is not a scalar, and the dimensions of a matrix.

use super::variant_from::for_each_type;
use super::{
    BuiltInType, ByteString, DataValue, DateTime, DiagnosticInfo, ExpandedNodeId, ExtensionObject, Guid, LocalizedText,
    NodeId, QualifiedName, StatusCode, UaString, Variant, XmlElement,
};

/// An array, or a matrix whose elements are stored row by row (the last dimension runs fastest).
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The elements.
    pub values: ArrayValues,
    /// Lengths of the dimensions of a matrix; empty for a one-dimensional array.
    pub dimensions: Vec<u32>,
}

/// The dimensions do not describe the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the product of the dimensions is not the number of elements")]
pub struct ArrayError;

impl Array {
    /// A one-dimensional array.
    #[must_use]
    pub fn new(values: ArrayValues) -> Self {
        Self {
            values,
            dimensions: Vec::new(),
        }
    }

    /// A matrix. One dimension, or none, makes a one-dimensional array.
    ///
    /// # Errors
    /// [`ArrayError`] if the product of the dimensions is not the number of elements.
    pub fn matrix(values: ArrayValues, dimensions: Vec<u32>) -> Result<Self, ArrayError> {
        if dimensions.is_empty() {
            return Ok(Self::new(values));
        }
        if product(&dimensions) != Some(values.len()) {
            return Err(ArrayError);
        }
        let dimensions = if dimensions.len() == 1 { Vec::new() } else { dimensions };
        Ok(Self { values, dimensions })
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of dimensions, at least 1.
    #[must_use]
    pub fn rank(&self) -> i32 {
        i32::try_from(self.dimensions.len().max(1)).unwrap_or(i32::MAX)
    }
}

/// The number of elements of a matrix; `None` on overflow.
pub(crate) fn product(dimensions: &[u32]) -> Option<usize> {
    dimensions.iter().try_fold(1_usize, |product, length| {
        product.checked_mul(usize::try_from(*length).ok()?)
    })
}

macro_rules! define {
    ($($name:ident $type:ty;)*) => {
        /// The elements of an array, by type.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)]
        pub enum ArrayValues {
            $($name(Vec<$type>),)*
        }

        impl ArrayValues {
            /// No elements of a type.
            #[must_use]
            pub fn empty(built_in_type: BuiltInType) -> Self {
                match built_in_type {
                    $(BuiltInType::$name => Self::$name(Vec::new()),)*
                }
            }

            /// The type of the elements.
            #[must_use]
            pub fn built_in_type(&self) -> BuiltInType {
                match self {
                    $(Self::$name(_) => BuiltInType::$name,)*
                }
            }

            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$name(values) => values.len(),)*
                }
            }

            /// One element as a Variant; an element of a Variant array is itself.
            #[must_use]
            pub fn get(&self, index: usize) -> Option<Variant> {
                match self {
                    $(Self::$name(values) => values.get(index).cloned().map(Variant::from),)*
                }
            }

            /// An array of one element; `None` for a Variant that is empty or an array.
            #[must_use]
            pub fn from_scalar(scalar: Variant) -> Option<Self> {
                match scalar.built_in_type()? {
                    $(BuiltInType::$name => <$type>::try_from(scalar).ok().map(|value| Self::$name(vec![value])),)*
                }
            }

            /// A copy of a run of elements; what lies beyond the end is left out.
            #[must_use]
            pub fn slice(&self, start: usize, count: usize) -> Self {
                match self {
                    $(Self::$name(values) => {
                        let start = start.min(values.len());
                        let end = start.saturating_add(count).min(values.len());
                        Self::$name(values.get(start..end).unwrap_or(&[]).to_vec())
                    })*
                }
            }

            /// Appends copies of a run of elements of `from`, which must be of the same type; false, with nothing done, if it is not or if
            /// the run does not lie within it.
            pub fn extend_from(&mut self, from: &Self, start: usize, count: usize) -> bool {
                match (self, from) {
                    $((Self::$name(to), Self::$name(from)) => {
                        let run = start.checked_add(count).and_then(|end| from.get(start..end));
                        run.is_some_and(|run| { to.extend_from_slice(run); true })
                    })*
                    _ => false,
                }
            }

            /// Overwrites a run of elements with a run of `from`, which must be of the same type; false, with nothing done, if it is not or
            /// if a run does not lie within its array.
            pub fn copy_from(&mut self, at: usize, from: &Self, start: usize, count: usize) -> bool {
                match (self, from) {
                    $((Self::$name(to), Self::$name(from)) => {
                        let run = start.checked_add(count).and_then(|end| from.get(start..end));
                        let place = at.checked_add(count).and_then(|end| to.get_mut(at..end));
                        match (run, place) {
                            (Some(run), Some(place)) => { place.clone_from_slice(run); true }
                            _ => false,
                        }
                    })*
                    _ => false,
                }
            }
        }
    };
}

for_each_type!(define);

impl ArrayValues {
    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as Variants.
    pub fn iter(&self) -> impl Iterator<Item = Variant> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Whether two arrays are the same for change detection, see [`Variant::is_same`].
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => all(a, b, |a, b| a.to_bits() == b.to_bits()),
            (Self::Double(a), Self::Double(b)) => all(a, b, |a, b| a.to_bits() == b.to_bits()),
            (Self::DataValue(a), Self::DataValue(b)) => all(a, b, DataValue::is_same),
            (Self::Variant(a), Self::Variant(b)) => all(a, b, Variant::is_same),
            _ => self == other,
        }
    }
}

fn all<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}
