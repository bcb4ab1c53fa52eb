//! The aggregators of queries and compaction rules.

use crate::named;

named! {
    /// How the samples of one time bucket become one value.
    pub enum Aggregator {
        /// Arithmetic mean.
        Avg = 0 => "avg",
        /// Sum.
        Sum = 1 => "sum",
        /// Smallest value.
        Min = 2 => "min",
        /// Largest value.
        Max = 3 => "max",
        /// Largest minus smallest value.
        Range = 4 => "range",
        /// Number of samples that are not NaN.
        Count = 5 => "count",
        /// Value of the oldest sample.
        First = 6 => "first",
        /// Value of the newest sample.
        Last = 7 => "last",
        /// Standard deviation of a population.
        StdP = 8 => "std.p",
        /// Standard deviation of a sample.
        StdS = 9 => "std.s",
        /// Variance of a population.
        VarP = 10 => "var.p",
        /// Variance of a sample.
        VarS = 11 => "var.s",
        /// Time-weighted average.
        Twa = 12 => "twa",
        /// Number of NaN samples.
        CountNan = 13 => "countnan",
        /// Number of samples, NaN or not.
        CountAll = 14 => "countall",
    }
}

impl Aggregator {
    /// Whether it can reduce the rows of several series to one: all but those
    /// that depend on the order of samples in time.
    pub const fn reduces(self) -> bool {
        !matches!(self, Self::First | Self::Last | Self::Twa)
    }

    /// The aggregator stored as `number`.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_in_any_case() {
        for (number, aggregator) in Aggregator::ALL.into_iter().enumerate() {
            assert_eq!(aggregator as usize, number);
            let upper = aggregator.name().to_uppercase();
            assert_eq!(Aggregator::of_name(upper.as_bytes()), Some(aggregator));
        }
        assert_eq!(Aggregator::of_name(b"median"), None);
    }
}
