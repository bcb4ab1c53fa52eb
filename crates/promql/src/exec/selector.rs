//! Instant selectors: of each step the newest sample in `(time - lookback, time]`.
//!
//! A stale mark there means no sample. `smoothed` takes a straight line between the samples around
//! the time, both at most the lookback away; `timestamp(selector)` the time of the sample.

use crate::column::Column;
use crate::exec::reference::Reference;
use crate::exec::{Context, Node, Result, Series};
use crate::source::{Matcher, Samples, is_stale};

/// What a selector gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// The value of the sample.
    Value,
    /// The time of the sample, seconds.
    Time,
    /// The time of the sample, milliseconds; names stay.
    Stamp,
    /// The value on the line between samples.
    Smoothed,
}

/// All times.
pub(crate) const ALWAYS_MS: (i64, i64) = (i64::MIN, i64::MAX);

pub(crate) struct Selector<'a> {
    pub(crate) matchers: &'a [Matcher],
    pub(crate) reference: Reference,
    pub(crate) takes: Takes,
    /// Only samples from the first to the second of these times count.
    pub(crate) within_ms: (i64, i64),
}

impl Selector<'_> {
    pub(crate) fn operator(self, ctx: &Context<'_>) -> Result<Node> {
        let Self {
            reference, takes, ..
        } = self;
        let before_ms = ctx.settings.lookback_ms;
        let after_ms = match takes {
            Takes::Smoothed => before_ms,
            Takes::Value | Takes::Time | Takes::Stamp => 0,
        };
        let (first_ms, last_ms) = reference.bounds_ms();
        let found = ctx.select(
            self.matchers,
            first_ms.saturating_sub(before_ms).saturating_add(1),
            last_ms.saturating_add(after_ms),
        )?;
        let handles: Vec<usize> = found.iter().map(|found| found.handle).collect();
        let series = found.into_iter().map(|found| Series::new(found.labels));
        let series = ctx.collect(series.map(|series| match takes {
            Takes::Time => series.nameless(ctx.settings),
            Takes::Value | Takes::Stamp | Takes::Smoothed => series,
        }))?;
        let (from_ms, to_ms) = self.within_ms;
        Ok(Node::new(series, move |at, work, out| {
            let reads = reference.reads(before_ms, after_ms);
            let reads = reads.map(|(first, last)| (first.max(from_ms), last.min(to_ms)));
            out.reset(reference.steps());
            let take: fn(i64, f64) -> f64 = match takes {
                Takes::Value => |_, value| value,
                Takes::Time => |time_ms, _| time_ms as f64 / 1000.0,
                Takes::Stamp => |time_ms, _| time_ms as f64,
                Takes::Smoothed => {
                    let samples = &mut work.scratch.samples;
                    work.ctx.read(handles[at], reads, samples)?;
                    smooth(samples, &reference, before_ms, out);
                    return Ok(());
                }
            };
            let mut newest = Newest::new(&reference, before_ms, out, take);
            work.ctx.pass(handles[at], reads, |timestamps, values| {
                newest.pass(timestamps, values);
                Ok(())
            })?;
            newest.finish();
            Ok(())
        }))
    }
}

/// Sets each step to what `take` gives for the time and value of the newest sample of its window, while
/// the samples pass by.
struct Newest<'a> {
    reference: &'a Reference,
    lookback_ms: i64,
    out: &'a mut Column,
    take: fn(i64, f64) -> f64,
    /// The first step whose newest sample may still come.
    step: usize,
    /// The newest sample so far.
    last: Option<(i64, f64)>,
}

impl<'a> Newest<'a> {
    fn new(
        reference: &'a Reference,
        lookback_ms: i64,
        out: &'a mut Column,
        take: fn(i64, f64) -> f64,
    ) -> Self {
        Self {
            reference,
            lookback_ms,
            out,
            take,
            step: 0,
            last: None,
        }
    }

    /// The next samples, ascending.
    fn pass(&mut self, timestamps: &[i64], values: &[f64]) {
        let mut next = 0;
        while next < timestamps.len() && self.step < self.reference.steps() {
            let time_ms = self.reference.time_ms(self.step);
            next += behind(&timestamps[next..], time_ms);
            if let Some(newest) = next.checked_sub(1) {
                self.last = Some((timestamps[newest], values[newest]));
            }
            if next < timestamps.len() {
                self.set(time_ms);
            }
        }
    }

    /// No more samples come.
    fn finish(&mut self) {
        while self.step < self.reference.steps() {
            self.set(self.reference.time_ms(self.step));
        }
    }

    fn set(&mut self, time_ms: i64) {
        if let Some((at_ms, value)) = self.last
            && at_ms > time_ms.saturating_sub(self.lookback_ms)
            && !is_stale(value)
        {
            self.out.set(self.step, (self.take)(at_ms, value));
        }
        self.step += 1;
    }
}

/// Samples that a step is likely to pass.
const NEAR: usize = 8;

/// How many of `timestamps`, ascending, are not after `time_ms`: few, or else a search pays.
fn behind(timestamps: &[i64], time_ms: i64) -> usize {
    let near = timestamps.len().min(NEAR);
    let after = timestamps[..near].iter().position(|at| *at > time_ms);
    after.unwrap_or_else(|| near + timestamps[near..].partition_point(|at| *at <= time_ms))
}

/// Sets each step to the value between the samples around its time, or to the last before it.
fn smooth(samples: &Samples, reference: &Reference, lookback_ms: i64, out: &mut Column) {
    let (times, values) = (&samples.timestamps, &samples.values);
    let mut next = 0;
    for step in 0..reference.steps() {
        let time_ms = reference.time_ms(step);
        while times.get(next).is_some_and(|t| *t < time_ms) {
            next += 1;
        }
        let after = (next < times.len() && times[next] <= time_ms.saturating_add(lookback_ms))
            .then_some(next);
        let before = next
            .checked_sub(1)
            .filter(|at| times[*at] > time_ms.saturating_sub(lookback_ms));
        match (before, after) {
            (_, Some(after)) if times[after] == time_ms => out.set(step, values[after]),
            (Some(before), Some(after)) => {
                out.set(step, between(samples, before, after, time_ms, false));
            }
            (Some(before), None) => out.set(step, values[before]),
            (None, _) => {}
        }
    }
}

/// The value at `time_ms` on the line between two samples; a counter that fell began at 0.
pub(crate) fn between(
    samples: &Samples,
    before: usize,
    after: usize,
    time_ms: i64,
    is_counter: bool,
) -> f64 {
    let (times, values) = (&samples.timestamps, &samples.values);
    let to = values[after];
    let from = if is_counter && to < values[before] {
        0.0
    } else {
        values[before]
    };
    let gone_ms = time_ms.saturating_sub(times[before]) as f64;
    from + (to - from) * gone_ms / times[after].saturating_sub(times[before]) as f64
}
