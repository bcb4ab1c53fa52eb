//! What a process takes: processor, memory, bytes written, files, as the kernel counts them.
//!
//! Anonymous memory is that of the process alone: pages of files, such as those of a log or of
//! blocks, belong to the kernel and go when it needs room. Bytes written are those the process
//! made the kernel write to the disk, once for each page that became dirty: what a flash disk
//! wears. Files that were removed before the kernel wrote them out count all the same.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::base::error::{Doing, Error, Result};

/// Bytes of a block in the file attributes of the kernel, whatever the file system's own are.
const SECTOR_BYTES: u64 = 512;

/// What a process has taken since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_seconds: f64,
    pub(crate) written_bytes: u64,
}

/// What a directory holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Footprint {
    pub(crate) log_bytes: u64,
    /// Disk space of everything else: blocks, series, the manifest.
    pub(crate) data_bytes: u64,
    pub(crate) files: u64,
}

/// Looks at a process of this machine and user.
pub(crate) fn of(process: u32) -> Result<Usage> {
    Ok(Usage {
        cpu_seconds: cpu_seconds(&read(process, "stat")?)
            .ok_or_else(|| Error::new(format!("/proc/{process}/stat is another one")))?,
        written_bytes: field(&read(process, "io")?, "write_bytes:")
            .ok_or_else(|| Error::new(format!("/proc/{process}/io has no write_bytes")))?,
    })
}

/// Anonymous memory of a process that runs on this machine, bytes.
pub(crate) fn anonymous_bytes(process: u32) -> Result<u64> {
    field(&read(process, "status")?, "RssAnon:")
        .map(|kib| kib * 1024)
        .ok_or_else(|| Error::new(format!("/proc/{process}/status has no RssAnon")))
}

/// What lies in the data directory of a server; files that go meanwhile are passed over.
pub(crate) fn footprint(dir: &Path) -> Footprint {
    let mut found = Footprint::default();
    add(dir, false, &mut found);
    found
}

/// Writes the files below `dir` to the disk and takes them out of the page cache, so that
/// who reads them next reads the disk, as after the start of a machine.
pub(crate) fn forget_pages(dir: &Path) -> Result<()> {
    let doing = format!("take {} out of the page cache", dir.display());
    for entry in std::fs::read_dir(dir).doing(&doing)? {
        let path = entry.doing(&doing)?.path();
        if path.is_dir() {
            forget_pages(&path)?;
            continue;
        }
        let file = std::fs::File::open(&path).doing(&doing)?;
        file.sync_all().doing(&doing)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).doing(&doing)?;
    }
    Ok(())
}

fn add(dir: &Path, is_log: bool, found: &mut Footprint) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(about) if about.is_dir() => {
                add(
                    &entry.path(),
                    is_log || is_log_name(&entry.file_name()),
                    found,
                );
            }
            Ok(about) => {
                let bytes = about.blocks() * SECTOR_BYTES;
                *(if is_log {
                    &mut found.log_bytes
                } else {
                    &mut found.data_bytes
                }) += bytes;
                found.files += 1;
            }
            Err(_) => {}
        }
    }
}

/// Prometheus has a second log, for late samples.
fn is_log_name(name: &OsStr) -> bool {
    name == "wal" || name == "wbl"
}

fn read(process: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{process}/{file}");
    fs::read_to_string(&path).doing(format!("read {path}"))
}

/// The number behind `name`, whatever unit follows it.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Sum of utime and stime, the 14th and 15th field; the second is a name in brackets that may
/// hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut ticks = rest.split_whitespace().skip(11);
    let user: u64 = ticks.next()?.parse().ok()?;
    let system: u64 = ticks.next()?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Some((user + system) as f64 / per_second as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 9 0 0 0 150 50 0 0 20 0 5 0 99";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_seconds(stat), Some(200.0 / ticks));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
        let io = "rchar: 9\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n";
        assert_eq!(field(io, "write_bytes:"), Some(4096));
        assert_eq!(field("RssAnon:\t   12 kB\n", "RssAnon:"), Some(12));
        let own = std::process::id();
        assert!(anonymous_bytes(own).unwrap() > 0);
        of(own).unwrap();
    }

    #[test]
    fn the_log_is_counted_apart() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("data/wal")).unwrap();
        fs::create_dir_all(dir.path().join("data/blocks")).unwrap();
        fs::write(dir.path().join("data/wal/segment"), [1; 8192]).unwrap();
        fs::write(dir.path().join("data/blocks/block"), [1; 20_000]).unwrap();
        fs::write(dir.path().join("data/MANIFEST"), []).unwrap();
        for file in ["wal/segment", "blocks/block"] {
            let file = fs::File::open(dir.path().join("data").join(file)).unwrap();
            file.sync_all().unwrap();
        }
        let found = footprint(dir.path());
        assert_eq!(found.files, 3);
        assert!(
            found.log_bytes >= 8192 && found.data_bytes >= 20_000,
            "{found:?}"
        );
    }
}
