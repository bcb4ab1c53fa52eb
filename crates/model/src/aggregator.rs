//! The aggregators of queries and compaction rules.

use crate::named;
use std::fmt;

named! {
    /// How the samples of one time bucket become one value. Files store the place of an
    /// aggregator in this order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Aggregator {
        /// Arithmetic mean.
        Avg = "avg",
        /// Sum.
        Sum = "sum",
        /// Smallest value.
        Min = "min",
        /// Largest value.
        Max = "max",
        /// Largest minus smallest value.
        Range = "range",
        /// Number of samples that are not NaN.
        Count = "count",
        /// Value of the oldest sample.
        First = "first",
        /// Value of the newest sample.
        Last = "last",
        /// Standard deviation of a population.
        StdP = "std.p",
        /// Standard deviation of a sample.
        StdS = "std.s",
        /// Variance of a population.
        VarP = "var.p",
        /// Variance of a sample.
        VarS = "var.s",
        /// Time-weighted average.
        Twa = "twa",
        /// Number of NaN samples.
        CountNan = "countnan",
        /// Number of samples, NaN or not.
        CountAll = "countall",
    }
}

impl Aggregator {
    /// Reads an aggregator's name in any case.
    pub fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|aggregator| name.eq_ignore_ascii_case(aggregator.name().as_bytes()))
    }

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

impl fmt::Display for Aggregator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
            assert_eq!(Aggregator::parse(upper.as_bytes()), Some(aggregator));
        }
        assert_eq!(Aggregator::parse(b"median"), None);
    }
}
