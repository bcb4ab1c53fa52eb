//! The values of one series at the steps of a query.

/// The steps at which a query is evaluated. An instant query has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Time of the first step, milliseconds.
    pub start_ms: i64,
    /// Distance of steps, milliseconds, at least 1.
    pub step_ms: i64,
    /// Number of steps, at least 1.
    pub steps: usize,
}

impl Grid {
    /// One step.
    pub fn instant(at_ms: i64) -> Self {
        Self {
            start_ms: at_ms,
            step_ms: 1,
            steps: 1,
        }
    }

    /// Time of step `at`, one of the grid.
    pub fn time_ms(&self, at: usize) -> i64 {
        // Exact where the time itself fits, even if the way from the start is longer than 63 bits.
        self.start_ms
            .wrapping_add(self.step_ms.wrapping_mul(at as i64))
    }

    /// Time of the last step.
    pub fn end_ms(&self) -> i64 {
        self.time_ms(self.steps - 1)
    }
}

/// A value for each step, and whether there is one.
///
/// Invariants: `values` has one entry for each step, `present` one bit; bits past the last step
/// are 0. The value of a step without its bit means nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Values by step.
    pub values: Vec<f64>,
    present: Vec<u64>,
}

impl Column {
    /// Clears it to `steps` steps without a value.
    pub fn reset(&mut self, steps: usize) {
        self.values.clear();
        self.values.resize(steps, 0.0);
        self.present.clear();
        self.present.resize(steps.div_ceil(64), 0);
    }

    /// Sets it to `value` at each of `steps` steps.
    pub fn fill(&mut self, steps: usize, value: f64) {
        self.reset(steps);
        self.values.fill(value);
        for at in 0..self.present.len() {
            let bits = (steps - at * 64).min(64);
            self.present[at] = u64::MAX >> (64 - bits);
        }
    }

    /// Sets the value of a step.
    pub fn set(&mut self, step: usize, value: f64) {
        self.values[step] = value;
        self.present[step / 64] |= 1 << (step % 64);
    }

    /// Takes the value of a step away.
    pub fn unset(&mut self, step: usize) {
        self.present[step / 64] &= !(1 << (step % 64));
    }

    /// The value of a step, if there is one.
    pub fn get(&self, step: usize) -> Option<f64> {
        self.has(step).then(|| self.values[step])
    }

    /// Whether a step has a value.
    pub fn has(&self, step: usize) -> bool {
        self.present[step / 64] >> (step % 64) & 1 == 1
    }

    /// Whether no step has a value.
    pub fn is_empty(&self) -> bool {
        self.present.iter().all(|word| *word == 0)
    }

    /// Steps with a value.
    pub fn len(&self) -> usize {
        self.present
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Steps that have a value, ascending.
    pub fn present(&self) -> impl Iterator<Item = usize> {
        self.present.iter().enumerate().flat_map(|(at, word)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros() as usize;
                    word &= word - 1;
                    at * 64 + bit
                })
            })
        })
    }

    /// The bits, 64 steps a word.
    pub fn words(&self) -> &[u64] {
        &self.present
    }

    /// The bits, to change them; those past the last step must stay 0.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.present
    }

    /// Makes room for `steps` steps.
    pub(crate) fn reserve(&mut self, steps: usize) {
        let missing = |len: usize, wanted: usize| wanted.saturating_sub(len);
        let values = &mut self.values;
        values.reserve_exact(missing(values.len(), steps));
        let present = &mut self.present;
        present.reserve_exact(missing(present.len(), steps.div_ceil(64)));
    }

    /// Bytes of memory it keeps.
    pub(crate) fn capacity_bytes(&self) -> usize {
        (self.values.capacity() + self.present.capacity()) * 8
    }

    /// Bytes of memory of a column of `steps` steps.
    pub fn len_bytes(steps: usize) -> usize {
        steps * 8 + steps.div_ceil(64) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_there_or_not() {
        let mut column = Column::default();
        column.reset(130);
        assert!(column.is_empty());
        for step in [0, 63, 64, 129] {
            column.set(step, step as f64);
        }
        assert_eq!(column.present().collect::<Vec<_>>(), [0, 63, 64, 129]);
        column.unset(63);
        assert_eq!(
            (column.get(63), column.get(64), column.len()),
            (None, Some(64.0), 3)
        );
        column.fill(65, 1.0);
        assert_eq!(column.len(), 65);
        column.fill(64, 1.0);
        assert_eq!(column.len(), 64);
    }
}
