//! Steps that must be computed again, and which of them are final. Tested below.

use latewood_promql::reads::{Reads, Window};

/// The steps of a rule: a time every interval, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepGrid {
    /// Any of its times.
    pub some_ms: i64,
    /// At least 1.
    pub interval_ms: i64,
}

impl StepGrid {
    /// Whether a step is at this time.
    pub fn has(&self, at_ms: i64) -> bool {
        self.since_step(at_ms) == 0
    }

    /// The last step at or before a time.
    pub fn at_or_before(&self, at_ms: i64) -> i64 {
        at_ms.saturating_sub(self.since_step(at_ms))
    }

    /// The first step at or after a time.
    pub fn at_or_after(&self, at_ms: i64) -> i64 {
        match self.since_step(at_ms) {
            0 => at_ms,
            since => at_ms.saturating_add(self.interval_ms - since),
        }
    }

    /// How many steps are in `from..=to`, both of them steps.
    pub fn count(&self, from: i64, to: i64) -> u64 {
        if from > to {
            return 0;
        }
        to.abs_diff(from) / self.interval_ms.unsigned_abs().max(1) + 1
    }

    fn since_step(&self, at_ms: i64) -> i64 {
        let since = i128::from(at_ms) - i128::from(self.some_ms);
        // Below the interval.
        since.rem_euclid(i128::from(self.interval_ms.max(1))) as i64
    }
}

/// Steps, as spans of which none touches another, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    spans: Vec<(i64, i64)>,
}

impl Steps {
    /// Adds the steps of `grid` within `from..=to`.
    pub fn add(&mut self, grid: &StepGrid, from: i64, to: i64) {
        let (mut from, mut to) = (grid.at_or_after(from), grid.at_or_before(to));
        if from > to {
            return;
        }
        let before = from.saturating_sub(grid.interval_ms);
        let first = self.spans.partition_point(|span| span.1 < before);
        let after = to.saturating_add(grid.interval_ms);
        let end = self.spans.partition_point(|span| span.0 <= after);
        if let Some(touched) = self.spans.get(first..end).filter(|them| !them.is_empty()) {
            from = from.min(touched[0].0);
            to = to.max(touched[touched.len() - 1].1);
        }
        self.spans.splice(first..end.max(first), [(from, to)]);
    }

    /// Removes the steps before `at`. Returns how many there were.
    pub fn cut_before(&mut self, grid: &StepGrid, at: i64) -> u64 {
        let mut cut = 0;
        self.spans.retain_mut(|span| {
            let last = span.1.min(grid.at_or_before(at.saturating_sub(1)));
            cut += grid.count(span.0, last);
            span.0 = span.0.max(grid.at_or_after(at));
            span.0 <= span.1
        });
        cut
    }

    /// Removes the steps after `at`. Returns whether there were any.
    pub fn cut_after(&mut self, grid: &StepGrid, at: i64) -> bool {
        let last = grid.at_or_before(at);
        let was = self.spans.last().map(|span| span.1);
        self.spans.retain_mut(|span| {
            span.1 = span.1.min(last);
            span.0 <= span.1
        });
        was.is_some_and(|was| was > last)
    }

    /// Removes those within `from..=to`.
    pub fn remove(&mut self, grid: &StepGrid, from: i64, to: i64) {
        let mut kept = Self::default();
        for &(first, last) in &self.spans {
            kept.add(grid, first, last.min(from.saturating_sub(1)));
            kept.add(grid, first.max(to.saturating_add(1)), last);
        }
        *self = kept;
    }

    /// Takes the first ones out, at most `most` of them: those of one span.
    pub fn take(&mut self, grid: &StepGrid, most: usize) -> Option<(i64, i64)> {
        let span = self.spans.first_mut()?;
        let length = grid.interval_ms.saturating_mul(most.max(1) as i64 - 1);
        let taken = (span.0, span.1.min(span.0.saturating_add(length)));
        span.0 = taken.1.saturating_add(grid.interval_ms);
        if span.0 > span.1 || taken.1 == i64::MAX {
            self.spans.remove(0);
        }
        Some(taken)
    }

    /// The first and the last step.
    pub fn ends(&self) -> Option<(i64, i64)> {
        Some((self.spans.first()?.0, self.spans.last()?.1))
    }

    /// How many there are.
    pub fn len(&self, grid: &StepGrid) -> u64 {
        let spans = self.spans.iter();
        spans.map(|&(from, to)| grid.count(from, to)).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The spans, both ends included.
    pub fn spans(&self) -> &[(i64, i64)] {
        &self.spans
    }
}

/// The times of steps that a change of samples of `from..=to` may have changed, both ends included,
/// if a selector of `reads` is meant.
pub fn dirty(reads: &Reads, selector: usize, from: i64, to: i64) -> Option<(i64, i64)> {
    let Window::Moving { .. } = reads.reads.get(selector)?.window else {
        return None;
    };
    let window = reads.reads[selector].window;
    let (first, last) = (window.dirty(from)?, window.dirty(to)?);
    Some((first.start, last.end.saturating_sub(1)))
}

/// The first step at which no selector, or not this one, needs samples before `floor`.
pub fn whole_from(reads: &Reads, selector: Option<usize>, floor: i64) -> i64 {
    let reads = reads.reads.iter().enumerate();
    let of = reads.filter(|(at, _)| selector.is_none_or(|wanted| wanted == *at));
    let back = of.map(|(_, read)| match read.window {
        Window::Moving { back_max_ms, .. } => back_max_ms,
        Window::Fixed { .. } => 0,
    });
    // The window begins behind `step - back`.
    let back = back.max().unwrap_or(1);
    floor.saturating_add(back.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_promql::engine::{Query, Settings};
    use std::collections::BTreeSet;

    const GRID: StepGrid = StepGrid {
        some_ms: 1_000_007,
        interval_ms: 10,
    };

    #[test]
    fn steps_are_found_around_any_time() {
        for (at, before, after) in [
            (7, 7, 7),
            (8, 7, 17),
            (16, 7, 17),
            (-3, -3, -3),
            (-4, -13, -3),
        ] {
            assert_eq!(
                (GRID.at_or_before(at), GRID.at_or_after(at)),
                (before, after),
                "{at}"
            );
        }
        assert!(GRID.has(-3) && !GRID.has(3));
        assert_eq!(GRID.count(7, 37), 4);
        // Ends of time do no harm.
        GRID.at_or_before(i64::MIN);
        GRID.at_or_after(i64::MAX);
    }

    #[test]
    fn spans_are_a_set_of_steps() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |below: i64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.unsigned_abs()) as i64
        };
        for _ in 0..300 {
            let (mut steps, mut model) = (Steps::default(), BTreeSet::new());
            for _ in 0..random(12) {
                let from = random(400);
                let to = from + random(80) - 5;
                steps.add(&GRID, from, to);
                model.extend((from..=to).filter(|at| GRID.has(*at)));
            }
            let from = random(400);
            let to = from + random(60) - 5;
            steps.remove(&GRID, from, to);
            model.retain(|at| !(from..=to).contains(at));
            let (low, high) = (random(200), 150 + random(300));
            let kept = model.split_off(&low);
            assert_eq!(steps.cut_before(&GRID, low), model.len() as u64);
            let more = kept.iter().any(|at| *at > high);
            assert_eq!(steps.cut_after(&GRID, high), more);
            let kept: Vec<i64> = kept.into_iter().filter(|at| *at <= high).collect();
            assert_eq!(steps.len(&GRID), kept.len() as u64);
            assert_eq!(
                steps.ends(),
                kept.first().copied().zip(kept.last().copied())
            );
            let mut taken = Vec::new();
            while let Some((from, to)) = steps.take(&GRID, 3) {
                assert!(GRID.count(from, to) <= 3);
                taken.extend((from..=to).step_by(10));
            }
            assert_eq!(taken, kept);
        }
    }

    #[test]
    fn a_change_makes_steps_dirty_whose_windows_it_is_in() {
        let query = Query::new("sum_over_time(x[100ms] offset 20ms) + x offset -30ms").unwrap();
        let settings = Settings {
            lookback_ms: 50,
            ..Settings::default()
        };
        let reads = Reads::of(query.expr(), &settings).unwrap();
        assert_eq!(dirty(&reads, 0, 1000, 1003), Some((1020, 1122)));
        assert_eq!(dirty(&reads, 1, 1000, 1000), Some((970, 1019)));
        assert_eq!(dirty(&reads, 2, 1000, 1000), None);
        // (t - 120, t - 20] begins at 1000 where t is 1119.
        assert_eq!(whole_from(&reads, Some(0), 1000), 1119);
        assert_eq!(whole_from(&reads, Some(1), 1000), 1019);
        assert_eq!(whole_from(&reads, None, 1000), 1119);
    }
}
