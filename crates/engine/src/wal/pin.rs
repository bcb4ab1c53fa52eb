//! Keeping a log still while it is copied.
//!
//! A pinned log goes on growing and being trimmed, but no segment is given
//! back: those that held groups at the pin go on holding them under their
//! names until the last pin is gone.

use super::writer::Wal;
use std::path::PathBuf;

/// While it lives, no segment is used again or removed.
#[derive(Debug)]
pub(crate) struct Pin<'a>(&'a Wal);

impl Wal {
    /// Pins the log.
    pub(crate) fn pin(&self) -> Pin<'_> {
        self.tail.lock().pins += 1;
        Pin(self)
    }
}

impl Pin<'_> {
    /// The segments, oldest first, and how many of their first bytes hold
    /// everything written so far. Those bytes do not change any more.
    pub(crate) fn segments(&self) -> Vec<(PathBuf, u64)> {
        let tail = self.0.tail.lock();
        let last = tail.segments.len().saturating_sub(1);
        let segments = tail.segments.iter().enumerate();
        let used = segments.map(|(index, segment)| {
            let path = self.0.store.path(segment.number);
            match index == last {
                true => (path, tail.offset),
                false => (path, segment.len_bytes),
            }
        });
        used.collect()
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.tail.lock().pins -= 1;
    }
}
