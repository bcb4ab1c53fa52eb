//! A file written through a shared mapping: the one file of the engine with
//! `unsafe`.
//!
//! Before the kernel writes dirty mapped pages out it write-protects each of
//! them, which interrupts the cores that this process runs on, once a page. So
//! pages that are full leave the mapping before a sync, all together and at a few
//! interrupts: a load with a sync each second took a quarter less processor time
//! for it. The page under way stays.
//!
//! Touching a mapped page kills the process with SIGBUS if the page has lost
//! its place in the file. Two things could do that. The file got shorter: the
//! directory lock keeps other Latewoods away, and [`super::File::truncate`] refuses a
//! mapped file; cutting a live log segment by hand is the operator's mistake.
//! The disk is full when a page is first written: for this reason
//! [`super::Disk::reserve`] allocates every byte, and writes them all where the file
//! system cannot allocate.
//!
//! Tested here and by `tests/disk_contract.rs`.

use memmap2::{MmapRaw, UncheckedAdvice};
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A multiple of the size of a page, whatever the processor has for one.
const PAGE_BYTES: usize = 64 * 1024;

/// A mapping of all bytes that a file has.
#[derive(Debug)]
pub(super) struct Mapped {
    map: Arc<MmapRaw>,
    /// The end of the furthest write.
    written: usize,
    /// Pages up to here were handed out by `take_full`.
    taken: usize,
}

/// Pages of a mapping that nobody is likely to write to again.
pub(super) struct Full {
    map: Arc<MmapRaw>,
    /// In bytes.
    pages: Range<usize>,
}

impl Mapped {
    /// Maps `file`.
    ///
    /// # Errors
    /// When it is empty or its file system maps nothing.
    pub(super) fn new(file: &fs::File) -> io::Result<Self> {
        Ok(Self {
            map: Arc::new(MmapRaw::map_raw(file)?),
            written: 0,
            taken: 0,
        })
    }

    /// Copies `bytes` to `offset`, or says that they do not fit.
    pub(super) fn put(&mut self, bytes: &[u8], offset: u64) -> bool {
        let end = self.copy(bytes, offset);
        self.written = self.written.max(end.unwrap_or(0));
        end.is_some()
    }

    /// The pages that filled up since the last call.
    pub(super) fn take_full(&mut self) -> Option<Full> {
        let pages = self.taken..self.written - self.written % PAGE_BYTES;
        self.taken = pages.end;
        let map = || Arc::clone(&self.map);
        (!pages.is_empty()).then(|| Full { map: map(), pages })
    }

    /// Copies `bytes` to `offset` and says where they end, if they fit.
    #[expect(unsafe_code, reason = "a shared mapping is raw memory")]
    fn copy(&mut self, bytes: &[u8], offset: u64) -> Option<usize> {
        let map = &self.map;
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(bytes.len())?;
        if end > map.len() {
            return None;
        }
        // SAFETY: `offset + bytes.len()` lies inside the mapping (checked above).
        // The mapping is lent to nobody but `Full`, which neither reads nor writes
        // it, and `&mut self` keeps other writers away, so nothing in this process
        // reads or writes these bytes meanwhile, and `bytes` cannot overlap them.
        // The file keeps its length while mapped: `truncate` refuses a mapped file
        // and the directory lock keeps other processes away.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                map.as_mut_ptr().add(offset),
                bytes.len(),
            );
        }
        Some(end)
    }
}

impl Full {
    /// Takes the pages out of the mapping; the file keeps what was written to
    /// them, and who touches one gets it back.
    ///
    /// # Errors
    /// When the system will not: then nothing changed.
    #[expect(unsafe_code, reason = "a private mapping would lose what was written")]
    pub(super) fn unmap(&self) -> io::Result<()> {
        let (at, len) = (self.pages.start, self.pages.len());
        // SAFETY: `map_raw` makes mappings that are shared with a file. To drop
        // pages of such a mapping changes no byte of the file nor of the mapping
        // (madvise(2), MADV_DONTNEED), even during concurrent writes.
        unsafe {
            self.map
                .unchecked_advise_range(UncheckedAdvice::DontNeed, at, len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn pages_leave_once_and_when_they_are_full() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![0; 8 * PAGE_BYTES]).unwrap();
        let mut mapped = Mapped::new(&file).unwrap();
        let mut leaving = |at: usize, len: usize| {
            assert!(mapped.put(&vec![1; len], at as u64));
            let full = mapped.take_full()?;
            full.unmap().unwrap();
            Some(full.pages)
        };
        assert_eq!(leaving(0, 100), None);
        assert_eq!(leaving(100, 3 * PAGE_BYTES), Some(0..3 * PAGE_BYTES));
        assert_eq!(leaving(5, 10), None);
        let next = 3 * PAGE_BYTES..4 * PAGE_BYTES;
        assert_eq!(leaving(3 * PAGE_BYTES + 100, PAGE_BYTES), Some(next));
        assert!(!mapped.put(&[1, 2], 8 * PAGE_BYTES as u64 - 1));
    }
}
