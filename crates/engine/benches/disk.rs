//! Ways to have a short record on disk, beside each other.
//!
//! `cargo bench -p latewood-engine --bench disk [DIRECTORY]` prints one line for
//! each size of a record and way to write it: the median and the 99th of a
//! hundred, in microseconds. The ways take turns, so that they meet the same
//! disk in the same mood, and each goes through a file whose every byte was
//! written before, as a log that is synced often does. *Direct* writes must be
//! whole blocks, so the last block, not full yet, is written again with each
//! record. The time of the write alone says what a submission queue
//! (io_uring) could save at most: system calls, not the disk's wait. DIRECTORY
//! (default: the system's temporary directory) decides which disk is measured.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

const FILE_BYTES: usize = 16 * 1024 * 1024;
/// What direct writes begin and end at.
const BLOCK_BYTES: usize = 4096;
const ROUNDS: usize = 2_000;

/// One way to write a record.
struct Way {
    name: &'static str,
    flags: OFlags,
    /// A sync of its own follows the write.
    syncs: bool,
    /// Whole blocks only.
    is_direct: bool,
}

fn main() -> Anything {
    let root = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(root)?;
    let way = |name, flags, syncs, is_direct| Way {
        name,
        flags,
        syncs,
        is_direct,
    };
    let ways = [
        way("write, no sync", OFlags::empty(), false, false),
        way("write + fdatasync", OFlags::empty(), true, false),
        way("O_DSYNC", OFlags::DSYNC, false, false),
        way("O_DIRECT + fdatasync", OFlags::DIRECT, true, true),
        way(
            "O_DIRECT + O_DSYNC",
            OFlags::DIRECT | OFlags::DSYNC,
            false,
            true,
        ),
    ];
    for size_bytes in [34, 1_500, 16_384, 65_536] {
        measure(dir.path(), &ways, size_bytes)?;
    }
    Ok(())
}

fn measure(dir: &Path, ways: &[Way], size_bytes: usize) -> Anything {
    let files: Vec<File> = ways
        .iter()
        .map(|way| prepared(&dir.join("file"), way.flags))
        .collect::<Anything<_>>()?;
    let memory = vec![7; size_bytes + 3 * BLOCK_BYTES];
    let aligned = memory.as_ptr().align_offset(BLOCK_BYTES);
    let mut times = vec![Vec::with_capacity(ROUNDS); ways.len()];
    for round in 0..ROUNDS {
        for (at, (way, file)) in ways.iter().zip(&files).enumerate() {
            let start = round * size_bytes % (FILE_BYTES / 2);
            let (start, end) = if way.is_direct {
                (
                    start / BLOCK_BYTES * BLOCK_BYTES,
                    (start + size_bytes).next_multiple_of(BLOCK_BYTES),
                )
            } else {
                (start, start + size_bytes)
            };
            let bytes = &memory[aligned..aligned + end - start];
            let begun = Instant::now();
            file.write_all_at(bytes, start as u64)?;
            if way.syncs {
                file.sync_data()?;
            }
            times[at].push(begun.elapsed());
        }
    }
    for (way, times) in ways.iter().zip(&mut times) {
        println!("{size_bytes} bytes, {}: {}", way.name, percentiles(times));
    }
    Ok(())
}

/// A file of zeros that are on disk.
fn prepared(path: &Path, flags: OFlags) -> Anything<File> {
    let file = File::create(path)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0)?;
    file.sync_all()?;
    let flags = flags.bits() as i32;
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_nanos() as f64 / 1e3;
    format!("{:.1} us, p99 {:.1}", at(50), at(99))
}
