//! What expressions read: one sample is changed, and the steps with another result must be among
//! those that were predicted ([`latewood_promql::reads`]). Seeds are fixed and printed.

mod groups;
mod spans;
mod windows;

use crate::oracle::data;
use latewood_promql::engine::{Query, Settings, Value};
use latewood_promql::labels::Labels;
use latewood_promql::source::{Found, Hold, Matcher, STALE_BITS, Source, SourceError, Take};
use rand::RngExt;
use rand::rngs::StdRng;

/// Attempts to change what an expression reads.
const ATTEMPTS: usize = 30;

/// A series and its samples: milliseconds and values.
type Series = (Labels, Vec<(i64, f64)>);

/// Series in the order of their labels.
#[derive(Clone, Default)]
struct Memory(Vec<Series>);

impl Memory {
    fn random(rng: &mut StdRng) -> Self {
        let all = data::series(rng).into_iter().map(|series| {
            let labels = series.labels.iter();
            let labels = labels.map(|(name, value)| (name.as_str(), value.as_str()));
            (Labels::from_pairs(labels), series.samples)
        });
        let mut memory = Self(all.collect());
        memory.0.sort_by(|a, b| a.0.cmp(&b.0));
        memory
    }

    /// A copy in which one thing changed, if possible one that is read; and the samples
    /// that are not the same any more.
    fn changed(
        &self,
        rng: &mut StdRng,
        is_read: impl Fn(&Labels) -> bool,
    ) -> (Self, Vec<(Labels, i64)>) {
        let mut attempts = 0;
        loop {
            let mut after = self.clone();
            let samples = after.change(rng);
            attempts += 1;
            if attempts == ATTEMPTS || samples.iter().any(|(labels, _)| is_read(labels)) {
                return (after, samples);
            }
        }
    }

    /// Changes a sample of one series, or the labels of a series for all of its samples. Returns
    /// the samples that are not the same any more.
    fn change(&mut self, rng: &mut StdRng) -> Vec<(Labels, i64)> {
        let at = rng.random_range(0..self.0.len());
        let (labels, samples) = &mut self.0[at];
        if samples.is_empty() || rng.random_range(0..10) == 0 {
            return self.relabel(at);
        }
        let sample = rng.random_range(0..samples.len());
        let time_ms = samples[sample].0;
        let time_ms = match rng.random_range(0..4) {
            0 => {
                samples.remove(sample);
                time_ms
            }
            1 => {
                samples[sample].1 = rng.random_range(-100.0..1000.0);
                time_ms
            }
            2 => {
                samples[sample].1 = f64::from_bits(STALE_BITS);
                time_ms
            }
            _ => {
                let next_ms = samples
                    .get(sample + 1)
                    .map_or(time_ms + 60_000, |next| next.0);
                let new_ms = rng.random_range(time_ms + 1..next_ms.max(time_ms + 2));
                if new_ms < next_ms {
                    samples.insert(sample + 1, (new_ms, rng.random_range(-100.0..1000.0)));
                }
                new_ms
            }
        };
        vec![(labels.clone(), time_ms)]
    }

    /// A series looks different from now on: all its samples go, and come as others.
    fn relabel(&mut self, at: usize) -> Vec<(Labels, i64)> {
        let (old, samples) = self.0.remove(at);
        let new = old.with("a", "7").with("job", "j9");
        let changed = [&old, &new].into_iter();
        let changed = changed.flat_map(|labels| {
            samples
                .iter()
                .map(|(time_ms, _)| (labels.clone(), *time_ms))
        });
        let changed = changed.collect();
        match self.0.binary_search_by(|(labels, _)| labels.cmp(&new)) {
            // There is one that looks so: it keeps its samples.
            Ok(_) => {}
            Err(place) => self.0.insert(place, (new, samples)),
        }
        changed
    }

    /// What an expression gives at a time, sorted; values as bits, or the error.
    fn answer(&self, query: &Query, at_ms: i64, settings: &Settings) -> Answer {
        let outcome = query.instant(at_ms, settings, self);
        let mut rows: Vec<(Labels, u64)> = match outcome.map_err(|error| error.to_string())?.value {
            Value::Scalar(value) => vec![(Labels::default(), value.to_bits())],
            Value::Vector(rows) => rows
                .into_iter()
                .map(|(labels, value)| (labels, value.to_bits()))
                .collect(),
            Value::String(_) | Value::Matrix(_) => Vec::new(),
        };
        rows.sort_unstable();
        Ok(rows)
    }
}

type Answer = Result<Vec<(Labels, u64)>, String>;

impl Source for Memory {
    fn select(
        &self,
        matchers: &[Matcher],
        _: i64,
        _: i64,
        _: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        let series = self.0.iter().map(|(labels, _)| labels);
        Ok(Found::among(series.enumerate(), matchers))
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        for (time_ms, value) in &self.0[handle].1 {
            if (from_ms..=to_ms).contains(time_ms) && take(&[*time_ms], &[*value]).is_break() {
                break;
            }
        }
        Ok(())
    }
}
