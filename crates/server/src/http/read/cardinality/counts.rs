//! Counting series by label and value, and the greatest counts.
//!
//! Holds each label and each pair once; lists hold no more than is shown. Tested below.

use crate::http::answer::Answer;
use crate::labelled::KEY;
use latewood_engine::Extent;
use latewood_promql::labels::{Labels, METRIC};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Memory of a counted text beside its own: its place in a table that may be half empty.
const ENTRY_BYTES: usize = 96;

/// Series of each value of a label.
#[derive(Default)]
struct Label {
    values: HashMap<Box<str>, u64>,
    /// Series that have it.
    series: u64,
    /// What Prometheus would take for all of them.
    bytes: u64,
}

/// Series whose last sample is older than a time, or that have none.
struct Idle {
    since_ms: i64,
    series: u64,
    by_metric: HashMap<Box<str>, u64>,
}

/// Series of each value of each label, and how far all reach.
#[derive(Default)]
pub(super) struct Counts {
    /// `None` if nobody asks.
    idle: Option<Idle>,
    labels: HashMap<Box<str>, Label>,
    series: u64,
    pairs: u64,
    chunks: u64,
    span: Option<(i64, i64)>,
    /// Memory it holds, about.
    bytes: usize,
}

impl Counts {
    /// Counts `series`, and those without samples at or after `idle_since_ms`; `check` is asked
    /// after each of them, with the memory held by now.
    ///
    /// # Errors
    /// The first one of `check`.
    pub(super) fn of(
        series: impl Iterator<Item = Result<(Labels, Extent), Answer>>,
        idle_since_ms: Option<i64>,
        mut check: impl FnMut(usize) -> Result<(), Answer>,
    ) -> Result<Self, Answer> {
        let idle = idle_since_ms.map(|since_ms| Idle {
            since_ms,
            series: 0,
            by_metric: HashMap::new(),
        });
        let mut counts = Self {
            idle,
            ..Self::default()
        };
        for looked_at in series {
            let (labels, extent) = looked_at?;
            counts.add(&labels, extent);
            counts.bytes += match &mut counts.idle {
                Some(idle) => idle.add(&labels, extent),
                None => 0,
            };
            check(counts.bytes)?;
        }
        Ok(counts)
    }

    fn add(&mut self, labels: &Labels, extent: Extent) {
        self.series += 1;
        self.chunks += extent.chunks;
        self.span = match (self.span, extent.span) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        for (name, value) in labels.iter().filter(|(name, _)| *name != KEY) {
            if !self.labels.contains_key(name) {
                self.bytes += name.len() + ENTRY_BYTES;
                self.labels.insert(name.into(), Label::default());
            }
            let Some(label) = self.labels.get_mut(name) else {
                continue;
            };
            label.series += 1;
            label.bytes += encoded_bytes(name) + encoded_bytes(value);
            match label.values.get_mut(value) {
                Some(count) => *count += 1,
                None => {
                    self.bytes += value.len() + ENTRY_BYTES;
                    self.pairs += 1;
                    label.values.insert(value.into(), 1);
                }
            }
        }
    }
}

impl Idle {
    /// The memory that it takes more.
    fn add(&mut self, labels: &Labels, extent: Extent) -> usize {
        if extent.span.is_some_and(|(_, last)| last >= self.since_ms) {
            return 0;
        }
        self.series += 1;
        let mut metrics = labels.iter().filter(|(name, _)| *name == METRIC);
        let metric = metrics.next().map_or("", |(_, metric)| metric);
        match self.by_metric.get_mut(metric) {
            Some(count) => {
                *count += 1;
                0
            }
            None => {
                self.by_metric.insert(metric.into(), 1);
                metric.len() + ENTRY_BYTES
            }
        }
    }
}

/// What a text of a label takes in a series of Prometheus: its length and itself.
fn encoded_bytes(text: &str) -> u64 {
    let length = if text.len() < 255 { 1 } else { 4 };
    length + text.len() as u64
}

/// The greatest counts, each with what it counts.
type Greatest<T> = Vec<(u64, T)>;

/// The lists of an answer.
pub(super) struct Lists<'a> {
    by_metric: Greatest<&'a str>,
    values: Greatest<&'a str>,
    series: Greatest<&'a str>,
    bytes: Greatest<&'a str>,
    pairs: Greatest<(&'a str, &'a str)>,
    by_focus: Option<Greatest<&'a str>>,
    idle: Option<Greatest<&'a str>>,
}

impl<'a> Lists<'a> {
    /// The `top` greatest of each list, and of the values of `focus` unless that is empty.
    pub(super) fn of(counts: &'a Counts, focus: &str, top: usize) -> Self {
        let by_value = |label: &str| {
            let values = counts.labels.get(label).into_iter();
            let values = values.flat_map(|label| &label.values);
            greatest(values.map(|(value, count)| (*count, &**value)), top)
        };
        let by_label = |of: fn(&Label) -> u64| {
            let labels = counts.labels.iter();
            greatest(labels.map(|(name, label)| (of(label), &**name)), top)
        };
        let pairs = counts.labels.iter().flat_map(|(name, label)| {
            let values = label.values.iter();
            values.map(move |(value, count)| (*count, (&**name, &**value)))
        });
        Self {
            by_metric: by_value(METRIC),
            values: by_label(|label| label.values.len() as u64),
            series: by_label(|label| label.series),
            bytes: by_label(|label| label.bytes),
            pairs: greatest(pairs, top),
            by_focus: (!focus.is_empty()).then(|| by_value(focus)),
            idle: counts.idle.as_ref().map(|idle| {
                let metrics = idle.by_metric.iter();
                greatest(metrics.map(|(name, count)| (*count, &**name)), top)
            }),
        }
    }

    /// Bytes of all that is shown.
    pub(super) fn len_bytes(&self) -> usize {
        let lists = [&self.by_metric, &self.values, &self.series, &self.bytes];
        let asked = self.by_focus.iter().chain(&self.idle);
        let lists = lists.into_iter().chain(asked).flatten();
        let pairs = self
            .pairs
            .iter()
            .map(|(_, (name, value))| 2 * (name.len() + value.len()));
        let lengths = lists.map(|(_, name)| name.len()).chain(pairs);
        lengths.map(|length| length + ENTRY_BYTES).sum()
    }

    pub(super) fn shown(&self, counts: &Counts) -> Value {
        let show = |list: &Greatest<&str>| -> Value {
            let entries = list.iter();
            entries
                .map(|(count, name)| json!({"name": name, "value": count}))
                .collect()
        };
        // Either of a pair may contain `=`.
        let pairs = self.pairs.iter().map(|(count, (name, value))| {
            let text = format!("{name}={value}");
            json!({"name": text, "label": name, "labelValue": value, "value": count})
        });
        // As Prometheus has it where there is no sample.
        let (first, last) = counts.span.unwrap_or((i64::MAX, i64::MIN));
        let mut shown = json!({
            "headStats": {
                "numSeries": counts.series,
                "numLabelPairs": counts.pairs,
                "chunkCount": counts.chunks,
                "minTime": first,
                "maxTime": last,
            },
            "totalSeries": counts.series,
            "totalLabelValuePairs": counts.pairs,
            "seriesCountByMetricName": show(&self.by_metric),
            "labelValueCountByLabelName": show(&self.values),
            "seriesCountByLabelName": show(&self.series),
            "memoryInBytesByLabelName": show(&self.bytes),
            "seriesCountByLabelValuePair": pairs.collect::<Value>(),
        });
        if let Some(by_focus) = &self.by_focus {
            shown["seriesCountByFocusLabelValue"] = show(by_focus);
        }
        if let (Some(idle), Some(list)) = (&counts.idle, &self.idle) {
            shown["idleSince"] = json!(idle.since_ms);
            shown["seriesIdle"] = json!(idle.series);
            shown["seriesIdleByMetricName"] = show(list);
        }
        shown
    }
}

/// The `top` greatest counts, equal ones by name. Holds no more than these.
fn greatest<T: Ord>(counts: impl Iterator<Item = (u64, T)>, top: usize) -> Greatest<T> {
    let mut heap = BinaryHeap::new();
    for (count, name) in counts {
        heap.push(Reverse((count, Reverse(name))));
        if heap.len() > top {
            heap.pop();
        }
    }
    let sorted = heap.into_sorted_vec().into_iter();
    sorted
        .map(|Reverse((count, Reverse(name)))| (count, name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const EXTENT: Extent = Extent {
        chunks: 1,
        span: Some((5, 9)),
    };

    /// A series of the metric `m` whose label `n` is `number`.
    fn numbered(number: usize) -> (Labels, Extent) {
        let value = number.to_string();
        let labels = [("__name__", "m"), ("n", &*value)];
        (Labels::from_pairs(labels), EXTENT)
    }

    #[test]
    fn counting_ends_where_nobody_waits_or_memory_does() {
        let (seen, is_left) = (Cell::new(0), Cell::new(false));
        let series = (0..1_000_000).map(|number| {
            seen.set(number + 1);
            is_left.set(number == 99);
            Ok(numbered(number))
        });
        let counts = Counts::of(series, None, |_| {
            if is_left.get() {
                Err(Answer::busy("left"))
            } else {
                Ok(())
            }
        });
        assert_eq!(counts.err(), Some(Answer::busy("left")));
        assert_eq!(seen.get(), 100);
        // The memory that is told of grows with the pairs, not with the series.
        let most = Cell::new(0);
        let note = |bytes| {
            most.set(bytes);
            Ok(())
        };
        assert!(Counts::of((0..1000).map(|number| Ok(numbered(number))), None, note).is_ok());
        let once = most.get();
        assert!(once > 1000 * 64);
        let twice = (0..2000).map(|number| Ok(numbered(number % 1000)));
        assert!(Counts::of(twice, None, note).is_ok());
        assert_eq!(most.get(), once);
        let series = (0..1_000_000).map(|number| Ok(numbered(number)));
        let counts = Counts::of(series, None, |bytes| {
            if bytes > once {
                Err(Answer::busy("much"))
            } else {
                Ok(())
            }
        });
        assert_eq!(counts.err(), Some(Answer::busy("much")));
    }

    #[test]
    fn the_greatest_come_first_and_equal_ones_by_name() {
        let counts = [(1, "b"), (3, "c"), (1, "a"), (3, "d"), (2, "e")];
        let all = [(3, "c"), (3, "d"), (2, "e"), (1, "a"), (1, "b")];
        for top in 1..7 {
            let found = greatest(counts.into_iter(), top);
            assert_eq!(found, all[..top.min(5)], "{top}");
        }
    }
}
