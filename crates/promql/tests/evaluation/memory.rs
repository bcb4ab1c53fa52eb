//! Series in memory, for tests.

use latewood_promql::labels::{Labels, METRIC};
use latewood_promql::parse_selector;
use latewood_promql::source::{
    Found, Hold, Interrupt, Matcher, STALE_BITS, Samples, Selection, Source, SourceError, Take,
    TakeSome, TakeTogether, Together,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Series in the order of their labels.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) series: Vec<(Labels, Samples)>,
    /// After how many reads the query is interrupted; 0 is never.
    pub(crate) reads_max: usize,
    /// At which check the query is cancelled; 0 is never.
    pub(crate) checks_max: usize,
    /// The series whose samples are damaged.
    pub(crate) damaged: Option<usize>,
    /// How many series it hands out at a time to who takes some after others; 0 is all.
    pub(crate) turn: usize,
    /// How many samples it knows together; 0 is none.
    pub(crate) frame: usize,
    turns: AtomicUsize,
    reads: AtomicUsize,
    checks: AtomicUsize,
}

impl Memory {
    /// Series of one line each: a selector, then values from time 0 on, `step_ms` apart. `_` is no
    /// sample, `stale` a stale mark, `1+2x3` the values 1 3 5 7, `_x3` three times no sample.
    pub(crate) fn load(step_ms: i64, text: &str) -> Self {
        let mut memory = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let name_end = line
                .rfind('}')
                .map_or_else(|| line.find(' ').unwrap(), |at| at + 1);
            let (series, values) = line.split_at(name_end);
            let mut samples = Samples::default();
            let mut time_ms = 0;
            for value in values.split_whitespace().flat_map(expand) {
                if let Some(value) = value {
                    samples.timestamps.push(time_ms);
                    samples.values.push(value);
                }
                time_ms += step_ms;
            }
            memory.add(labels(series), samples);
        }
        memory
    }

    /// How often a query asked whether it must end, since this was asked last.
    pub(crate) fn take_checks(&self) -> usize {
        self.checks.swap(0, Ordering::Relaxed)
    }

    /// How often it handed out some of its series.
    pub(crate) fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&mut self, labels: Labels, samples: Samples) {
        let at = self.series.partition_point(|(held, _)| *held < labels);
        self.series.insert(at, (labels, samples));
    }
}

/// The labels of `metric{a="b"}`.
pub(crate) fn labels(text: &str) -> Labels {
    if text == "{}" {
        return Labels::default();
    }
    let matchers = parse_selector(text).unwrap();
    let pairs: Vec<(String, String)> = matchers
        .iter()
        .map(|matcher| {
            let latewood_wire::selector::Test::Equal(value) = &matcher.test else {
                panic!("{text} has a condition that is not =");
            };
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(&matcher.name), text(value))
        })
        .collect();
    Labels::from_pairs(pairs.iter().map(|(name, value)| (&**name, &**value)))
}

/// The values of one word.
fn expand(word: &str) -> Vec<Option<f64>> {
    if let Some(times) = word.strip_prefix("_x") {
        return vec![None; times.parse().unwrap()];
    }
    if let Some((first, rest)) = word.split_once('+')
        && let Some((by, times)) = rest.split_once('x')
    {
        let (first, by): (f64, f64) = (first.parse().unwrap(), by.parse().unwrap());
        let times: usize = times.parse().unwrap();
        return (0..=times).map(|at| Some(first + by * at as f64)).collect();
    }
    vec![match word {
        "_" => None,
        "stale" => Some(f64::from_bits(STALE_BITS)),
        _ => Some(word.parse().unwrap()),
    }]
}

/// What is known of values that are no NaN.
fn known(values: &[f64]) -> Together {
    Together {
        count: values.len() as u64,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        sum: values.iter().sum::<f64>() + 0.0,
        is_whole: Some(
            (values.iter())
                .all(|value| value.fract() == 0.0 && value.to_bits() != (-0.0_f64).to_bits()),
        ),
    }
}

impl Source for Memory {
    fn select(
        &self,
        matchers: &[Matcher],
        _: i64,
        _: i64,
        _: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        let series = self.series.iter().map(|(labels, _)| labels);
        Ok(Found::among(series.enumerate(), matchers))
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.damaged == Some(handle) {
            return Err(SourceError("block 7 is damaged".to_owned()));
        }
        let samples = &self.series[handle].1;
        let first = samples.timestamps.partition_point(|t| *t < from_ms);
        let end = samples.timestamps.partition_point(|t| *t <= to_ms);
        if first < end {
            // Nothing is left to end.
            let _ = take(&samples.timestamps[first..end], &samples.values[first..end]);
        }
        Ok(())
    }

    fn read_together(
        &self,
        handle: usize,
        (from_ms, to_ms): (i64, i64),
        together: &mut TakeTogether<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        let samples = &self.series[handle].1;
        let frame = self.frame.max(1);
        // A part of them first, as chunks are.
        let all = &samples.values[..];
        let is_all = self.frame > 0
            && samples
                .timestamps
                .first()
                .is_some_and(|first| *first >= from_ms)
            && samples.timestamps.last().is_some_and(|last| *last <= to_ms)
            && !all.iter().any(|value| value.is_nan());
        let together_all = Together {
            is_whole: None,
            ..known(all)
        };
        if is_all && together(&together_all) {
            return Ok(());
        }
        let frames = samples.timestamps.chunks(frame);
        for (times, values) in frames.zip(samples.values.chunks(frame)) {
            let (first_ms, last_ms) = (times[0].max(from_ms), times[times.len() - 1].min(to_ms));
            let is_inside = first_ms == times[0] && last_ms == times[times.len() - 1];
            let is_known = self.frame > 0 && !values.iter().any(|value| value.is_nan());
            if is_inside && is_known && together(&known(values)) {
                continue;
            }
            self.read(handle, first_ms, last_ms, take)?;
        }
        Ok(())
    }

    fn is_large(&self, _: usize) -> bool {
        self.turn > 0
    }

    fn select_some(
        &self,
        Selection {
            matchers,
            from_ms,
            to_ms,
            ..
        }: Selection<'_>,
        _: &[String],
        hold: &mut Hold<'_>,
        take: &mut TakeSome<'_>,
    ) -> Result<bool, SourceError> {
        let found = self.select(matchers, from_ms, to_ms, hold)?;
        if found.len() <= self.turn {
            return Ok(false);
        }
        for some in found.chunks(self.turn) {
            self.turns.fetch_add(1, Ordering::Relaxed);
            if hold(1000).is_break() || take(some.to_vec()).is_break() {
                break;
            }
        }
        Ok(true)
    }

    fn late(&self, handle: usize) -> u64 {
        handle as u64
    }

    fn check(&self) -> Result<(), Interrupt> {
        let checks = self.checks.fetch_add(1, Ordering::Relaxed) + 1;
        let is_over = |count: usize, max: usize| max > 0 && count >= max;
        let reads = self.reads.load(Ordering::Relaxed);
        if is_over(reads, self.reads_max) || is_over(checks, self.checks_max) {
            Err(Interrupt::Canceled)
        } else {
            Ok(())
        }
    }
}

/// The metric's name and the other labels, as one writes them.
pub(crate) fn shown(labels: &Labels) -> String {
    let rest = labels.without(|name| name == METRIC.as_bytes());
    match (labels.metric(), rest.is_empty()) {
        ("", _) => rest.to_string(),
        (metric, true) => metric.to_owned(),
        (metric, false) => format!("{metric}{rest}"),
    }
}
