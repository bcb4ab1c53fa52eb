//! Series in memory, for unit tests of rules.
//!
//! Takes rows as the head of Prometheus does: in order, and of one time only the same value again.

use crate::evaluate::{Refused, Row, Storage};
use latewood_promql::labels::Labels;
use latewood_promql::source::{Found, Hold, Matcher, Source, SourceError, Take};
use std::collections::BTreeMap;

/// Series and their samples, in the order of their labels.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    places: BTreeMap<Labels, usize>,
    series: Vec<Samples>,
}

#[derive(Debug, Default)]
struct Samples {
    times_ms: Vec<i64>,
    values: Vec<f64>,
}

impl Memory {
    fn add(&mut self, row: &Row) -> Result<(), &'static str> {
        let next = self.series.len();
        let place = *self.places.entry(row.labels.clone()).or_insert(next);
        if place == next {
            self.series.push(Samples::default());
        }
        let series = &mut self.series[place];
        match series.times_ms.last() {
            Some(last_ms) if *last_ms > row.at_ms => Err("out of order sample"),
            Some(last_ms) if *last_ms == row.at_ms => {
                let held = series.values.last().map(|value| value.to_bits());
                if held == Some(row.value.to_bits()) {
                    Ok(())
                } else {
                    Err("duplicate sample for timestamp")
                }
            }
            _ => {
                series.times_ms.push(row.at_ms);
                series.values.push(row.value);
                Ok(())
            }
        }
    }
}

impl Storage for Memory {
    fn source(&self) -> Result<Box<dyn Source + '_>, String> {
        Ok(Box::new(self))
    }

    fn write(&mut self, rows: &[Row]) -> Result<Vec<Refused>, String> {
        let mut refused = Vec::new();
        for (row, of) in rows.iter().enumerate() {
            if let Err(why) = self.add(of) {
                let why = why.to_owned();
                refused.push(Refused { row, why });
            }
        }
        Ok(refused)
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
        let series = self.places.iter().map(|(labels, place)| (*place, labels));
        Ok(Found::among(series, matchers))
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        let series = &self.series[handle];
        let first = series
            .times_ms
            .partition_point(|time_ms| *time_ms < from_ms);
        let end = series.times_ms.partition_point(|time_ms| *time_ms <= to_ms);
        if first < end {
            // Nothing is left to end.
            let _ = take(&series.times_ms[first..end], &series.values[first..end]);
        }
        Ok(())
    }
}
