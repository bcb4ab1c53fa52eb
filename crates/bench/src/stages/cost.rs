//! What the timing costs: the same load with it off and on, in turns.
//!
//! Every turn begins anew and does the same work. Two turns that follow each other see the same
//! machine, so each pair gives a ratio, and many pairs a median. How sure it is follows from the
//! order of the ratios alone, whatever their distribution.

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// All turns of one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SamplingCost {
    /// What was written, and where.
    pub(crate) load: String,
    /// One batch in so many was timed where the timing was on.
    pub(crate) sampling: u32,
    /// Samples of a turn.
    pub(crate) samples: u64,
    /// Processor time of each turn with the timing off, in the order of the pairs.
    pub(crate) off_cpu_seconds: Vec<f64>,
    /// The same with the timing on.
    pub(crate) on_cpu_seconds: Vec<f64>,
}

/// What the ratios of the pairs say, in percent of the time with the timing off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extra {
    /// The median.
    pub(crate) percent: f64,
    /// In 95 of 100 measurements the true one is not below this.
    pub(crate) low_percent: f64,
    /// Nor above this.
    pub(crate) high_percent: f64,
}

impl SamplingCost {
    /// Takes `pairs` pairs of turns; `turn` runs one with the timing on or off and returns its
    /// processor seconds. Which comes first changes from pair to pair.
    ///
    /// # Errors
    /// The first of `turn`.
    pub(super) fn measure(
        load: &str,
        sampling: u32,
        samples: u64,
        pairs: u64,
        mut turn: impl FnMut(u32) -> Result<f64>,
    ) -> Result<Self> {
        let mut cost = SamplingCost {
            load: load.to_owned(),
            sampling,
            samples,
            off_cpu_seconds: Vec::new(),
            on_cpu_seconds: Vec::new(),
        };
        // The first turn finds nothing warm.
        turn(0)?;
        for pair in 0..pairs {
            let order = [pair % 2 == 0, pair % 2 == 1];
            for on in order {
                let (every, seconds) = match on {
                    true => (sampling, &mut cost.on_cpu_seconds),
                    false => (0, &mut cost.off_cpu_seconds),
                };
                seconds.push(turn(every)?);
            }
        }
        Ok(cost)
    }

    /// What the timing costs.
    pub(crate) fn extra(&self) -> Extra {
        let pairs = self.on_cpu_seconds.iter().zip(&self.off_cpu_seconds);
        let mut percents: Vec<f64> = pairs.map(|(on, off)| (on / off - 1.0) * 100.0).collect();
        percents.sort_by(f64::total_cmp);
        let count = percents.len();
        // A rank of the sign test: half of n, less 0.98 of its root; Conover, "Practical
        // Nonparametric Statistics", section 3.2.
        let rank = (count as f64 / 2.0 - 0.98 * (count as f64).sqrt()).max(0.0) as usize;
        let at = |place: usize| percents.get(place).copied().unwrap_or(f64::NAN);
        Extra {
            percent: f64::midpoint(at(count.saturating_sub(1) / 2), at(count / 2)),
            low_percent: at(rank),
            high_percent: at(count.saturating_sub(1 + rank)),
        }
    }

    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        format!(
            "{}, timing one batch in {}, of processor time: {}",
            self.load,
            self.sampling,
            self.extra().words()
        )
    }
}

impl Extra {
    /// What may be said of it: a cost that could as well be none is given as its bound alone.
    pub(crate) fn words(self) -> String {
        let (low, high) = (self.low_percent, self.high_percent);
        match (low > 0.0, high > 0.0) {
            (true, _) => format!("{:.2} % ({low:.2} to {high:.2})", self.percent),
            (false, true) => format!("under {high:.2} %"),
            (false, false) => "none seen".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate_and_a_drift_cancels() {
        let (mut clock, mut order) = (100.0, Vec::new());
        let cost = SamplingCost::measure("load", 256, 10, 40, |every| {
            order.push(every);
            clock += 0.5;
            Ok(if every == 0 { clock } else { clock * 1.01 })
        });
        let cost = cost.unwrap();
        assert_eq!(order[..5], [0, 256, 0, 0, 256]);
        let extra = cost.extra();
        assert!((extra.percent - 1.0).abs() < 0.05, "{extra:?}");
        assert!(extra.low_percent <= extra.percent && extra.percent <= extra.high_percent);
        assert!(extra.low_percent < extra.high_percent);
    }

    #[test]
    fn one_wild_pair_moves_nothing() {
        let cost = SamplingCost {
            load: String::new(),
            sampling: 1,
            samples: 1,
            off_cpu_seconds: vec![1.0; 21],
            on_cpu_seconds: (0..21).map(|at| if at == 3 { 9.0 } else { 1.01 }).collect(),
        };
        let extra = cost.extra();
        assert!((extra.percent - 1.0).abs() < 1e-9 && (extra.high_percent - 1.0).abs() < 1e-9);
        assert_eq!(extra.words(), "1.00 % (1.00 to 1.00)");
    }

    #[test]
    fn a_cost_that_may_be_none_is_no_saving() {
        let extra = |low_percent, percent, high_percent| Extra {
            percent,
            low_percent,
            high_percent,
        };
        assert_eq!(extra(-0.4, -0.1, 0.3).words(), "under 0.30 %");
        assert_eq!(extra(-0.9, -0.5, -0.2).words(), "none seen");
        assert_eq!(extra(0.1, 0.6, 1.1).words(), "0.60 % (0.10 to 1.10)");
    }
}
