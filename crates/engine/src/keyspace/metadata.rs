//! Which metrics still have series: the metadata of the others gives way where there is no room.
//!
//! Tested by `tests/db_metadata.rs`.

use crate::keyspace::core::Core;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The label that names the metric of a series.
const METRIC: &[u8] = b"__name__";
/// What the names of series add to the name of their metric.
const SUFFIXES: [&str; 9] = [
    "", "_total", "_bucket", "_sum", "_count", "_created", "_info", "_gsum", "_gcount",
];

impl Core {
    /// Makes room for metadata that found none.
    pub(crate) fn make_room_for_metadata(&self) {
        let now_ns = self.env.clock.monotonic_ns();
        self.metadata
            .make_room(now_ns, |metrics| self.have_series(metrics));
    }

    /// Which of `metrics` some series is named after, by its label or its key. Where files cannot be
    /// read that may have some, all are taken to be there.
    fn have_series(&self, metrics: &[&str]) -> Vec<bool> {
        let by_key = |name: &Vec<u8>| self.names(name) != (None, false);
        let mut have: Vec<bool> = metrics
            .iter()
            .map(|metric| names_of(metric).any(|name| by_key(&name)))
            .collect();
        let index = self.index.current();
        let by_label = |name: &Vec<u8>| index.posting(METRIC, name).is_some();
        for (metric, has) in metrics.iter().zip(&mut have) {
            *has = *has || names_of(metric).any(|name| by_label(&name));
        }
        let filed = index.filed.clone();
        drop(index);
        let mut left: BTreeMap<Box<[u8]>, Vec<usize>> = BTreeMap::new();
        for (at, metric) in metrics.iter().enumerate().filter(|(at, _)| !have[*at]) {
            for name in names_of(metric) {
                left.entry(name.into()).or_default().push(at);
            }
        }
        let names: Vec<Box<[u8]>> = left.keys().cloned().collect();
        let read = filed.carrying(METRIC, &names, &mut |_, name, _| {
            left[name].iter().for_each(|&at| have[at] = true);
            ControlFlow::Continue(())
        });
        if read.is_err() {
            have.fill(true);
        }
        have
    }
}

/// The names that series of a metric have.
fn names_of(metric: &str) -> impl Iterator<Item = Vec<u8>> {
    SUFFIXES
        .iter()
        .map(move |suffix| [metric, suffix].concat().into_bytes())
}
