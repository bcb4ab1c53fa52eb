//! The files of parked series as they stand now, one cell that publications replace: as with blocks
//! ([`crate::storage::block::CurrentBlocks`]), whoever took the set may read files that a later one
//! names no more.
//!
//! Tested by `recovery/tests/parked.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::io::Env;
use crate::io::waiting::is_waited_for;
use crate::storage::files::directory::series_file_path;
use crate::storage::files::manifest::Manifest;
pub(crate) use crate::storage::files::series_file::ParkedFile;
use latewood_model::SeriesId;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The files of each partition, the oldest first.
#[derive(Default)]
pub(crate) struct ParkedFiles(BTreeMap<u32, Vec<Arc<ParkedFile>>>);

/// The files of parked series of a database.
#[derive(Default)]
pub(crate) struct CurrentParked {
    files: RwLock<Arc<ParkedFiles>>,
    /// How often a thread read them for which others wait.
    waited_for: AtomicU64,
}

impl ParkedFiles {
    /// Those that `next` names: what is open in `held`, and the new ones.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `Unsupported`.
    pub(crate) fn open(env: &Env, dir: &Path, next: &Manifest, held: &Self) -> Result<Self> {
        let mut files = BTreeMap::new();
        for (&partition, named) in &next.partitions {
            let held = held.of_partition(partition);
            let open = |meta: &_| match held.iter().find(|file| file.meta() == meta) {
                Some(file) => Ok(file.clone()),
                None => {
                    let path = series_file_path(dir, meta.number);
                    ParkedFile::open(env, &path, meta).map(Arc::new)
                }
            };
            let open = named.parked.iter().map(open).collect::<Result<Vec<_>>>()?;
            if !open.is_empty() {
                files.insert(partition, open);
            }
        }
        Ok(Self(files))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of a partition, the oldest first.
    pub(crate) fn of_partition(&self, partition: u32) -> &[Arc<ParkedFile>] {
        self.0.get(&partition).map_or(&[], Vec::as_slice)
    }

    /// The newest one that has a row of a series.
    pub(crate) fn file_of(&self, id: SeriesId) -> Option<&Arc<ParkedFile>> {
        let files = self.of_partition(partition_of(id));
        files.iter().rev().find(|file| file.contains(id))
    }

    /// All files.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ParkedFile>> {
        self.0.values().flatten()
    }

    /// Bytes of memory that the open files take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.all().map(|file| file.memory_bytes()).sum()
    }
}

impl CurrentParked {
    /// Notes that this thread is about to read rows.
    pub(crate) fn note_read(&self) {
        if is_waited_for() {
            self.waited_for.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often a thread read rows for which others wait.
    pub(crate) fn waited_for(&self) -> u64 {
        self.waited_for.load(Ordering::Relaxed)
    }

    pub(crate) fn get(&self) -> Arc<ParkedFiles> {
        self.files.read().clone()
    }

    /// The newest file that has a row of a series.
    pub(crate) fn file_of(&self, id: SeriesId) -> Option<Arc<ParkedFile>> {
        self.files.read().file_of(id).cloned()
    }

    pub(crate) fn set(&self, files: Arc<ParkedFiles>) {
        *self.files.write() = files;
    }
}

/// The error of a parked series without a row.
#[cold]
pub(crate) fn no_row(id: SeriesId) -> Error {
    let text = format!("no file of parked series has series {}", id.0);
    Error::new(ErrorKind::Corrupt, text)
}
