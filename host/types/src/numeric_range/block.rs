//! A block of a matrix: which runs of elements a range selects. An array is a matrix of one dimension.

use crate::builtin::{Array, ArrayValues};

use super::{Bounds, NumericRangeError, clamp, exact};

/// For each dimension its length in the matrix, and start and length of the part; the last dimension is contiguous.
pub(super) struct Block {
    dimensions: Vec<(usize, usize, usize)>,
}

type Fit = fn(Bounds, usize) -> Result<(usize, usize), NumericRangeError>;

impl Block {
    /// The block, cut at the ends of the matrix.
    pub(super) fn clamped(array: &Array, bounds: &[Bounds]) -> Result<Self, NumericRangeError> {
        Self::new(array, bounds, clamp)
    }

    /// The block, which has to lie within the matrix.
    pub(super) fn exact(array: &Array, bounds: &[Bounds]) -> Result<Self, NumericRangeError> {
        Self::new(array, bounds, exact)
    }

    fn new(array: &Array, bounds: &[Bounds], fit: Fit) -> Result<Self, NumericRangeError> {
        let lengths: Vec<usize> = if array.dimensions.is_empty() {
            vec![array.len()]
        } else {
            array.dimensions.iter().map(|length| *length as usize).collect()
        };
        let mut dimensions = Vec::with_capacity(lengths.len());
        for (length, bounds) in lengths.into_iter().zip(bounds) {
            let (low, end) = fit(*bounds, length)?;
            dimensions.push((length, low, end - low));
        }
        Ok(Self { dimensions })
    }

    /// Number of elements. It is not above the number of elements of the matrix, so it cannot overflow.
    pub(super) fn len(&self) -> usize {
        self.dimensions
            .iter()
            .fold(1, |product, (_, _, count)| product.saturating_mul(*count))
    }

    /// Elements of one run.
    fn run(&self) -> usize {
        self.dimensions.last().map_or(0, |(_, _, count)| *count)
    }

    /// Where in the matrix a run starts.
    fn start(&self, mut run: usize) -> usize {
        let Some(((length, low, _), outer)) = self.dimensions.split_last() else {
            return 0;
        };
        let mut start = *low;
        let mut stride = *length;
        for (length, low, count) in outer.iter().rev() {
            let place = low.saturating_add(run % (*count).max(1));
            run /= (*count).max(1);
            start = start.saturating_add(place.saturating_mul(stride));
            stride = stride.saturating_mul(*length);
        }
        start
    }

    fn runs(&self) -> usize {
        self.len().checked_div(self.run()).unwrap_or(0)
    }

    /// A copy of the block.
    pub(super) fn read(&self, array: &Array) -> Result<Array, NumericRangeError> {
        let mut values = ArrayValues::empty(array.values.built_in_type());
        for run in 0..self.runs() {
            if !values.extend_from(&array.values, self.start(run), self.run()) {
                return Err(NumericRangeError::NoData);
            }
        }
        let dimensions = if array.dimensions.is_empty() {
            Vec::new()
        } else {
            self.lengths()
        };
        Ok(Array { values, dimensions })
    }

    /// Overwrites the block with a matrix of its size and type.
    pub(super) fn write(&self, array: &mut Array, part: &Array) -> Result<(), NumericRangeError> {
        let same_shape = if array.dimensions.is_empty() {
            part.dimensions.is_empty()
        } else {
            part.dimensions == self.lengths()
        };
        if !same_shape || part.len() != self.len() {
            return Err(NumericRangeError::Size);
        }
        for run in 0..self.runs() {
            let from = run.saturating_mul(self.run());
            if !array.values.copy_from(self.start(run), &part.values, from, self.run()) {
                return Err(NumericRangeError::NoData);
            }
        }
        Ok(())
    }

    fn lengths(&self) -> Vec<u32> {
        self.dimensions
            .iter()
            .map(|(_, _, count)| u32::try_from(*count).unwrap_or(u32::MAX))
            .collect()
    }
}
