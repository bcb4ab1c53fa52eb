//! The way in: batches by key, samples by reference, increments and copies.

pub(crate) mod append;
mod batch;
pub(crate) mod copy;
mod expire;
pub(crate) mod find;
pub(crate) mod increment;
mod rename;
pub(crate) mod resolved;
pub(crate) mod scratch;
mod series;

use crate::keyspace::core::Core;
use crate::read::Reader;
use crate::rules::Rules;
use std::sync::Arc;

/// Writes samples, series and keys.
pub(crate) struct Writer {
    core: Arc<Core>,
    rules: Arc<Rules>,
    reader: Arc<Reader>,
}

impl Writer {
    pub(crate) fn new(core: &Arc<Core>, rules: &Arc<Rules>, reader: &Arc<Reader>) -> Self {
        Self {
            core: core.clone(),
            rules: rules.clone(),
            reader: reader.clone(),
        }
    }
}
