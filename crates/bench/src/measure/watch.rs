//! Watching a server process over a run: a point a second for charts, and totals at the end.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::threads::beside;
use crate::measure::machine::Clock;
use crate::measure::progress::Progress;
use crate::measure::quiet::{self, Look};
use crate::measure::usage::{self, Usage};

const EVERY: Duration = Duration::from_secs(1);
/// Time between two looks at a process or server.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Points of a trace that is kept; longer ones are thinned.
const POINTS_MAX: usize = 240;

#[derive(Debug)]
pub(crate) struct Watch {
    process: u32,
    dir: PathBuf,
    began: Instant,
    last: Instant,
    at_start: Usage,
    /// What was seen about once a second; counts run from the start of the watch.
    points: Vec<Value>,
    peak_anonymous_bytes: u64,
    files_max: u64,
}

impl Watch {
    /// Begins to watch a process and the directory it writes to.
    pub(crate) fn begin(process: u32, dir: &Path) -> Result<Self> {
        let mut watch = Watch {
            process,
            dir: dir.to_owned(),
            began: Instant::now(),
            last: Instant::now(),
            at_start: usage::of(process)?,
            points: Vec::new(),
            peak_anonymous_bytes: 0,
            files_max: 0,
        };
        watch.take(0)?;
        Ok(watch)
    }

    /// Looks at the memory, and at all else once a second; `samples` are acknowledged so far.
    pub(crate) fn look(&mut self, samples: u64) {
        if self.last.elapsed() >= EVERY {
            // A process that has gone is noticed by whoever speaks to it.
            let _ = self.take(samples);
        } else if let Ok(bytes) = usage::anonymous_bytes(self.process) {
            self.peak_anonymous_bytes = self.peak_anonymous_bytes.max(bytes);
        }
    }

    /// Goes on watching while `work` runs; returns its seconds.
    pub(crate) fn during(
        &mut self,
        samples: u64,
        work: impl FnOnce() -> Result<()> + Send,
    ) -> Result<f64> {
        let began = Instant::now();
        beside(LOOK_EVERY, || self.look(samples), work)?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Goes on watching until the process rests: work behind the last sample ends later.
    pub(crate) fn until_quiet(&mut self, samples: u64) -> Result<()> {
        let first = self.seen()?;
        let next = || {
            thread::sleep(EVERY);
            self.look(samples);
            self.seen()
        };
        quiet::since(first, EVERY, next).map(drop)
    }

    fn seen(&self) -> Result<Look> {
        Ok(Look {
            at: self.began.elapsed(),
            cpu_seconds: usage::of(self.process)?.cpu_seconds,
        })
    }

    /// Processor time of the process since the watch began.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        Ok(usage::of(self.process)?.cpu_seconds - self.at_start.cpu_seconds)
    }

    /// Takes the last point and sums up; of long runs every second, third, ... point is kept.
    pub(crate) fn end(mut self, samples: u64) -> Result<Value> {
        self.take(samples)?;
        let last = self.points.last().cloned().unwrap_or_default();
        Ok(json!({
            "points": thinned(self.points), "cpu_seconds": last["cpu_seconds"],
            "written_bytes": last["written_bytes"], "files_max": self.files_max,
            "peak_anonymous_bytes": self.peak_anonymous_bytes,
            "at_end": usage::footprint(&self.dir),
        }))
    }

    fn take(&mut self, samples: u64) -> Result<()> {
        self.last = Instant::now();
        let used = usage::of(self.process)?;
        let anonymous_bytes = usage::anonymous_bytes(self.process)?;
        let found = usage::footprint(&self.dir);
        self.peak_anonymous_bytes = self.peak_anonymous_bytes.max(anonymous_bytes);
        self.files_max = self.files_max.max(found.files);
        self.points.push(json!({
            "seconds": self.began.elapsed().as_secs_f64(), "samples": samples,
            "cpu_seconds": used.cpu_seconds - self.at_start.cpu_seconds,
            "anonymous_bytes": anonymous_bytes,
            "written_bytes": used.written_bytes - self.at_start.written_bytes,
            "disk_bytes": found.log_bytes + found.data_bytes,
        }));
        Ok(())
    }
}

/// A load on a process: who it is, where it writes, and how many samples it gets.
pub(crate) struct Watched<'a> {
    pub(crate) process: u32,
    pub(crate) dir: &'a Path,
    pub(crate) label: String,
    pub(crate) samples: u64,
}

impl Watched<'_> {
    /// Watches a load, which tells how far it is and returns its seconds; then what settles it, what
    /// brings it to files, and the process until it rests.
    pub(crate) fn run(
        &self,
        load: impl FnOnce(&mut dyn FnMut(u64)) -> Result<f64>,
        settle: impl FnOnce() -> Result<()> + Send,
        save: impl FnOnce() -> Result<()> + Send,
    ) -> Result<Value> {
        let mut watch = Watch::begin(self.process, self.dir)?;
        let mut progress = Progress::new(&*self.label, self.samples);
        let clock = Clock::start();
        let seconds = load(&mut |done| {
            watch.look(done);
            progress.show(done);
        })?;
        progress.finish();
        let client_cpu_seconds = clock.cpu_seconds();
        let loaded_cpu_seconds = watch.cpu_seconds()?;
        let drain_seconds = watch.during(self.samples, settle)?;
        let settled_cpu_seconds = watch.cpu_seconds()?;
        watch.during(self.samples, save)?;
        watch.until_quiet(self.samples)?;
        Ok(json!({
            "seconds": seconds, "drain_seconds": drain_seconds,
            "client_cpu_seconds": client_cpu_seconds, "loaded_cpu_seconds": loaded_cpu_seconds,
            "settled_cpu_seconds": settled_cpu_seconds, "trace": watch.end(self.samples)?,
        }))
    }
}

/// Every n-th point and the last one, so that few enough are left.
fn thinned<T>(mut points: Vec<T>) -> Vec<T> {
    let each = points.len().div_ceil(POINTS_MAX).max(1);
    let (mut at, end) = (0_usize, points.len().saturating_sub(1));
    points.retain(|_| {
        at += 1;
        (at - 1).is_multiple_of(each) || at - 1 == end
    });
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_this_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::begin(std::process::id(), dir.path()).unwrap();
        std::fs::write(dir.path().join("a"), [1; 5_000]).unwrap();
        watch.look(1);
        let trace = watch.end(7).unwrap();
        assert!(trace["peak_anonymous_bytes"].as_u64() > Some(0));
        assert_eq!([&trace["files_max"], &trace["at_end"]["files"]], [1, 1]);
        let points = trace["points"].as_array().unwrap();
        assert_eq!(points.last().unwrap()["samples"], 7);
    }

    #[test]
    fn long_traces_keep_their_ends() {
        let kept = thinned((0..1_000).collect());
        let count = kept.len();
        assert!((100..=POINTS_MAX + 1).contains(&count), "{count}");
        assert_eq!((kept[0], kept[count - 1]), (0, 999));
    }
}
