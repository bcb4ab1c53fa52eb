//! The aggregators of queries and compaction rules.

use std::fmt;

/// How the samples of one time bucket become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Aggregator {
    /// Arithmetic mean.
    Avg = 0,
    /// Sum.
    Sum = 1,
    /// Smallest value.
    Min = 2,
    /// Largest value.
    Max = 3,
    /// Largest minus smallest value.
    Range = 4,
    /// Number of samples that are not NaN.
    Count = 5,
    /// Value of the oldest sample.
    First = 6,
    /// Value of the newest sample.
    Last = 7,
    /// Standard deviation of a population.
    StdP = 8,
    /// Standard deviation of a sample.
    StdS = 9,
    /// Variance of a population.
    VarP = 10,
    /// Variance of a sample.
    VarS = 11,
    /// Time-weighted average.
    Twa = 12,
    /// Number of NaN samples.
    CountNan = 13,
    /// Number of samples, NaN or not.
    CountAll = 14,
}

impl Aggregator {
    /// All aggregators, in the order of their stored numbers.
    pub const ALL: [Self; 15] = [
        Self::Avg,
        Self::Sum,
        Self::Min,
        Self::Max,
        Self::Range,
        Self::Count,
        Self::First,
        Self::Last,
        Self::StdP,
        Self::StdS,
        Self::VarP,
        Self::VarS,
        Self::Twa,
        Self::CountNan,
        Self::CountAll,
    ];

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

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Range => "range",
            Self::Count => "count",
            Self::First => "first",
            Self::Last => "last",
            Self::StdP => "std.p",
            Self::StdS => "std.s",
            Self::VarP => "var.p",
            Self::VarS => "var.s",
            Self::Twa => "twa",
            Self::CountNan => "countnan",
            Self::CountAll => "countall",
        }
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
