//! A compaction rule, computed from the samples of its source.

use std::collections::BTreeMap;

const AGGREGATORS: [&str; 8] = [
    "sum", "min", "max", "count", "first", "last", "avg", "range",
];

/// A rule and its destination.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) destination: String,
    pub(crate) aggregator: &'static str,
    pub(crate) bucket_ms: u64,
}

impl Rule {
    /// The rule of some number that follows from `number`.
    pub(crate) fn new(source: &str, number: usize, random: u64) -> Self {
        let aggregator = AGGREGATORS[random as usize % AGGREGATORS.len()];
        Self {
            destination: format!("{source}:{number}:{aggregator}"),
            aggregator,
            bucket_ms: 1 + random / 8 % 300,
        }
    }

    /// The samples that the destination must hold: those of closed buckets.
    pub(crate) fn rows(&self, source: &BTreeMap<u64, f64>) -> BTreeMap<u64, f64> {
        let mut buckets = BTreeMap::<u64, Vec<f64>>::new();
        for (at, value) in source {
            let bucket = at - at % self.bucket_ms;
            buckets.entry(bucket).or_default().push(*value);
        }
        // That of the newest sample is open.
        buckets.pop_last();
        let rows = buckets.into_iter();
        rows.map(|(at, values)| (at, self.aggregate(&values)))
            .collect()
    }

    fn aggregate(&self, values: &[f64]) -> f64 {
        let sum: f64 = values.iter().sum();
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self.aggregator {
            "sum" => sum,
            "min" => min,
            "max" => max,
            "count" => values.len() as f64,
            "first" => values[0],
            "last" => values[values.len() - 1],
            "avg" => sum / values.len() as f64,
            _ => max - min,
        }
    }
}
