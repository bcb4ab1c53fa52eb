//! A file written through a shared mapping. This and `mapped/` are the one place of
//! the engine with `unsafe`.
//!
//! Before the kernel writes dirty mapped pages out it write-protects each of
//! them, which interrupts the cores that this process runs on, once a page. So
//! pages that are full leave the mapping before a sync, all together and at a few
//! interrupts: a load with a sync each second took a quarter less processor time
//! for it. The page under way stays.
//!
//! A mapped page that cannot be had would kill the process with SIGBUS. [`fault`]
//! makes it an answer, and the write is tried by a system call, whose error says
//! why. That happens where
//!
//! - the disk does not read a page that is not in memory: one of a segment that is
//!   used again, or one that the kernel dropped;
//! - there is no space. [`super::Disk::reserve`] allocates every byte, and writes them
//!   all where the file system cannot allocate. A file system that copies on write
//!   (btrfs, XFS for shared extents) needs space for an allocated page nevertheless;
//! - the file system shut down after an error of its own;
//! - the file got shorter. The directory lock keeps other Latewoods away, and
//!   [`super::File::truncate`] refuses a mapped file, so that was the operator.
//!
//! Tested here and by `tests/disk_contract.rs`.

mod fault;

use memmap2::{MmapRaw, UncheckedAdvice};
use std::ops::Range;
use std::sync::Arc;
use std::{fs, io};

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

/// What came of a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// The bytes belong to the kernel.
    Copied,
    /// They do not fit into the mapping.
    Outside,
    /// A page could not be had: some of the bytes may be in the file, and the mapping
    /// must not be used again.
    Lost,
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
        fault::install();
        Ok(Self {
            map: Arc::new(MmapRaw::map_raw(file)?),
            written: 0,
            taken: 0,
        })
    }

    /// Copies `bytes` to `offset`.
    #[expect(unsafe_code, reason = "a shared mapping is raw memory")]
    pub(super) fn put(&mut self, bytes: &[u8], offset: u64) -> Put {
        let map = &self.map;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(bytes.len());
        if end > map.len() {
            return Put::Outside;
        }
        // SAFETY: the range lies inside the mapping, of a whole file (both checked
        // above and in `new`). The mapping is lent to nobody but `Full`, which neither
        // reads nor writes it, and `&mut self` keeps other writers away.
        let is_copied = unsafe { fault::copy(map, bytes, start) };
        self.written = self.written.max(end);
        if is_copied { Put::Copied } else { Put::Lost }
    }

    /// How much of the file is mapped.
    pub(super) fn len_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// The pages that filled up since the last call.
    pub(super) fn take_full(&mut self) -> Option<Full> {
        let pages = self.taken..self.written - self.written % PAGE_BYTES;
        self.taken = pages.end;
        let map = || Arc::clone(&self.map);
        (!pages.is_empty()).then(|| Full { map: map(), pages })
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
            assert_eq!(mapped.put(&vec![1; len], at as u64), Put::Copied);
            let full = mapped.take_full()?;
            full.unmap().unwrap();
            Some(full.pages)
        };
        assert_eq!(leaving(0, 100), None);
        assert_eq!(leaving(100, 3 * PAGE_BYTES), Some(0..3 * PAGE_BYTES));
        assert_eq!(leaving(5, 10), None);
        let next = 3 * PAGE_BYTES..4 * PAGE_BYTES;
        assert_eq!(leaving(3 * PAGE_BYTES + 100, PAGE_BYTES), Some(next));
        let outside = mapped.put(&[1, 2], 8 * PAGE_BYTES as u64 - 1);
        assert_eq!(outside, Put::Outside);
    }

    /// The file got shorter, which is the one way to lose a page on any file system.
    #[test]
    fn a_page_that_cannot_be_had_is_told_and_harms_no_other_mapping() {
        let file = |len: usize| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![0; len]).unwrap();
            file
        };
        let (cut, whole) = (file(4 * PAGE_BYTES), file(4 * PAGE_BYTES));
        let mut lost = Mapped::new(&cut).unwrap();
        let mut kept = Mapped::new(&whole).unwrap();
        assert_eq!(lost.put(&[1; 100], 0), Put::Copied);
        cut.set_len(PAGE_BYTES as u64).unwrap();
        let over_the_end = PAGE_BYTES as u64 - 10;
        for _ in 0..2 {
            assert_eq!(kept.put(&[2; 3 * PAGE_BYTES], 5), Put::Copied);
            let mut again = Mapped::new(&cut).unwrap();
            assert_eq!(again.put(&[3; 20], 0), Put::Copied);
            assert_eq!(lost.put(&[1; 100], over_the_end), Put::Lost);
            if let Some(full) = lost.take_full() {
                full.unmap().unwrap();
            }
            // As after a start, with what was mapped before.
            cut.set_len(4 * PAGE_BYTES as u64).unwrap();
            lost = Mapped::new(&cut).unwrap();
            assert_eq!(lost.put(&[1; 100], over_the_end), Put::Copied);
            cut.set_len(PAGE_BYTES as u64).unwrap();
        }
    }
}
