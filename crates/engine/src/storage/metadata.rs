//! Metadata of metrics: type, help and unit, as senders tell them.
//!
//! Held in memory and kept in one small file, which is written anew when something has changed: in
//! the background, at FLUSHALL and at the end. What a sender repeats costs a lookup. It is not
//! samples: a damaged file moves to the quarantine, and the database opens without it.
//!
//! Invariants:
//! 1. It is bounded: a text that is too long, and what comes when no more is held, are left out and
//!    counted. Then metrics without series give way, so that what is told again finds room.
//! 2. A change is in the file after [`interval_ns`], whatever senders do; writing takes a bounded
//!    share of the disk.
//! 3. Under the lock that senders wait for, pointers are copied, never texts.
//!
//! Tested by `tests.rs` and by `tests/db_metadata.rs`.

mod file;
#[cfg(test)]
mod tests;

pub(crate) use file::read;

use crate::base::error::Result;
use crate::io::Env;
use latewood_model::Told;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Metrics.
const METRICS_MAX: usize = 65_536;
/// Bytes of a name or a text.
const TEXT_BYTES_MAX: usize = 4096;
/// Bytes of all names and texts.
const BYTES_MAX: usize = 16 << 20;
/// The least time between two writes of the file in the background.
const INTERVAL_NS: u64 = 1_000_000_000;
/// The same for each byte of the file: 1 MiB a second.
const INTERVAL_PER_BYTE_NS: u64 = 1_000_000_000 >> 20;
/// The least time between two searches for metrics without series, which look at each of them.
const ROOM_INTERVAL_NS: u64 = 10_000_000_000;
/// Metrics looked at before the lock is released for senders.
const PAGE: usize = 1024;

/// What a metric is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `counter`, `gauge`, `histogram`, ...
    pub kind: Box<str>,
    /// What it counts or measures.
    pub help: Box<str>,
    /// Its unit.
    pub unit: Box<str>,
}

/// Metrics by their names. Both are shared with readers.
pub(crate) type Metrics = BTreeMap<Arc<str>, Arc<Metadata>>;

/// Figures of the metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataStats {
    /// Metrics that have some.
    pub metrics: u64,
    /// Times that a sender's words were left out: too long, or no room.
    pub left_out: u64,
}

/// The metadata of all metrics.
#[derive(Default)]
pub(crate) struct MetadataStore {
    held: Mutex<Held>,
    /// When the background may write again, by the monotonic clock; held while the file is written.
    next_save_ns: Mutex<u64>,
}

#[derive(Default)]
struct Held {
    metrics: Metrics,
    /// Of names and texts.
    bytes: usize,
    left_out: u64,
    is_changed: bool,
    /// Something found no room since metrics without series were last looked for.
    lacks_room: bool,
    /// When they may be looked for again.
    next_look_ns: u64,
}

/// The right to write the file, which one thread has at a time.
pub(crate) struct Saving<'a> {
    store: &'a MetadataStore,
    next_save_ns: MutexGuard<'a, u64>,
}

impl Saving<'_> {
    /// As [`MetadataStore::save`].
    pub(crate) fn save(&mut self, env: &Env, dir: &Path) -> Result<()> {
        self.store.write(&mut self.next_save_ns, env, dir)
    }
}

impl Metadata {
    fn bytes(&self) -> usize {
        self.kind.len() + self.help.len() + self.unit.len()
    }

    /// Whether all that is told is known.
    fn knows(&self, told: Told<'_>) -> bool {
        let is_known = |held: &str, told: Option<&str>| told.is_none_or(|told| told == held);
        is_known(&self.kind, told.kind)
            && is_known(&self.help, told.help)
            && is_known(&self.unit, told.unit)
    }

    /// The same with what is told.
    fn with(&self, told: Told<'_>) -> Self {
        let text = |held: &str, told: Option<&str>| told.unwrap_or(held).into();
        Self {
            kind: text(&self.kind, told.kind),
            help: text(&self.help, told.help),
            unit: text(&self.unit, told.unit),
        }
    }
}

impl Held {
    /// Takes in what a sender says; false if there is no room for it.
    fn take(&mut self, metric: &str, told: Told<'_>) -> bool {
        let known = self.metrics.get(metric).cloned();
        if known.as_ref().is_some_and(|known| known.knows(told)) {
            return true;
        }
        let before = known
            .as_ref()
            .map_or(0, |known| metric.len() + known.bytes());
        let new = known.as_deref().unwrap_or(&Metadata::default()).with(told);
        let bytes = self.bytes - before + metric.len() + new.bytes();
        let has_place = known.is_some() || self.metrics.len() < METRICS_MAX;
        let has_room = has_place && bytes <= BYTES_MAX;
        if has_room {
            self.metrics.insert(metric.into(), Arc::new(new));
            self.bytes = bytes;
            self.is_changed = true;
        }
        has_room
    }
}

impl MetadataStore {
    /// Notes what a sender says of `metric`. Logarithmic.
    pub(crate) fn note(&self, metric: &str, told: Told<'_>) {
        let texts = [Some(metric), told.kind, told.help, told.unit];
        let mut texts = texts.iter().flatten();
        let is_fit = !metric.is_empty() && texts.all(|text| text.len() <= TEXT_BYTES_MAX);
        let mut held = self.held.lock();
        if !is_fit {
            held.left_out += 1;
        } else if !held.take(metric, told) {
            held.left_out += 1;
            held.lacks_room = true;
        }
    }

    /// What is known of `metric`.
    pub(crate) fn get(&self, metric: &str) -> Option<Arc<Metadata>> {
        self.held.lock().metrics.get(metric).cloned()
    }

    /// The first `count` metrics whose names are greater than `name`. Linear in their number.
    pub(crate) fn after(&self, name: &str, count: usize) -> Vec<(Arc<str>, Arc<Metadata>)> {
        let held = self.held.lock();
        let range = (Bound::Excluded(name), Bound::Unbounded);
        let metrics = held.metrics.range::<str, _>(range).take(count);
        metrics
            .map(|(name, one)| (name.clone(), one.clone()))
            .collect()
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let mut held = self.held.lock();
        held.is_changed |= !held.metrics.is_empty();
        held.metrics.clear();
        held.bytes = 0;
        held.lacks_room = false;
    }

    /// Forgets the metrics without series, of which `has_series` tells, if there was no room.
    /// Linear in the metrics, from time to time.
    pub(crate) fn make_room(&self, now_ns: u64, have_series: impl Fn(&[&str]) -> Vec<bool>) {
        let mut held = self.held.lock();
        if !held.lacks_room || now_ns < held.next_look_ns {
            return;
        }
        held.lacks_room = false;
        held.next_look_ns = now_ns + ROOM_INTERVAL_NS;
        drop(held);
        let mut last: Arc<str> = "".into();
        loop {
            let page = self.after(&last, PAGE);
            let Some((name, _)) = page.last() else { return };
            last = name.clone();
            let names: Vec<&str> = page.iter().map(|(name, _)| &**name).collect();
            let have = have_series(&names).into_iter();
            let unused = page.iter().zip(have).filter(|(_, has)| !has);
            let mut held = self.held.lock();
            let held = &mut *held;
            for ((name, _), _) in unused {
                if let Some(one) = held.metrics.remove(name) {
                    held.bytes -= name.len() + one.bytes();
                    held.is_changed = true;
                }
            }
        }
    }

    /// Its figures.
    pub(crate) fn stats(&self) -> MetadataStats {
        let held = self.held.lock();
        MetadataStats {
            metrics: held.metrics.len() as u64,
            left_out: held.left_out,
        }
    }

    /// Bytes of memory, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        let held = self.held.lock();
        // Two pointers with lengths in the tree, and two counts before each of both.
        let each = size_of::<(Arc<str>, Arc<Metadata>)>() + size_of::<Metadata>() + 32;
        held.bytes + held.metrics.len() * 2 * each
    }

    /// Reads the file of `dir`, if there is one.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged, `Io`.
    pub(crate) fn load(&self, env: &Env, dir: &Path) -> Result<()> {
        let Some(metrics) = file::read(env, dir)? else {
            return Ok(());
        };
        let mut held = self.held.lock();
        let bytes = metrics.iter().map(|(name, one)| name.len() + one.bytes());
        held.bytes = bytes.sum();
        held.metrics = metrics;
        Ok(())
    }

    /// Holds what the file of `from` has, if there is one, and nothing else; it is to be written.
    ///
    /// # Errors
    /// Those of [`MetadataStore::load`].
    pub(crate) fn take_over(&self, env: &Env, from: &Path) -> Result<()> {
        let before = self.held.lock().metrics.clone();
        self.load(env, from)?;
        let mut held = self.held.lock();
        held.is_changed |= held.metrics != before;
        Ok(())
    }

    /// Writes the file if something has changed.
    ///
    /// # Errors
    /// `Io`; then it is tried again at the next call.
    pub(crate) fn save(&self, env: &Env, dir: &Path) -> Result<()> {
        self.hold_saves().save(env, dir)
    }

    /// Keeps others from writing the file.
    pub(crate) fn hold_saves(&self) -> Saving<'_> {
        Saving {
            store: self,
            next_save_ns: self.next_save_ns.lock(),
        }
    }

    /// The same unless it was written a short time ago.
    ///
    /// # Errors
    /// Those of [`MetadataStore::save`]; then it is tried again after a while.
    pub(crate) fn save_if_due(&self, env: &Env, dir: &Path) -> Result<()> {
        // Where another thread writes it, a later turn looks again.
        let Some(mut next_save_ns) = self.next_save_ns.try_lock() else {
            return Ok(());
        };
        if env.clock.monotonic_ns() < *next_save_ns {
            return Ok(());
        }
        self.write(&mut next_save_ns, env, dir)
    }

    fn write(&self, next_save_ns: &mut u64, env: &Env, dir: &Path) -> Result<()> {
        let metrics = {
            let mut held = self.held.lock();
            if !std::mem::take(&mut held.is_changed) {
                return Ok(());
            }
            held.metrics.clone()
        };
        let bytes = file::encode(&metrics);
        let written = file::replace(env, dir, &bytes);
        *next_save_ns = env.clock.monotonic_ns() + interval_ns(bytes.len());
        written.inspect_err(|_| self.held.lock().is_changed = true)
    }
}

/// Time between two writes of a file of `file_bytes` in the background.
fn interval_ns(file_bytes: usize) -> u64 {
    INTERVAL_NS.max(file_bytes as u64 * INTERVAL_PER_BYTE_NS)
}
