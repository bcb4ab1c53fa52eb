//! Pinning the files of a database while it is copied.
//!
//! A pin covers the files that the manifest names at one moment, and the log as of
//! then. Reads and writes continue: new files are published, but pinned files keep
//! their names until the last pin is released. After a crash the next start removes
//! them, as all files that the manifest does not name.
//!
//! Invariant: the log is as long as the files of the manifest need it, and
//! begins no later than the manifest says. Both are taken under the manifest's
//! lock, and a log is only trimmed by what a manifest in force says.
//!
//! Tested by `tests/backup`.

use crate::base::error::Result;
use crate::base::names;
use crate::keyspace::store::Store;
use crate::log::{Log, Pinned};
use crate::storage::files::directory::{paths, read_manifest};
use crate::storage::files::manifest::Manifest;
use std::path::PathBuf;

/// Keeps the files that a manifest names until it is dropped.
pub(crate) struct FilesPin<'a> {
    store: &'a Store,
    /// The manifest as it is on disk, if there is one.
    pub(crate) manifest: Option<Manifest>,
    paths: Vec<PathBuf>,
}

impl Store {
    /// Pins the files of the manifest on disk and the log at the same moment.
    /// No shard may be locked.
    ///
    /// # Errors
    /// `Io`, `Corrupt` where the manifest cannot be read.
    pub(crate) fn pin<'a>(&'a self, log: &'a Log) -> Result<(FilesPin<'a>, Pinned<'a>)> {
        let dir = self.dir();
        let mut published = self.published.lock();
        // Not the one in memory: that may know of a removal of everything
        // already, whose manifest could not be written.
        let manifest = read_manifest(&self.env, dir)?.transpose();
        let manifest = manifest.map_err(|error| error.at(&dir.join(names::MANIFEST)))?;
        let paths = manifest.as_ref().map_or_else(Vec::new, |m| paths(dir, m));
        for path in &paths {
            *published.pinned.entry(path.clone()).or_insert(0) += 1;
        }
        let files = FilesPin {
            store: self,
            manifest,
            paths,
        };
        Ok((files, log.pin()))
    }
}

impl FilesPin<'_> {
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

impl Drop for FilesPin<'_> {
    fn drop(&mut self) {
        let mut published = self.store.published.lock();
        for path in &self.paths {
            if let Some(pins) = published.pinned.get_mut(path) {
                *pins -= 1;
                if *pins == 0 {
                    published.pinned.remove(path);
                }
            }
        }
        published.remove_unnamed(&self.store.env);
    }
}
