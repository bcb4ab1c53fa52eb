//! The read path: views of one series and of many, groups, and lists of labels.

pub(crate) mod group;
pub(crate) mod grouping;
pub(crate) mod listing;
pub(crate) mod many;
pub(crate) mod random_key;
pub(crate) mod rule_states;
mod select;
mod series;
pub(crate) mod spread;

use crate::keyspace::core::Core;
use crate::rules::Rules;
use spread::Readers;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Reads series, after its rules are up to date.
pub(crate) struct Reader {
    core: Arc<Core>,
    rules: Arc<Rules>,
    threads: Arc<Readers>,
    /// Reads of one series whose key exists.
    pub(crate) found: AtomicU64,
    /// Reads of one series whose key does not exist.
    pub(crate) missed: AtomicU64,
}

impl Reader {
    pub(crate) fn new(core: &Arc<Core>, rules: &Arc<Rules>, threads: &Arc<Readers>) -> Self {
        Self {
            core: core.clone(),
            rules: rules.clone(),
            threads: threads.clone(),
            found: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        }
    }
}
