//! Recovery: restoring a database from its files and log.
//!
//! Records are applied as they were the first time: the log holds accepted samples
//! with the policy then in force, so replay uses no defaults and refuses nothing.
//! Workers apply groups of different shards in parallel; a group that concerns
//! several shards is applied alone (see [`crate::log::Replay`]).
//!
//! A series loaded from a series file has a log position: records up to there are
//! already in the files and are skipped. Each series therefore continues from its
//! own position, and until the end of the replay two series may have the same key
//! or destination. The key map and the back links of rules are built after the
//! replay ([`crate::storage::files`]).
//!
//! Tested by the restarts and crashes of the model test and by
//! `tests/db_store`.

pub(crate) mod adopt;
pub(crate) mod follow;
mod live;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod quarantine;
pub(crate) mod rebuild;
pub(crate) mod rules;

mod apply;
mod ended;
pub(crate) mod promote;

use crate::background::{Flusher, Parts};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::base::options::{Durability, LoadProgress};
use crate::io::Env;
use crate::io::directory::{DirectoryGuard, mark_remote, require_local};
use crate::io::quarantine::Quarantine;
use crate::io::small::Context;
use crate::keyspace::core::Core;
use crate::log::record::RecordIter;
use crate::log::{Log, LogOptions, LogStart, Position, RecoveryReport, Replay};
use crate::rules::Rules;
use crate::storage::files::{Directory, LogFound, LostBlock};
use latewood_model::SeriesId;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What opening a database replayed and repaired.
#[derive(Clone, Debug, Default)]
pub struct RecoverySummary {
    /// Samples applied.
    pub samples: u64,
    /// Series after the replay.
    pub series: u64,
    /// Samples dropped because the creation of their series is lost.
    pub samples_orphaned: u64,
    /// Keys of series dropped because another series has the key and the record of
    /// their removal or renaming is lost.
    pub series_displaced: Vec<Arc<[u8]>>,
    /// Blocks left out because of damage.
    pub blocks_lost: Vec<LostBlock>,
    /// Damage of blocks found while replaying deletions. The rest of these blocks
    /// is served; queries of the damaged part fail.
    pub blocks_damaged: Vec<String>,
    /// Files in the quarantine folder, from this start or an earlier one.
    pub quarantined: Vec<String>,
    /// Duration of the recovery in nanoseconds.
    pub duration_ns: u64,
    /// The report of the log.
    pub log: RecoveryReport,
}

/// Loads the metadata of metrics. A damaged file moves to `quarantine`, unless that is
/// refused: samples do not need it.
fn load_metadata(core: &Core, quarantine: &Path) -> Result<()> {
    let (env, dir) = (&core.env, core.store.dir());
    match core.metadata.load(env, dir) {
        Err(error) if error.is_damage() && !core.options.strict => {
            core.observe.notices.say(&error);
            let path = dir.join(names::METADATA);
            Quarantine::new(env, quarantine).take(&path).map(drop)
        }
        loaded => loaded,
    }
}

/// Says that the files of an older format will be converted.
fn tell_conversion(core: &Core, directory: &Directory) {
    if directory.is_of_version_1() {
        core.observe.notices.say(
            "the data directory has an older format: its files are converted as they are flushed, and the versions of Latewood that made it cannot open it any more",
        );
    }
}

/// Loads the files in the directory of `core` and replays the log.
///
/// # Errors
/// As `Db::open`.
pub(crate) fn recover(parts: &Parts, guard: &DirectoryGuard) -> Result<RecoverySummary> {
    let recovery = Recovery::of(parts);
    let core = recovery.core;
    let env = core.env.clone();
    let begun_ns = env.clock.monotonic_ns();
    // The manifest that is found must not give way to an older one later.
    let synced = env.disk.sync_dir(guard.path());
    synced.context("cannot sync the data directory", guard.path())?;
    match core.log.remote() {
        None => require_local(&env, guard.path())?,
        Some(_) => {
            refuse_local_log(&env, guard)?;
            mark_remote(&env, guard.path())?;
        }
    }
    let directory = Directory::find(&env, guard.path())?;
    tell_conversion(core, &directory);
    let mut summary = RecoverySummary::default();
    let mut named = Vec::new();
    let quarantine = guard.quarantine_dir();
    // A FLUSHALL in the log may be newer than the file.
    load_metadata(core, &quarantine)?;
    if core.options.log {
        let log_options = LogOptions {
            segment_bytes: core.options.segment_bytes,
            synced_often: core.options.durability == Durability::Sync,
            quarantine: (!core.options.strict).then(|| quarantine.clone()),
            known_durable: Position(directory.contents.log_next_min() - 1),
        };
        let replayer = Replayer::new(recovery, Goes::Start(&directory));
        let (log, report) = match core.log.remote() {
            None => Log::open(&env, &guard.log_dir(), &log_options, &replayer)?,
            Some(link) => {
                Log::open_remote(&env, link.clone(), log_options.known_durable, &replayer)?
            }
        };
        summary.samples = replayer.samples.into_inner();
        summary.samples_orphaned = replayer.orphaned.into_inner();
        named = replayer.named.into_inner();
        summary.blocks_damaged = replayer.damage.into_inner();
        recovery.flusher.note_replayed(report.bytes);
        summary.log = report;
        if core.log.is_remote() {
            core.store.begin_numbers(log.written());
        }
        core.begin_log(log.observed_by(core.observe.observer.clone(), core.observe.halt.clone()));
    } else {
        recovery.load(&directory, log_beside(&env, &guard.log_dir())?)?;
    }
    if core.log.is_remote() {
        core.tell_untold(directory.contents.flush)?;
    }
    summary.series_displaced = recovery.rebuild(&named)?;
    summary.blocks_lost = core.store.lost.lock().clone();
    recovery.note_doubts(&summary.blocks_lost, &summary.log.holes)?;
    recovery.tidy(directory.manifest)?;
    summary.series = core.series_count() as u64;
    let quarantine = Quarantine::new(&env, &quarantine);
    summary.quarantined = quarantine.held()?;
    let quarantine_bytes = &core.store.disk_budget.quarantine_bytes;
    quarantine_bytes.store(quarantine.len_bytes()?, Ordering::Relaxed);
    summary.duration_ns = env.clock.monotonic_ns() - begun_ns;
    Ok(summary)
}

/// Refuses a directory with a log of its own: its records would be missing in the remote one.
fn refuse_local_log(env: &Env, guard: &DirectoryGuard) -> Result<()> {
    match log_beside(env, &guard.log_dir())? {
        LogFound::Unwanted => {
            let text = "the directory has a log; a start with a remote log would hide its data";
            Err(Error::new(ErrorKind::Invalid, text).at(&guard.log_dir()))
        }
        _ => Ok(()),
    }
}

/// Whether the directory has a log although the database is opened without one.
fn log_beside(env: &Env, dir: &Path) -> Result<LogFound> {
    let names = env.disk.list(dir).context("cannot list the log", dir)?;
    let mut segments = names.iter().filter_map(|name| names::parse_segment(name));
    Ok(match segments.next() {
        Some(_) => LogFound::Unwanted,
        None => LogFound::None,
    })
}

/// The parts of a database that recovery fills.
#[derive(Clone, Copy)]
struct Recovery<'a> {
    core: &'a Core,
    rules: &'a Rules,
    flusher: &'a Flusher,
}

impl<'a> Recovery<'a> {
    fn of(parts: &'a Parts) -> Self {
        Self {
            core: &parts.core,
            rules: &parts.rules,
            flusher: &parts.flusher,
        }
    }
}

/// What the log is applied for.
#[derive(Clone, Copy)]
enum Goes<'a> {
    /// A start of the owner of the log, with these files.
    Start(&'a Directory),
    /// A database that follows the log from this group on.
    Follow(u64),
}

struct Replayer<'a> {
    recovery: Recovery<'a>,
    goes: Goes<'a>,
    /// Readers look meanwhile.
    is_live: bool,
    samples: AtomicU64,
    /// Something before what is applied now is lost.
    behind_hole: AtomicBool,
    orphaned: AtomicU64,
    /// The series that got a key behind it, in order.
    named: Mutex<Vec<SeriesId>>,
    /// What is wrong with blocks that had to be read.
    damage: Mutex<Vec<String>>,
    /// No flush before this, by the monotonic clock.
    retry_ns: AtomicU64,
}

impl<'a> Replayer<'a> {
    fn new(recovery: Recovery<'a>, goes: Goes<'a>) -> Self {
        Self {
            recovery,
            goes,
            is_live: false,
            samples: AtomicU64::new(0),
            behind_hole: AtomicBool::new(false),
            orphaned: AtomicU64::new(0),
            named: Mutex::default(),
            damage: Mutex::default(),
            retry_ns: AtomicU64::new(0),
        }
    }

    fn follows(&self) -> bool {
        matches!(self.goes, Goes::Follow(_))
    }

    /// The first group that the files do not hold all of.
    fn log_start(&self) -> u64 {
        match self.goes {
            Goes::Start(directory) => directory.contents.log_start,
            Goes::Follow(first) => first,
        }
    }
}

impl Replay for Replayer<'_> {
    fn workers(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.recovery.core.shards.len().min(cores)
    }

    fn begins(&self, start: LogStart) -> Result<()> {
        match self.goes {
            Goes::Start(directory) => self.recovery.load(directory, start.into()),
            Goes::Follow(_) => Ok(()),
        }
    }

    fn apply(&self, _worker: usize, at: Position, records: RecordIter<'_>) -> Result<()> {
        if at.0 < self.log_start() {
            // The files hold all of it; the log had no time to forget it.
            return Ok(());
        }
        self.apply_group(at, records)
    }

    fn hole(&self, _first: u64, _groups: u64) -> Result<()> {
        self.behind_hole.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn wants_memory(&self) -> bool {
        // Who follows writes no files.
        !self.follows() && self.is_short()
    }

    fn free_memory(&self, applied: Position) -> Result<()> {
        self.flush_heads(applied)
    }

    fn progress(&self, bytes_done: u64, bytes_total: u64) {
        if let Some(hook) = &self.recovery.core.options.on_progress {
            hook.tell(LoadProgress {
                bytes_done,
                bytes_total,
                samples: self.samples.load(Ordering::Relaxed),
            });
        }
    }
}

#[cfg(test)]
mod tests;
