//! Extremes of many floats, compared side by side.

use crate::simd::Kernel;

/// Values that are checked, and compared for extremes, side by side.
pub(crate) const CHUNK: usize = 64;

/// The smallest and the largest of some finite numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Extremes of [`CHUNK`] numbers side by side, since the extreme of a run of
/// floats does not vectorise.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    min: [f64; CHUNK],
    max: [f64; CHUNK],
}

impl Lanes {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self {
            min: [f64::INFINITY; CHUNK],
            max: [f64::NEG_INFINITY; CHUNK],
        }
    }

    /// Takes in at most [`CHUNK`] numbers.
    #[inline(always)]
    pub(crate) fn include(&mut self, numbers: &[f64]) {
        for ((number, min), max) in numbers.iter().zip(&mut self.min).zip(&mut self.max) {
            *min = if number < min { *number } else { *min };
            *max = if number > max { *number } else { *max };
        }
    }

    #[inline(always)]
    pub(crate) fn extent(mut self) -> Extent {
        let mut half = CHUNK / 2;
        while half > 0 {
            let (low, high) = self.min.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(&high[..half]) {
                *a = if b < a { *b } else { *a };
            }
            let (low, high) = self.max.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(&high[..half]) {
                *a = if b > a { *b } else { *a };
            }
            half /= 2;
        }
        Extent {
            min: self.min[0],
            max: self.max[0],
        }
    }
}

pub(crate) struct ExtentOf<'a>(pub(crate) &'a [f64]);

impl Kernel for ExtentOf<'_> {
    type Output = Extent;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Extent {
        let mut lanes = Lanes::new();
        self.0.chunks(CHUNK).for_each(|chunk| lanes.include(chunk));
        lanes.extent()
    }
}
