//! Memory of the vectors and labels that operators build, counted while they grow.
//!
//! What is counted here stays so until the query ends. Labels that a source has found are the
//! source's to count. Tested by `tests/evaluation/held.rs`.

use crate::exec::{Context, EvalError, Series};
use crate::source::Samples;

/// Bytes that are gathered before they are counted.
const BATCH_BYTES: usize = 64 << 10;

/// Bytes of many small things, and a check now and then.
pub(crate) struct Tally<'a> {
    ctx: &'a Context<'a>,
    bytes: usize,
}

impl<'a> Tally<'a> {
    /// Nothing yet.
    pub(crate) fn new(ctx: &'a Context<'a>) -> Self {
        Self { ctx, bytes: 0 }
    }

    /// Counts bytes.
    ///
    /// # Errors
    /// Where the query holds more than it may, or must end.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes < BATCH_BYTES {
            Ok(())
        } else {
            self.settle()
        }
    }

    /// Counts a series in a vector that grows, and its labels if nothing else holds them.
    ///
    /// # Errors
    /// As [`Tally::add`].
    pub(crate) fn add_series(&mut self, series: &Series) -> Result<(), EvalError> {
        self.add(2 * size_of::<Series>() + series.labels.own_bytes())
    }

    /// Counts what was gathered.
    ///
    /// # Errors
    /// As [`Tally::add`].
    pub(crate) fn settle(&mut self) -> Result<(), EvalError> {
        self.ctx.source.check()?;
        self.ctx.hold(std::mem::take(&mut self.bytes))
    }
}

impl Context<'_> {
    /// The series of an operator.
    ///
    /// # Errors
    /// Where the query holds more than it may, or must end.
    pub(crate) fn collect(
        &self,
        series: impl Iterator<Item = Series>,
    ) -> Result<Vec<Series>, EvalError> {
        let mut tally = Tally::new(self);
        let mut collected = Vec::new();
        for one in series {
            tally.add_series(&one)?;
            collected.push(one);
        }
        tally.settle()?;
        Ok(collected)
    }

    /// Adds to a vector that stays until the query ends.
    ///
    /// # Errors
    /// Where the query holds more than it may.
    pub(crate) fn push<T>(&self, into: &mut Vec<T>, value: T) -> Result<(), EvalError> {
        if into.len() == into.capacity() {
            let more = into.capacity().max(4);
            self.hold(more * size_of::<T>())?;
            into.reserve_exact(more);
        }
        into.push(value);
        Ok(())
    }

    /// Makes room for `len` samples, which a thread keeps until the query ends.
    ///
    /// # Errors
    /// Where the query holds more than it may.
    pub(crate) fn reserve(&self, samples: &mut Samples, len: usize) -> Result<(), EvalError> {
        samples.clear();
        let missing = |capacity: usize| len.saturating_sub(capacity) * 8;
        let (times, values) = (&mut samples.timestamps, &mut samples.values);
        self.hold(missing(times.capacity()) + missing(values.capacity()))?;
        times.reserve_exact(len);
        values.reserve_exact(len);
        Ok(())
    }
}
