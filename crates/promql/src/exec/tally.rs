//! Memory of the vectors and labels that operators build, counted while they grow.
//!
//! What is counted here stays so until the query ends. Labels that a source has found are the
//! source's to count. Tested by `tests/evaluation/held.rs`.

use crate::exec::{Context, Result, Series};
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
    pub(crate) fn add(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes < BATCH_BYTES {
            Ok(())
        } else {
            self.settle()
        }
    }

    /// Counts a series in a vector that grows, and its labels if nothing else holds them.
    pub(crate) fn add_series(&mut self, series: &Series) -> Result<()> {
        self.add(2 * size_of::<Series>() + series.labels.own_bytes())
    }

    /// Counts what was gathered.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.ctx.source.check()?;
        self.ctx.hold(std::mem::take(&mut self.bytes))
    }
}

impl Context<'_> {
    pub(crate) fn collect(&self, series: impl Iterator<Item = Series>) -> Result<Vec<Series>> {
        let mut tally = Tally::new(self);
        let mut collected = Vec::new();
        for one in series {
            tally.add_series(&one)?;
            collected.push(one);
        }
        tally.settle()?;
        Ok(collected)
    }

    /// The series of an input, without their names where an operator `drops_name`.
    pub(crate) fn renamed(&self, series: &[Series], drops_name: bool) -> Result<Vec<Series>> {
        self.collect(series.iter().map(|series| {
            if drops_name {
                series.nameless(self.settings)
            } else {
                series.clone()
            }
        }))
    }

    /// Adds to a vector that stays until the query ends.
    pub(crate) fn push<T>(&self, into: &mut Vec<T>, value: T) -> Result<()> {
        if into.len() == into.capacity() {
            let more = into.capacity().max(4);
            self.hold(more * size_of::<T>())?;
            into.reserve_exact(more);
        }
        into.push(value);
        Ok(())
    }

    /// Makes room for `len` samples, which a thread keeps until the query ends.
    pub(crate) fn reserve(&self, samples: &mut Samples, len: usize) -> Result<()> {
        samples.clear();
        let missing = |capacity: usize| len.saturating_sub(capacity) * 8;
        let (times, values) = (&mut samples.timestamps, &mut samples.values);
        self.hold(missing(times.capacity()) + missing(values.capacity()))?;
        times.reserve_exact(len);
        values.reserve_exact(len);
        Ok(())
    }
}
