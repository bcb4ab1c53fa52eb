//! How far a timestamp may be from the clock, for senders and for the Redis side.
//!
//! Tested below, and by `tests/http/influx.rs` and `tests/resp/samples.rs`.

/// The limits; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeLimits {
    /// Milliseconds ahead of the clock.
    pub(crate) future_ms: u64,
    /// Milliseconds behind the clock.
    pub(crate) past_ms: u64,
}

impl TimeLimits {
    /// The first and the last timestamp that are taken at `now_ms`; none is negative.
    pub(crate) fn bounds(self, now_ms: i64) -> (i64, i64) {
        let earliest = match self.past_ms {
            0 => 0,
            past_ms => now_ms.saturating_sub_unsigned(past_ms).max(0),
        };
        let latest = match self.future_ms {
            0 => i64::MAX,
            future_ms => now_ms.saturating_add_unsigned(future_ms),
        };
        (earliest, latest)
    }

    /// Whether a timestamp is taken; the clock is asked only if there is a limit.
    #[inline]
    pub(crate) fn admits(self, timestamp: i64, now_ms: impl FnOnce() -> i64) -> bool {
        self == Self::default() || {
            let (earliest, latest) = self.bounds(now_ms());
            (earliest..=latest).contains(&timestamp)
        }
    }

    /// Why a timestamp that is not negative is refused; `is_ahead` of the clock or behind it.
    pub(crate) fn refusal(self, is_ahead: bool) -> String {
        let (limit_ms, side) = if is_ahead {
            (self.future_ms, "ahead of")
        } else {
            (self.past_ms, "behind")
        };
        let seconds = limit_ms / 1000;
        format!("the timestamp is more than {seconds} seconds {side} the clock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_within_the_limits_are_taken_and_without_limits_all() {
        let never = || unreachable!("no limit, no clock");
        assert!(TimeLimits::default().admits(0, never));
        assert!(TimeLimits::default().admits(i64::MAX, never));
        let limits = TimeLimits {
            future_ms: 10_000,
            past_ms: 50_000,
        };
        for (timestamp, is_taken) in [
            (49_999, false),
            (50_000, true),
            (110_000, true),
            (110_001, false),
        ] {
            assert_eq!(
                limits.admits(timestamp, || 100_000),
                is_taken,
                "{timestamp}"
            );
        }
        assert_eq!(limits.bounds(10_000), (0, 20_000));
        let ahead = "the timestamp is more than 10 seconds ahead of the clock";
        assert_eq!(limits.refusal(true), ahead);
        let behind = "the timestamp is more than 50 seconds behind the clock";
        assert_eq!(limits.refusal(false), behind);
    }
}
