//! The bare disk: writes of a given size, each with its fdatasync, into a file whose every byte
//! has been written before, as a recycled log segment.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::base::error::{Doing, Result};

const FILE_BYTES: usize = 16 * 1024 * 1024;

/// A zero-written file on the disk under test.
#[derive(Debug)]
pub(crate) struct RawFile(File);

impl RawFile {
    /// Writes the file full of zeros into `dir` and syncs it.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        let doing = "prepare a raw file";
        let file = File::create(dir.join("raw")).doing(doing)?;
        file.write_all_at(&vec![0; FILE_BYTES], 0).doing(doing)?;
        file.sync_all().doing(doing)?;
        Ok(RawFile(file))
    }

    /// Records the times of `count` writes, one after the other, in nanoseconds.
    pub(crate) fn write_and_sync(
        &self,
        size_bytes: usize,
        count: u64,
        times_ns: &mut Histogram<u64>,
    ) -> Result<()> {
        let doing = "write to the bare disk";
        let bytes = vec![0xa5; size_bytes.clamp(1, FILE_BYTES)];
        let places = (FILE_BYTES / bytes.len()) as u64;
        for number in 0..count {
            let offset = number % places * bytes.len() as u64;
            let began = Instant::now();
            self.0.write_all_at(&bytes, offset).doing(doing)?;
            self.0.sync_data().doing(doing)?;
            times_ns.saturating_record(began.elapsed().as_nanos() as u64);
        }
        Ok(())
    }
}
