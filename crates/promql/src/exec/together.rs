//! What one window of a range gives of samples that nobody passes one by one: the source knows how many
//! there are, their extremes and their sum, of a few hundred at a time.
//!
//! Invariant: the value is, bit for bit, that of passing over each sample. A sum counts only where no order
//! of adding could show ([`super::whole`]), an extreme only where a zero cannot have lost its sign.
//!
//! Tested by `tests/evaluation/together.rs`.

use crate::exec::extremes::extreme;
use crate::exec::whole::{TOTAL_MAX, are_whole, whole_sum};
use crate::source::{Samples, Together};

/// A function of a window that needs no single sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gathering {
    Count,
    Present,
    Sum,
    Mean,
    Extreme { is_max: bool },
}

impl Gathering {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "count_over_time" => Self::Count,
            "present_over_time" | "absent_over_time" => Self::Present,
            "sum_over_time" => Self::Sum,
            "avg_over_time" => Self::Mean,
            "max_over_time" => Self::Extreme { is_max: true },
            "min_over_time" => Self::Extreme { is_max: false },
            _ => return None,
        })
    }

    /// Whether one sample that is not whole makes each one needed.
    pub(crate) fn is_all_or_none(self) -> bool {
        matches!(self, Self::Sum | Self::Mean)
    }

    /// Whether such samples may be taken together.
    pub(crate) fn takes(self, some: &Together) -> bool {
        match self {
            Self::Count | Self::Present => true,
            Self::Sum | Self::Mean => some.is_whole == Some(true),
            Self::Extreme { is_max } => {
                let extreme = if is_max { some.max } else { some.min };
                some.is_whole == Some(true) || extreme != 0.0
            }
        }
    }
}

/// What was taken together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gathered {
    /// Samples; above 0 if there is anything.
    pub(crate) count: u64,
    min: f64,
    max: f64,
    sum: f64,
    /// What the values, without their signs, sum to at most.
    total: f64,
}

/// What the values, without their signs, sum to at most.
fn size_of(some: &Together) -> f64 {
    some.min.abs().max(some.max.abs()) * some.count as f64
}

impl Gathered {
    pub(crate) fn add(&mut self, some: &Together) {
        let is_first = self.count == 0;
        self.min = if is_first {
            some.min
        } else {
            self.min.min(some.min)
        };
        self.max = if is_first {
            some.max
        } else {
            self.max.max(some.max)
        };
        self.count += some.count;
        self.sum += some.sum;
        self.total += size_of(some);
    }

    /// Whether sums with such samples are exact still.
    pub(crate) fn has_room_for(&self, some: &Together) -> bool {
        self.total + size_of(some) < TOTAL_MAX
    }

    /// The value of a window with the other `samples`, without stale marks; `None` where each sample has
    /// to be passed.
    pub(crate) fn value(&self, of: Gathering, samples: &Samples) -> Option<f64> {
        let values = &samples.values;
        let count = (self.count + values.len() as u64) as f64;
        let sum = || {
            let rest = are_whole(values).then(|| whole_sum(values))?;
            // That of the rest is below the limit, too, and twice that still fits.
            Some(self.sum + rest)
        };
        match of {
            Gathering::Count => Some(count),
            Gathering::Present => Some(1.0),
            Gathering::Sum => sum(),
            Gathering::Mean => sum().map(|sum| sum / count),
            Gathering::Extreme { is_max } => {
                let held = if is_max { self.max } else { self.min };
                let other = extreme(values, is_max).unwrap_or(held);
                let found = if is_max {
                    held.max(other)
                } else {
                    held.min(other)
                };
                // The sign is that of the first zero, wherever that is.
                let is_negative = |zero: f64| zero.to_bits() == (-0.0_f64).to_bits();
                (found != 0.0 || !is_negative(held) && !is_negative(other)).then_some(found)
            }
        }
    }
}
