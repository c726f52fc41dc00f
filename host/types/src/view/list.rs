//! Lists that are read where they lie.

use std::fmt;
use std::marker::PhantomData;

use crate::codec::{DecodeError, Decoder};

/// A value that can be read in place.
pub trait DecodeRef<'a>: Sized {
    /// Fewest bytes one value takes on the wire.
    const MIN_SIZE: usize;

    /// Reads one value; borrows from the message.
    ///
    /// # Errors
    /// [`DecodeError`]: truncated, malformed, or above a limit.
    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError>;
}

impl DecodeRef<'_> for u32 {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn decode_ref(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        d.u32()
    }
}

/// An array in a message whose elements were all checked. A null array has no elements.
#[derive(Clone)]
pub struct ListView<'a, T> {
    elements: Decoder<'a>,
    count: usize,
    element: PhantomData<fn() -> T>,
}

impl<'a, T: DecodeRef<'a>> ListView<'a, T> {
    /// Number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no elements.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements. They were checked, so an error cannot happen unless the view was made by hand.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> ListViewIter<'a, T> {
        ListViewIter {
            elements: self.elements.clone(),
            left: self.count,
            element: PhantomData,
        }
    }
}

impl<'a, T: DecodeRef<'a>> IntoIterator for &ListView<'a, T> {
    type Item = Result<T, DecodeError>;
    type IntoIter = ListViewIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: DecodeRef<'a>> DecodeRef<'a> for ListView<'a, T> {
    const MIN_SIZE: usize = 4;

    fn decode_ref(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let count = d.array_length(T::MIN_SIZE)?.unwrap_or(0);
        let elements = d.clone();
        for _ in 0..count {
            T::decode_ref(d)?;
        }
        Ok(Self {
            elements,
            count,
            element: PhantomData,
        })
    }
}

impl<T> fmt::Debug for ListView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListView({} elements)", self.count)
    }
}

/// Iterator over a [`ListView`].
#[derive(Debug, Clone)]
pub struct ListViewIter<'a, T> {
    elements: Decoder<'a>,
    left: usize,
    element: PhantomData<fn() -> T>,
}

impl<'a, T: DecodeRef<'a>> ListViewIter<'a, T> {
    /// The next element, with the bytes that it takes.
    pub fn next_with_bytes(&mut self) -> Option<Result<(T, &'a [u8]), DecodeError>> {
        let before = self.elements.rest();
        let element = self.next()?;
        let length = before.len().saturating_sub(self.elements.rest().len());
        Some(element.map(|element| (element, before.get(..length).unwrap_or_default())))
    }
}

impl<'a, T: DecodeRef<'a>> Iterator for ListViewIter<'a, T> {
    type Item = Result<T, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = T::decode_ref(&mut self.elements);
        if element.is_err() {
            self.left = 0;
        }
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}
