//! The segment files that are not being written: the next one, prepared
//! ahead, and old ones kept to be used again.
//!
//! A file becomes segment N+1 by being filled with zeros or reserved, and
//! synced, or by renaming a segment that is no longer needed; either way its name is made
//! durable before it is handed out, for a sync of a file says nothing about
//! its name. The header is written when the segment is taken into use.
//!
//! Making a file can take as long as the disk likes, so the shelf is locked
//! for moments only: a file in the making keeps nobody from the one that is
//! ready, nor from asking how much lies here. Makers take turns by a lock of
//! their own, which comes before the shelf.

use crate::base::error::{Error, Result};
use crate::base::names;
use crate::io::small::Context;
use crate::io::{Env, File};
use crate::log::options::LogOptions;
use crate::log::segment::{SegmentHeader, VERSION};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Old segments kept for use; more are removed.
const SPARES_MAX: usize = 1;

/// A file ready to become the current segment.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn File>,
    pub(crate) len_bytes: u64,
}

/// Makes and keeps segment files of one directory.
#[derive(Debug)]
pub(crate) struct Store {
    env: Env,
    dir: PathBuf,
    segment_bytes: u64,
    synced_often: bool,
    /// Number of the next file, locked while a file is made. Numbers are never
    /// reused.
    next_number: Mutex<u64>,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    prepared: Option<Prepared>,
    /// Numbers of old segments of the full length.
    spares: Vec<u64>,
}

impl Store {
    /// A store for `dir`, whose files all have numbers below `next_number`.
    pub(crate) fn new(env: &Env, dir: &Path, options: &LogOptions, next_number: u64) -> Self {
        Self {
            env: env.clone(),
            dir: dir.to_owned(),
            segment_bytes: options.segment_bytes,
            synced_often: options.synced_often,
            next_number: Mutex::new(next_number),
            shelf: Mutex::default(),
        }
    }

    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.dir.join(names::segment(number))
    }

    /// The prepared segment, made now if there is none.
    pub(crate) fn take(&self) -> Result<Prepared> {
        if let Some(prepared) = self.shelf.lock().prepared.take() {
            return Ok(prepared);
        }
        let mut next_number = self.next_number.lock();
        // Somebody may have been making one just now.
        let made = self.shelf.lock().prepared.take();
        made.map_or_else(|| self.prepare(&mut next_number), Ok)
    }

    /// Prepares the next segment unless that is done.
    pub(crate) fn prepare_ahead(&self) -> Result<()> {
        let mut next_number = self.next_number.lock();
        if self.shelf.lock().prepared.is_none() {
            let prepared = self.prepare(&mut next_number)?;
            self.shelf.lock().prepared = Some(prepared);
        }
        Ok(())
    }

    /// Takes back a file that is no longer needed. It is kept for reuse if it has
    /// the right length and the shelf is not full, otherwise removed. Neither needs
    /// to be durable: recovery recognises such a file and gives it back again.
    pub(crate) fn give_back(&self, number: u64) -> Result<()> {
        let path = self.path(number);
        let file = self.env.disk.open(&path);
        let len_bytes = file.and_then(|file| file.len_bytes());
        let len_bytes = len_bytes.context("cannot read an old log segment", &path)?;
        let mut shelf = self.shelf.lock();
        if len_bytes == self.segment_bytes && shelf.spares.len() < SPARES_MAX {
            shelf.spares.push(number);
            return Ok(());
        }
        drop(shelf);
        let removed = self.env.disk.remove(&path);
        removed.context("cannot remove an old log segment", &path)
    }

    /// Bytes of the files on the shelf.
    pub(crate) fn len_bytes(&self) -> u64 {
        let shelf = self.shelf.lock();
        let prepared = shelf.prepared.as_ref().map_or(0, |file| file.len_bytes);
        prepared + shelf.spares.len() as u64 * self.segment_bytes
    }

    fn prepare(&self, next_number: &mut u64) -> Result<Prepared> {
        let number = *next_number;
        let path = self.path(number);
        let failed = |error| Error::io("cannot prepare a log segment", &path, error);
        let disk = &self.env.disk;
        let spare = self.shelf.lock().spares.pop();
        let file = match spare {
            Some(spare) => {
                disk.rename(&self.path(spare), &path).map_err(failed)?;
                if self.synced_often {
                    disk.open_to_write(&path).map_err(failed)?
                } else {
                    disk.open_mapped(&path).map_err(failed)?
                }
            }
            None => {
                let file = if self.synced_often {
                    disk.create(&path, self.segment_bytes)
                } else {
                    disk.reserve(&path, self.segment_bytes)
                };
                let file = file.map_err(failed)?;
                // Now, off the path of any reply: the first group's sync
                // would have to write the whole file out.
                file.sync().map_err(failed)?;
                file
            }
        };
        disk.sync_dir(&self.dir).map_err(failed)?;
        *next_number += 1;
        Ok(Prepared {
            number,
            file,
            len_bytes: self.segment_bytes,
        })
    }
}

/// The header of a prepared segment that the log goes on in.
pub(crate) fn new_header(
    env: &Env,
    prepared: &Prepared,
    first_sequence: u64,
    synced: u64,
    start: u64,
) -> SegmentHeader {
    SegmentHeader {
        version: VERSION,
        // The low half of sixty-four random bits.
        salt: env.random.next_u64() as u32,
        number: prepared.number,
        first_sequence,
        synced,
        start,
        created_ms: env.clock.now_ms(),
    }
}
