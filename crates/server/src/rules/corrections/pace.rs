//! How many steps of a rule are computed at a time, by the series that it has. Tested below.

/// Rows that are computed at a time, about.
const ROWS_MAX: usize = 2_000_000;
/// Steps at a time while nothing is known of the series of a rule: the first ones, and those of spans
/// without rows.
const FIRST_STEPS: usize = 8;
const EMPTY_STEPS: usize = 64;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Series of the rule, or of the widest steps that were computed; 0 if none is known.
    widest: usize,
    /// Steps at a time as long as none is.
    unknown: usize,
    /// Never more steps than that.
    most: usize,
}

impl Pace {
    /// Of a rule that has `series` by now.
    pub(super) fn new(series: usize, most: usize) -> Self {
        Self {
            widest: series,
            unknown: FIRST_STEPS,
            most,
        }
    }

    /// How many steps to compute next.
    pub(super) fn steps(&self) -> usize {
        let steps = match self.widest {
            0 => self.unknown,
            widest => ROWS_MAX / widest,
        };
        steps.clamp(1, self.most.max(1))
    }

    /// The steps that were computed had this number of series.
    pub(super) fn saw(&mut self, series: usize) {
        self.widest = self.widest.max(series);
        self.unknown = (self.unknown * 2).min(EMPTY_STEPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_rows_begins_with_few_steps() {
        let mut pace = Pace::new(0, 500);
        assert_eq!(pace.steps(), 8);
        for _ in 0..10 {
            pace.saw(0);
        }
        assert_eq!(pace.steps(), 64);
        pace.saw(10);
        assert_eq!(pace.steps(), 500);
        pace.saw(1_000_000);
        assert_eq!(pace.steps(), 2);
        pace.saw(10);
        assert_eq!(pace.steps(), 2, "the widest counts");
        assert_eq!(Pace::new(3_000_000, 500).steps(), 1);
        assert_eq!(Pace::new(40_000, 100).steps(), 50);
    }
}
