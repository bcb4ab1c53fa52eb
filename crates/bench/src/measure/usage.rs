//! What a process takes: processor, memory, bytes written, files, as the kernel counts them.
//!
//! Anonymous memory is that of the process alone, without pages of files. Bytes written are those
//! of each page that became dirty, also of files that were removed before they were written out.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

use crate::base::error::{Doing, Error, Result};
use crate::base::files::files_below;

/// Bytes of a block in the file attributes of the kernel, whatever the file system's own are.
const SECTOR_BYTES: u64 = 512;

/// What a process has taken since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_seconds: f64,
    /// Those of them that the system worked for it.
    pub(crate) system_seconds: f64,
    /// Pages of memory that it touched for the first time.
    pub(crate) fresh_pages: u64,
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
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).doing(format!("read {path}"))?;
    let used = times(&text).ok_or_else(|| Error::new(format!("{path} has no times")))?;
    Ok(Usage {
        written_bytes: field(process, "io", "write_bytes:")?,
        ..used
    })
}

/// Looks at this process.
pub(crate) fn own() -> Result<Usage> {
    of(std::process::id())
}

/// Anonymous memory of a process that runs on this machine, bytes.
pub(crate) fn anonymous_bytes(process: u32) -> Result<u64> {
    Ok(field(process, "status", "RssAnon:")? * 1024)
}

/// What lies in the data directory of a server; files that go meanwhile are passed over.
pub(crate) fn footprint(dir: &Path) -> Footprint {
    let mut found = Footprint::default();
    for path in files_below(dir) {
        let Ok(about) = fs::symlink_metadata(&path) else {
            continue;
        };
        // Prometheus has a second log, for late samples.
        let within = path.strip_prefix(dir).unwrap_or(&path);
        let is_log = within.iter().any(|name| name == "wal" || name == "wbl");
        let bytes = if is_log {
            &mut found.log_bytes
        } else {
            &mut found.data_bytes
        };
        *bytes += about.blocks() * SECTOR_BYTES;
        found.files += 1;
    }
    found
}

/// Writes the files below `dir` to the disk and takes them out of the page cache: they are read
/// next as after the start of a machine.
pub(crate) fn forget_pages(dir: &Path) -> Result<()> {
    let doing = format!("take {} out of the page cache", dir.display());
    for path in files_below(dir) {
        let file = fs::File::open(&path).doing(&doing)?;
        file.sync_all().doing(&doing)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).doing(&doing)?;
    }
    Ok(())
}

/// The number behind `name` in a file of a process, whatever unit follows it.
fn field(process: u32, file: &str, name: &str) -> Result<u64> {
    let path = format!("/proc/{process}/{file}");
    let text = fs::read_to_string(&path).doing(format!("read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| Error::new(format!("{path} has no {name}")))
}

/// What `/proc/PID/stat` tells. Its second field is a name in brackets that may hold anything.
fn times(stat: &str) -> Option<Usage> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // By its number in proc_pid_stat(5), where the state is the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let system_seconds = field(15)? as f64 / ticks_per_second;
    Some(Usage {
        cpu_seconds: field(14)? as f64 / ticks_per_second + system_seconds,
        system_seconds,
        fresh_pages: field(10)?,
        written_bytes: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 9 0 0 0 150 50 0 0 20 0 5 0 99";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let used = times(stat).unwrap();
        assert_eq!(used.cpu_seconds, 200.0 / ticks);
        assert_eq!((used.system_seconds, used.fresh_pages), (50.0 / ticks, 9));
        assert!(times("7 (a) S 1").is_none());
        assert!(anonymous_bytes(std::process::id()).unwrap() > 0);
        own().unwrap();
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
