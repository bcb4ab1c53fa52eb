//! What a process takes: processor, memory, bytes written, files, as the kernel counts them.
//!
//! Anonymous memory is that of the process alone, without pages of files. Bytes written are those
//! of each page that became dirty, also of files that were removed before they were written out.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Footprint {
    pub(crate) log_bytes: u64,
    /// Disk space of everything else: blocks, series, the manifest.
    pub(crate) data_bytes: u64,
    pub(crate) files: u64,
}

/// Looks at a process of this machine and user.
pub(crate) fn of(process: u32) -> Result<Usage> {
    let stat = Stat::read(&process.to_string());
    let missing = || Error::new(format!("/proc/{process}/stat has no times"));
    Ok(Usage {
        cpu_seconds: stat.cpu_seconds().ok_or_else(missing)?,
        written_bytes: field(process, "io", "write_bytes:")?,
    })
}

/// Anonymous memory of a process that runs on this machine, bytes.
pub(crate) fn anonymous_bytes(process: u32) -> Result<u64> {
    Ok(field(process, "status", "RssAnon:")? * 1024)
}

/// What lies in the data directory of a server; files that go meanwhile are passed over.
pub(crate) fn footprint(dir: &Path) -> Footprint {
    let mut found = Footprint::default();
    add(dir, false, &mut found);
    found
}

/// Writes the files below `dir` to the disk and takes them out of the page cache: they are read
/// next as after the start of a machine.
pub(crate) fn forget_pages(dir: &Path) -> Result<()> {
    let doing = format!("take {} out of the page cache", dir.display());
    for entry in fs::read_dir(dir).doing(&doing)? {
        let path = entry.doing(&doing)?.path();
        if path.is_dir() {
            forget_pages(&path)?;
            continue;
        }
        let file = fs::File::open(&path).doing(&doing)?;
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
        let Ok(about) = entry.metadata() else {
            continue;
        };
        // Prometheus has a second log, for late samples.
        let is_log = is_log || ["wal", "wbl"].iter().any(|name| entry.file_name() == *name);
        if about.is_dir() {
            add(&entry.path(), is_log, found);
            continue;
        }
        let bytes = if is_log {
            &mut found.log_bytes
        } else {
            &mut found.data_bytes
        };
        *bytes += about.blocks() * SECTOR_BYTES;
        found.files += 1;
    }
}

/// The number behind `name` in a file of a process, whatever unit follows it.
fn field(process: u32, file: &str, name: &str) -> Result<u64> {
    let path = format!("/proc/{process}/{file}");
    let text = fs::read_to_string(&path).doing(format!("read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| Error::new(format!("{path} has no {name}")))
}

/// The numbers of `/proc/PID/stat`; empty where the system does not tell.
pub(super) struct Stat(Vec<u64>);

impl Stat {
    /// Looks at a process, `self` for this one.
    pub(super) fn read(process: &str) -> Self {
        Self::of(&fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default())
    }

    /// The second field is a name in brackets that may hold anything.
    fn of(stat: &str) -> Self {
        let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
        let numbers = rest.split_whitespace().skip(1);
        Stat(numbers.map(|text| text.parse().unwrap_or(0)).collect())
    }

    /// A field by its number in proc_pid_stat(5), where the state is the third.
    pub(super) fn field(&self, number: usize) -> Option<u64> {
        self.0.get(number - 4).copied()
    }

    /// A field that counts ticks of the clock, in seconds.
    pub(super) fn seconds(&self, number: usize) -> Option<f64> {
        let per_second = rustix::param::clock_ticks_per_second();
        Some(self.field(number)? as f64 / per_second as f64)
    }

    fn cpu_seconds(&self) -> Option<f64> {
        Some(self.seconds(14)? + self.seconds(15)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 9 0 0 0 150 50 0 0 20 0 5 0 99";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(Stat::of(stat).cpu_seconds(), Some(200.0 / ticks));
        assert_eq!(Stat::of("7 (a) S 1").cpu_seconds(), None);
        let own = std::process::id();
        assert!(anonymous_bytes(own).unwrap() > 0);
        of(own).unwrap();
    }

    #[test]
    fn the_log_is_counted_apart() {
        let dir = tempfile::tempdir().unwrap();
        for (file, len_bytes) in [("wal/segment", 8_192), ("blocks/block", 20_000)] {
            let path = dir.path().join("data").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, vec![1; len_bytes]).unwrap();
            fs::File::open(&path).unwrap().sync_all().unwrap();
        }
        let found = footprint(dir.path());
        assert_eq!(found.files, 2);
        assert!(
            found.log_bytes >= 8192 && found.data_bytes >= 20_000,
            "{found:?}"
        );
    }
}
