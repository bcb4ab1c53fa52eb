//! The bare disk: writes of a given size, each with its fdatasync, into a file whose every byte
//! has been written before, as a recycled log segment.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::error::{Doing, Result};
use crate::load::histogram;

/// Size of the file that is written round and round.
const FILE_BYTES: usize = 16 * 1024 * 1024;

/// Times of `count` writes of `size_bytes` one after the other in `dir`, in nanoseconds.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write_and_sync(dir: &Path, size_bytes: usize, count: u64) -> Result<Histogram<u64>> {
    let doing = "write to the bare disk";
    let size_bytes = size_bytes.clamp(1, FILE_BYTES);
    let path = dir.join("raw");
    let file = File::create(&path).doing(doing)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0).doing(doing)?;
    file.sync_all().doing(doing)?;
    let bytes = vec![0xa5; size_bytes];
    let mut times_ns = histogram();
    let mut offset = 0;
    for _ in 0..count {
        let began = Instant::now();
        file.write_all_at(&bytes, offset as u64).doing(doing)?;
        file.sync_data().doing(doing)?;
        times_ns.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        offset += size_bytes;
        if offset + size_bytes > FILE_BYTES {
            offset = 0;
        }
    }
    std::fs::remove_file(&path).doing(doing)?;
    Ok(times_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_is_timed_and_the_file_goes_away() {
        let dir = tempfile::tempdir().unwrap();
        for size_bytes in [0, 100, FILE_BYTES + 1] {
            let began = Instant::now();
            let times_ns = write_and_sync(dir.path(), size_bytes, 3).unwrap();
            let all_ns = began.elapsed().as_nanos() as f64;
            assert_eq!(times_ns.len(), 3);
            // A histogram of another unit or range would show as times that cannot be.
            assert!(
                times_ns.min() > 100,
                "{} ns for a system call",
                times_ns.min()
            );
            assert!(times_ns.max() as f64 <= all_ns * 1.01);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
