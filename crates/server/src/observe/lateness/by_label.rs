//! Late samples by the value of a chosen label: what comes late from a site, a firmware, a customer.
//!
//! Nothing is counted until a label is chosen, and anew when another one is. Labels are those that a
//! series has when its sample comes; they are looked up for late samples alone. Samples of series
//! without the label count under the empty value. Tested by `tests/http/lateness.rs`.

use super::ranking::{NAME_BYTES_MAX, Ranking};
use latewood_engine::Db;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct ByLabel {
    /// `None` where no label is chosen.
    pub(super) name: Option<Arc<str>>,
    pub(super) values: Ranking,
}

impl ByLabel {
    /// Chooses a label; an empty one is none.
    pub(super) fn choose(&mut self, name: &str) {
        if self.name.as_deref().unwrap_or_default() != name {
            self.name = Some(name.into()).filter(|name: &Arc<str>| !name.is_empty());
            self.values.clear();
        }
    }
}

/// The value that the series under `key` has of a label; empty if it has none.
pub(super) fn value_of(db: &Db, key: &[u8], label: &str) -> Vec<u8> {
    // What cannot be read, or was removed meanwhile, has no value that is known.
    let series = db.resolve(key).ok();
    let labels = series.and_then(|series| db.labels(&series).ok().flatten());
    let labels = labels.unwrap_or_default();
    let value = labels.iter().find(|(name, _)| *name == label.as_bytes());
    let value = value.map_or(&[][..], |(_, value)| value);
    // A longer one has no row, whatever it ends with.
    value[..value.len().min(NAME_BYTES_MAX + 1)].to_vec()
}
