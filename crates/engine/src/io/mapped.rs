//! A file written through a shared mapping: the one file of the engine with
//! `unsafe`.
//!
//! Before the kernel writes dirty mapped pages out it write-protects each of
//! them, which interrupts all cores that write through the mapping, once a page.
//! So pages that are full leave the mapping before a sync, all together, and
//! nobody is interrupted for them: a load with a sync each second took a quarter
//! less processor time for it. The page under way stays.
//!
//! Touching a mapped page kills the process with SIGBUS if the page has lost
//! its place in the file. Two things could do that. The file got shorter: the
//! directory lock keeps other Latewoods away, and [`File::truncate`] refuses a
//! mapped file; cutting a live log segment by hand is the operator's mistake.
//! The disk has no room for a page that was never written: that is why
//! [`Disk::reserve`] allocates every byte, and writes them all where the file
//! system cannot allocate.
//!
//! Tested by `tests/disk_contract.rs`.

use memmap2::{MmapRaw, UncheckedAdvice};
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The size of the largest pages of memory, or a multiple.
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
    /// Takes the pages out of the mapping, if the system will; the file keeps
    /// what was written to them, and who touches one gets it back.
    #[expect(unsafe_code, reason = "a private mapping would lose what was written")]
    pub(super) fn unmap(&self) {
        let (at, len) = (self.pages.start, self.pages.len());
        // SAFETY: `map_raw` makes mappings that are shared with a file. To drop
        // pages of such a mapping changes no byte of the file nor of the mapping
        // (madvise(2), MADV_DONTNEED), whoever writes to it meanwhile.
        let outcome = unsafe {
            self.map
                .unchecked_advise_range(UncheckedAdvice::DontNeed, at, len)
        };
        // Without it a sync only takes longer.
        drop(outcome);
    }
}
