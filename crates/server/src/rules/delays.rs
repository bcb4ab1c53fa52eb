//! How late the samples come that a rule reads: of a few that arrive ([`Arrivals`]), those that one
//! of its selectors matches are counted by their delay.
//!
//! The delay of a sample is the time from when the rule would use it first, were `query_offset` 0,
//! until it came: its age, less an `offset` in the expression. So a `query_offset` that is longer
//! than a delay takes that sample in. Counts are kept of this day and the one before, and are those
//! of this process: after a restart they begin anew.
//!
//! Memory: [`Counts`] is 2 KiB for each rule that samples came for. Tested below and by
//! `tests/http/rules.rs`.
//!
//! [`Arrivals`]: crate::observe::Arrivals

use super::group::LiveGroup;
use crate::labelled;
use crate::observe::Picked;
use crate::state::Shared;
use latewood_engine::histogram::{bucket_of, longest_in};
use latewood_promql::engine::Settings;
use latewood_promql::labels::{Labels, METRIC};
use latewood_promql::reads::{Reads, Window};
use latewood_promql::source::{Matcher, passes};
use latewood_rules::Rule;
use latewood_wire::selector::Test;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

const DAY_MS: i64 = 24 * 3600 * 1000;
/// Buckets of each power of two, as a power of two: a delay is known to one part in eight.
const SPLIT_BITS: u32 = 3;
/// Delays from 49 days on share the last bucket.
const LONGEST_MS: u64 = (1 << 32) - 1;
const BUCKETS: usize = bucket_of(LONGEST_MS, SPLIT_BITS) + 1;
/// The share of samples that the offset which is proposed takes in.
const TAKEN_IN: f64 = 0.999;

/// The delays of one rule.
#[derive(Debug, Default)]
pub(crate) struct Delays(Mutex<Days>);

#[derive(Debug, Default)]
struct Days {
    /// The day of `now`, from the Unix epoch.
    day: i64,
    now: Counts,
    before: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    counts: Option<Box<[u32; BUCKETS]>>,
    samples: u64,
}

/// The delays of one rule, for readers. Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShownDelays {
    pub(crate) p50_s: f64,
    pub(crate) p99_s: f64,
    pub(crate) p999_s: f64,
    /// Samples that came.
    pub(crate) samples: u64,
    /// The `query_offset` that would have missed one in a thousand.
    pub(crate) query_offset_s: u64,
}

impl Counts {
    fn note(&mut self, delay_ms: u64, samples: u64) {
        self.samples += samples;
        let counts = self.counts.get_or_insert_with(|| Box::new([0; BUCKETS]));
        let at = bucket_of(delay_ms.min(LONGEST_MS), SPLIT_BITS);
        let more = u32::try_from(samples).unwrap_or(u32::MAX);
        match counts[at].checked_add(more) {
            Some(count) => counts[at] = count,
            // Shares stay as they are.
            None => counts.iter_mut().for_each(|count| *count /= 2),
        }
    }
}

impl Delays {
    /// Counts samples that came with one delay.
    fn note(&self, delay_ms: i64, samples: u64, now_ms: i64) {
        let mut days = self.0.lock();
        let day = now_ms.div_euclid(DAY_MS);
        if day != days.day {
            let ended = std::mem::take(&mut days.now);
            days.before = if day == days.day + 1 {
                ended
            } else {
                Counts::default()
            };
            days.day = day;
        }
        days.now.note(delay_ms.max(0).unsigned_abs(), samples);
    }

    /// How late samples came; `None` if there were none.
    pub(crate) fn shown(&self) -> Option<ShownDelays> {
        let days = self.0.lock();
        let mut sums = vec![0_u64; BUCKETS];
        for counts in [&days.now, &days.before] {
            let counts = counts.counts.iter().flat_map(|counts| counts.iter());
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += u64::from(*count));
        }
        let samples = days.now.samples + days.before.samples;
        drop(days);
        let all: u64 = sums.iter().sum();
        let quantile_ms = |share: f64| {
            let wanted = ((share * all as f64).ceil() as u64).max(1);
            let mut seen = 0;
            let found = sums.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            longest_in(found.unwrap_or(BUCKETS - 1), SPLIT_BITS)
        };
        let seconds = |share| quantile_ms(share) as f64 / 1000.0;
        (all > 0).then(|| ShownDelays {
            p50_s: seconds(0.5),
            p99_s: seconds(0.99),
            p999_s: seconds(TAKEN_IN),
            samples,
            query_offset_s: quantile_ms(TAKEN_IN).div_ceil(1000),
        })
    }
}

/// Which rules read which series.
#[derive(Default)]
pub(super) struct Readers {
    /// By the name of the metric that a selector asks for.
    by_metric: HashMap<Box<[u8]>, Vec<Arc<Reader>>>,
    /// Those with a selector that asks for none.
    of_any: Vec<Arc<Reader>>,
}

struct Reader {
    delays: Arc<Delays>,
    reads: Vec<Reading>,
}

struct Reading {
    matchers: Vec<Matcher>,
    /// How long after a sample a step uses it first, milliseconds.
    after_ms: i64,
}

impl Reading {
    /// The metric that it asks for.
    fn metric(&self) -> Option<&[u8]> {
        self.matchers
            .iter()
            .find_map(|matcher| match &matcher.test {
                Test::Equal(value) if *matcher.name == *METRIC.as_bytes() && !value.is_empty() => {
                    Some(&**value)
                }
                _ => None,
            })
    }
}

impl Readers {
    /// The rules of `groups`.
    pub(super) fn of(groups: &[Arc<LiveGroup>], settings: &Settings) -> Self {
        let mut all = Self::default();
        for group in groups {
            for (rule, delays) in group.group.rules.iter().zip(&group.delays) {
                all.add(rule, delays, settings);
            }
        }
        all
    }

    fn add(&mut self, rule: &Rule, delays: &Arc<Delays>, settings: &Settings) {
        // One that reads nothing has no delays.
        let reads = Reads::of(rule.query.expr(), settings).unwrap_or_default();
        let reads = reads
            .reads
            .into_iter()
            .filter_map(|read| match read.window {
                Window::Moving { back_min_ms, .. } => Some(Reading {
                    matchers: read.matchers,
                    after_ms: back_min_ms,
                }),
                // It uses no sample that comes.
                Window::Fixed { .. } => None,
            });
        let reader = Arc::new(Reader {
            delays: Arc::clone(delays),
            reads: reads.collect(),
        });
        let mut is_of_any = false;
        for read in &reader.reads {
            let Some(metric) = read.metric() else {
                is_of_any = true;
                continue;
            };
            let readers = self.by_metric.entry(metric.into()).or_default();
            let is_there = readers
                .last()
                .is_some_and(|last| Arc::ptr_eq(last, &reader));
            if !is_there {
                readers.push(Arc::clone(&reader));
            }
        }
        if is_of_any {
            self.of_any.push(reader);
        }
    }

    /// Counts samples for the rules that read their series.
    pub(super) fn note(&self, shared: &Shared, picked: &[Picked], now_ms: i64) {
        for one in picked {
            let db = &shared.db;
            let series = db.resolve(&one.key).ok();
            // It may be gone again.
            let Some(labels) = series.and_then(|series| db.labels(&series).ok()?) else {
                continue;
            };
            self.note_one(&labelled::shown(&labels, &one.key), one, now_ms);
        }
    }

    fn note_one(&self, labels: &Labels, one: &Picked, now_ms: i64) {
        let of_metric = self.by_metric.get(labels.metric().as_bytes());
        let of_metric = of_metric.map_or(&[][..], |readers| readers);
        let others = self.of_any.iter();
        let others = others.filter(|other| !of_metric.iter().any(|one| Arc::ptr_eq(one, other)));
        for reader in of_metric.iter().chain(others) {
            let reads = reader.reads.iter();
            let reads = reads.filter(|read| passes(&read.matchers, labels));
            let delay_ms = reads
                .map(|read| one.age_ms.saturating_sub(read.after_ms))
                .max();
            if let Some(delay_ms) = delay_ms {
                reader.delays.note(delay_ms, one.stands_for, now_ms);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_rules::RuleFile;

    const NOW_MS: i64 = 20_000 * DAY_MS;

    fn delays(ages_ms: &[(i64, u64)]) -> Delays {
        let delays = Delays::default();
        for (age_ms, samples) in ages_ms {
            delays.note(*age_ms, *samples, NOW_MS);
        }
        delays
    }

    #[test]
    fn the_offset_takes_in_all_but_one_in_a_thousand() {
        assert_eq!(Delays::default().shown(), None);
        let shown = delays(&[(-5, 600), (900, 390), (60_000, 9), (3_600_000, 1)])
            .shown()
            .unwrap();
        let at_most = |given: f64, true_s: f64| {
            assert!(
                (true_s..=true_s * 1.125).contains(&given),
                "{given} {true_s}"
            );
        };
        assert_eq!((shown.p50_s, shown.samples), (0.0, 1000));
        at_most(shown.p99_s, 0.9);
        at_most(shown.p999_s, 60.0);
        at_most(shown.query_offset_s as f64, 60.0);
    }

    #[test]
    fn two_days_are_kept_and_counts_do_not_overflow() {
        let delays = delays(&[(1000, 7)]);
        let samples = || delays.shown().unwrap().samples;
        delays.note(1000, 1, NOW_MS + DAY_MS);
        assert_eq!(samples(), 8);
        delays.note(1000, 1, NOW_MS + 2 * DAY_MS);
        assert_eq!(samples(), 2);
        delays.note(1000, 1, NOW_MS + 9 * DAY_MS);
        assert_eq!(samples(), 1);
        for _ in 0..5 {
            delays.note(1000, u64::from(u32::MAX), NOW_MS + 9 * DAY_MS);
        }
        assert!(delays.shown().unwrap().p50_s >= 1.0);
    }

    #[test]
    fn a_sample_counts_once_for_each_rule_that_reads_it() {
        let text = "
groups:
- name: g
  rules:
  - {record: a, expr: 't - t offset 1m'}
  - {record: b, expr: 't{job=\"other\"}'}
  - {record: c, expr: 'count({job=\"x\"}) + t'}
  - {record: d, expr: 't offset 30s'}
  - {record: e, expr: 't @ 100'}
";
        let rules = RuleFile::parse(text, false).unwrap().groups.remove(0).rules;
        let delays: Vec<Arc<Delays>> = rules.iter().map(|_| Arc::default()).collect();
        let mut readers = Readers::default();
        for (rule, delays) in rules.iter().zip(&delays) {
            readers.add(rule, delays, &Settings::default());
        }
        let one = Picked {
            key: b"k"[..].into(),
            age_ms: 40_000,
            stands_for: 3,
        };
        let labels = Labels::from_pairs([("__name__", "t"), ("job", "x")]);
        readers.note_one(&labels, &one, NOW_MS);
        let shown = |at: usize| {
            let shown = delays[at].shown()?;
            Some((shown.samples, shown.query_offset_s / 10))
        };
        assert_eq!([shown(0), shown(1)], [Some((3, 4)), None]);
        assert_eq!([shown(2), shown(3)], [Some((3, 4)), Some((3, 1))]);
        assert_eq!(shown(4), None);
    }
}
