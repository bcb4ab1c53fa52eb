//! Which metrics still have series: the metadata of the others gives way where there is no room.
//!
//! Tested by `tests/db_metadata.rs`.

use crate::keyspace::core::Core;

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
            .make_room(now_ns, |metric| self.has_series_of(metric));
    }

    /// Whether a series is named after `metric`, by its label or its key.
    fn has_series_of(&self, metric: &str) -> bool {
        let names = SUFFIXES.map(|suffix| [metric, suffix].concat());
        let mut names = names.iter().map(String::as_bytes);
        if names.clone().any(|name| self.names(name) != (None, false)) {
            return true;
        }
        let index = self.index.current();
        names.any(|name| index.posting(METRIC, name).is_some())
    }
}
