//! An optional timestamp in eight bytes: a database holds millions of series.

use latewood_model::Timestamp;

/// See the module. The smallest timestamp means none: samples from before 1970 are
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(Timestamp);

impl Moment {
    pub(super) const NONE: Self = Self(Timestamp::MIN);

    #[inline]
    pub(super) fn get(self) -> Option<Timestamp> {
        (self != Self::NONE).then_some(self.0)
    }

    /// The timestamp; the smallest one if there is none.
    #[inline]
    pub(super) fn or_min(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for Moment {
    #[inline]
    fn from(timestamp: Timestamp) -> Self {
        debug_assert!(timestamp != Timestamp::MIN);
        Self(timestamp)
    }
}

impl From<Option<Timestamp>> for Moment {
    #[inline]
    fn from(timestamp: Option<Timestamp>) -> Self {
        timestamp.map_or(Self::NONE, Self::from)
    }
}
