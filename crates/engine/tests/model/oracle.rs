//! The database as a map of maps: the naive twin of the model test.
//!
//! It says what every write answers and what every read then sees. Samples
//! past the retention vanish at once, policies are resolved at once, nothing
//! is ever late. It shares nothing with the engine but `latewood-model` and
//! the types of the public interface.

use latewood_engine::{Append, Create, Defaults, Outcome, Refusal};
use latewood_model::{DuplicatePolicy, Sample, SeriesOptions};
use std::collections::BTreeMap;

/// All series by key.
#[derive(Clone, Default)]
pub(crate) struct Oracle {
    pub(crate) defaults: Defaults,
    pub(crate) series: BTreeMap<Vec<u8>, Series>,
}

/// One series.
#[derive(Clone, Default)]
pub(crate) struct Series {
    pub(crate) options: SeriesOptions,
    pub(crate) samples: BTreeMap<i64, f64>,
    pub(crate) expires_at_ms: Option<i64>,
    /// A sender made it, so it ends.
    pub(crate) is_sent: bool,
    /// A SUM made a NaN: whose bits it has is the processor's choice.
    pub(crate) summed_nan: bool,
}

impl Oracle {
    pub(crate) fn append(&mut self, append: &Append<'_>) -> Outcome {
        if append.timestamp < 0 {
            return Err(Refusal::InvalidTimestamp);
        }
        let default_policy = self.defaults.duplicate_policy;
        let series = match (self.series.get_mut(append.key), append.create) {
            (Some(series), _) => series,
            (None, Create::Never) => return Err(Refusal::NoSuchKey),
            (None, Create::Defaults) => self.insert(append.key, self.defaults.series.clone()),
            (None, Create::With(options)) => self.insert(append.key, options.clone()),
            (None, Create::Sent(options) | Create::Derived(options)) => {
                let series = self.insert(append.key, options.clone());
                series.is_sent = true;
                series
            }
            (None, Create::Labelled(bytes, read)) => {
                let options = SeriesOptions {
                    labels: read(bytes),
                    ..self.defaults.series.clone()
                };
                self.insert(append.key, options)
            }
        };
        let own = append.on_duplicate.or(series.options.duplicate_policy);
        let policy = own.unwrap_or(default_policy);
        series.append(append.timestamp, append.value, policy)
    }

    /// The newest sample of all that are not far ahead of the clock.
    pub(crate) fn usual_newest(&self) -> i64 {
        let newest = self.series.values().filter_map(Series::newest);
        newest.filter(|at| *at < NOW / 2).max().unwrap_or(0)
    }

    /// The keys of series that have ended: a retention of their own is past, or nothing is left.
    pub(crate) fn ended(&self) -> Vec<Vec<u8>> {
        let all = self.series.values();
        let mut newest: Vec<i64> = all.filter_map(Series::newest).collect();
        newest.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        // Three series agree on the time; of fewer than five, half of them.
        let needed = newest.len().div_ceil(2).clamp(1, 3);
        let now = newest
            .get(needed - 1)
            .map_or(i64::MIN, |agreed| NOW.min(*agreed));
        let all = self.series.iter();
        all.filter(|(_, series)| series.has_ended(now))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Appends the newest value and `delta`.
    pub(crate) fn increment(&mut self, key: &[u8], delta: f64, timestamp: i64) -> Outcome {
        let newest = self.series.get(key).and_then(|series| {
            let newest = series.samples.last_key_value();
            newest.map(|(&timestamp, &value)| (timestamp, value))
        });
        let (from, value) = newest.unwrap_or((0, 0.0));
        if timestamp < from {
            return Err(Refusal::OlderThanNewest);
        }
        if (value + delta).is_nan() {
            return Err(Refusal::SumIsNan);
        }
        self.append(&Append {
            key,
            timestamp,
            value: value + delta,
            on_duplicate: Some(DuplicatePolicy::Last),
            create: Create::Defaults,
        })
    }

    pub(crate) fn insert(&mut self, key: &[u8], options: SeriesOptions) -> &mut Series {
        let series = Series {
            options,
            ..Series::default()
        };
        self.series
            .entry(key.to_vec())
            .insert_entry(series)
            .into_mut()
    }
}

/// The simulated clock, which stands still.
const NOW: i64 = 1_700_000_000_000;
/// A day after it.
const HORIZON: i64 = NOW + 86_400_000;

impl Series {
    pub(crate) fn newest(&self) -> Option<i64> {
        self.samples.keys().next_back().copied()
    }

    fn has_ended(&self, now: i64) -> bool {
        let retention_ms = self.options.retention_ms;
        let slack_ms = (retention_ms / 16).clamp(60_000, 86_400_000);
        let is_past = self.newest().is_none_or(|newest| {
            let end = newest.saturating_add_unsigned(retention_ms);
            end.saturating_add_unsigned(slack_ms) < now
        });
        self.is_sent && retention_ms > 0 && is_past
    }

    fn append(&mut self, timestamp: i64, value: f64, policy: DuplicatePolicy) -> Outcome {
        if let Some(newest) = self.newest() {
            if policy == DuplicatePolicy::Last && self.ignores(timestamp, value, newest) {
                return Ok(newest);
            }
            if timestamp < self.floor() {
                return Err(Refusal::OlderThanRetention);
            }
        }
        let held = self.samples.get(&timestamp);
        let kept = match held {
            Some(&held) => policy.resolve(held, value).ok_or(Refusal::Duplicate)?,
            None => value,
        };
        self.summed_nan |= policy == DuplicatePolicy::Sum && held.is_some() && kept.is_nan();
        self.samples.insert(timestamp, kept);
        self.expire();
        Ok(timestamp)
    }

    fn ignores(&self, timestamp: i64, value: f64, newest: i64) -> bool {
        let rule = self.options.ignore;
        let on = rule.max_time_diff_ms > 0 || rule.max_value_diff > 0.0;
        let near = timestamp >= newest && timestamp.abs_diff(newest) <= rule.max_time_diff_ms;
        on && near && (value - self.samples[&newest]).abs() <= rule.max_value_diff
    }

    fn floor(&self) -> i64 {
        // Nothing further ahead of the clock than a day counts.
        let counted = self.samples.range(..=HORIZON).next_back();
        let counted = counted.map(|(at, _)| *at);
        match (counted, self.options.retention_ms) {
            (Some(newest), 1..) => newest.saturating_sub_unsigned(self.options.retention_ms),
            _ => i64::MIN,
        }
    }

    fn expire(&mut self) {
        self.samples = self.samples.split_off(&self.floor());
    }

    pub(crate) fn alter(&mut self, options: &SeriesOptions) {
        let encoding = self.options.encoding;
        self.options = options.clone();
        self.options.encoding = encoding;
        self.expire();
    }

    /// Removes `from..=to`; how many samples that were.
    pub(crate) fn delete(&mut self, from: i64, to: i64) -> u64 {
        let before = self.samples.len();
        self.samples.retain(|t, _| !(from..=to).contains(t));
        (before - self.samples.len()) as u64
    }

    pub(crate) fn all(&self) -> Vec<Sample> {
        let samples = self.samples.iter();
        samples.map(|(&t, &v)| Sample::new(t, v)).collect()
    }

    /// Whether `found` is what a full read must return.
    pub(crate) fn holds(&self, found: &[Sample]) -> bool {
        let same = |(a, (t, v)): (&Sample, (&i64, &f64))| {
            a.timestamp == *t && same_value(a.value, *v, self.summed_nan)
        };
        found.len() == self.samples.len() && found.iter().zip(&self.samples).all(same)
    }
}

/// Whether two values are one, bit for bit but for NaN that SUM made.
pub(crate) fn same_value(a: f64, b: f64, summed_nan: bool) -> bool {
    a.to_bits() == b.to_bits() || (summed_nan && a.is_nan() && b.is_nan())
}
