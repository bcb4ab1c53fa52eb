//! Which time of the data each step looks at: `offset` and `@`.

use crate::column::Grid;
use crate::tree::{At, Length};

/// Maps steps to times of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    grid: Grid,
    offset_ms: i64,
    /// The time after `@`.
    fixed_ms: Option<i64>,
}

impl Reference {
    /// `None` where `prepare` left something unresolved.
    pub(crate) fn new(grid: Grid, offset: &Length, at: Option<At>) -> Option<Self> {
        let Length::Known(offset_ms) = *offset else {
            return None;
        };
        let fixed_ms = match at {
            None => None,
            Some(At::Time(at_ms)) => Some(at_ms),
            Some(At::Start | At::End) => return None,
        };
        Some(Self {
            grid,
            offset_ms,
            fixed_ms,
        })
    }

    pub(crate) fn steps(&self) -> usize {
        self.grid.steps
    }

    /// The time of the data at a step, milliseconds.
    pub(crate) fn time_ms(&self, step: usize) -> i64 {
        self.fixed_ms
            .unwrap_or_else(|| self.grid.time_ms(step))
            .saturating_sub(self.offset_ms)
    }

    /// The time of the step itself, milliseconds.
    pub(crate) fn step_ms(&self, step: usize) -> i64 {
        self.grid.time_ms(step)
    }

    /// The times of the data of the first and the last step.
    pub(crate) fn bounds_ms(&self) -> (i64, i64) {
        (self.time_ms(0), self.time_ms(self.grid.steps - 1))
    }

    /// How far the time of the data moves from step to step, milliseconds.
    fn stride_ms(&self) -> i64 {
        match (self.fixed_ms, self.grid.steps) {
            (Some(_), _) | (_, 1) => 0,
            _ => self.grid.step_ms,
        }
    }

    /// The windows `(time - before_ms, time + after_ms]` of all steps as ranges to read, both ends
    /// inclusive: one, or one for each step where most of the time between would be in vain.
    pub(crate) fn reads(
        &self,
        before_ms: i64,
        after_ms: i64,
    ) -> impl Iterator<Item = (i64, i64)> + use<> {
        let this = *self;
        let window_ms = before_ms.saturating_add(after_ms);
        let (reads, last_of) = if this.stride_ms() / SPARSE > window_ms {
            (this.grid.steps, 0)
        } else {
            (1, this.grid.steps - 1)
        };
        (0..reads).map(move |at| {
            (
                this.time_ms(at).saturating_sub(before_ms).saturating_add(1),
                this.time_ms(at + last_of).saturating_add(after_ms),
            )
        })
    }
}

/// How many windows long the distance of steps must be so that windows are read one by one.
const SPARSE: i64 = 8;

/// From one time to another, seconds; at most half of all times.
pub(crate) fn seconds_between(from_ms: i64, to_ms: i64) -> f64 {
    to_ms.saturating_sub(from_ms) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cover_windows_and_little_else() {
        let grid = Grid {
            start_ms: 1000,
            step_ms: 100,
            steps: 3,
        };
        let reads = |before_ms, after_ms, at| {
            let reference =
                Reference::new(grid, &Length::Known(10), at).expect("everything is known");
            reference.reads(before_ms, after_ms).collect::<Vec<_>>()
        };
        assert_eq!(reads(50, 0, None), [(941, 1190)]);
        assert_eq!(reads(10, 1, None), [(981, 991), (1081, 1091), (1181, 1191)]);
        assert_eq!(reads(10, 0, Some(At::Time(500))), [(481, 490)]);
    }
}
