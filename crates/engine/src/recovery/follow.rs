//! A database that follows the log of another.
//!
//! It opens as a start does, and the replay never ends. Until the log is applied as far as the
//! files need it, two series may have the same key, as in any replay, and nobody may look. Then
//! key map and links are made, and from there on readers look while groups are applied
//! ([`super::live`]). It writes no block, series file or manifest of its own, and runs no flush,
//! merge, rule, expiry or retention: what comes of these comes with the log and with checkpoints
//! ([`super::adopt`]), until it owns the log ([`super::promote`]).
//!
//! Invariants: groups are applied once each, in order. An error that leaves it open how much of a
//! group is applied ends it for good; memory that is short, or a block that is not on this machine,
//! does not. Tested by `tests/follow`.

use crate::background::Parts;
use crate::base::error::{Error, ErrorKind, Result};
use crate::io::directory::{DirectoryGuard, mark_remote};
use crate::io::small::Context;
use crate::keyspace::core::Core;
use crate::keyspace::memory_budget::Level;
use crate::log::group::{GroupHeader, split_remote};
use crate::log::replay::with_workers;
use crate::log::{Position, missing_remote};
use crate::recovery::{Goes, Recovery, RecoverySummary, Replayer};
use crate::recovery::{load_metadata, refuse_local_log, tell_conversion};
use crate::storage::files::Directory;
use crate::storage::files::table::ManifestFound;
use crate::storage::files::verdict::LogFound;
use parking_lot::{Mutex, MutexGuard};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of records between two looks at the memory.
const LOOK_BYTES: usize = 32 * 1024;

/// What a database that follows knows beside its series.
pub(crate) struct Follower {
    turn: Mutex<Turn>,
    is_loaded: AtomicBool,
}

/// Held by whoever applies groups or changes files.
pub(super) struct Turn {
    /// The first group that the files of the start do not hold all of.
    first: u64,
    /// Readers may look once this group is applied.
    needed: Position,
    /// Records of the next group that are applied already.
    done: usize,
    /// Why no more is applied.
    ended: Option<String>,
    pub(super) manifest: ManifestFound,
}

impl Turn {
    /// Whether a part of the next group is applied.
    pub(super) fn is_amid_group(&self) -> bool {
        self.done > 0
    }

    /// No group is applied any more.
    fn end(&mut self, why: String) {
        self.ended.get_or_insert(why);
    }
}

impl Follower {
    /// Loads the files of a directory, as a start does.
    ///
    /// # Errors
    /// Those of a start.
    pub(crate) fn open(parts: &Parts, guard: &DirectoryGuard) -> Result<(Self, RecoverySummary)> {
        let recovery = Recovery::of(parts);
        let core = recovery.core;
        let env = &core.env;
        let synced = env.disk.sync_dir(guard.path());
        synced.context("cannot sync the data directory", guard.path())?;
        refuse_local_log(env, guard)?;
        mark_remote(env, guard.path())?;
        let directory = Directory::find(env, guard.path())?;
        tell_conversion(core, &directory);
        load_metadata(core, &guard.quarantine_dir())?;
        core.observe.halt.begin_following();
        let first = directory.contents.log_start;
        // Who gives the groups says if there are none from there on.
        recovery.load(&directory, LogFound::From(Position(first)))?;
        core.log.replayed.store(first - 1, Ordering::Release);
        let lost = core.store.lost.lock().clone();
        recovery.note_doubts(&lost, &[])?;
        core.store.sweep_files()?;
        let turn = Turn {
            first,
            needed: Position(directory.contents.log_next_min() - 1),
            done: 0,
            ended: None,
            manifest: directory.manifest,
        };
        let follower = Self {
            turn: Mutex::new(turn),
            is_loaded: AtomicBool::new(false),
        };
        follower.look_if_loaded(parts, &follower.turn.lock())?;
        let summary = RecoverySummary {
            blocks_lost: lost,
            ..RecoverySummary::default()
        };
        Ok((follower, summary))
    }

    /// Whether readers may look.
    pub(crate) fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Acquire)
    }

    /// As [`crate::Db::follow`].
    pub(crate) fn follow(&self, parts: &Parts, groups: &[u8]) -> Result<()> {
        let mut turn = self.take_turn(&parts.core)?;
        let is_live = self.is_loaded();
        let followed = if is_live {
            follow_live(parts, &mut turn, groups)
        } else {
            replay(parts, &turn, groups)
        };
        if let Err(error) = &followed {
            // Of a replay nobody knows which groups the workers have applied.
            let goes_on = error.kind() == ErrorKind::OutOfMemory || is_live && error.is_away();
            if !goes_on {
                turn.end(error.to_string());
            }
        }
        self.look_if_loaded(parts, &turn)?;
        if self.is_loaded() {
            parts.core.index.relieve();
        }
        followed
    }

    /// Waits for whoever applies groups or changes files.
    pub(super) fn take_turn(&self, core: &Core) -> Result<MutexGuard<'_, Turn>> {
        let turn = self.turn.lock();
        if !core.is_follower() {
            let message = "the database owns its log, and follows none";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        match &turn.ended {
            None => Ok(turn),
            Some(why) => {
                let message = format!(
                    "the log is not applied any more: {why}; open the newest checkpoint anew"
                );
                Err(Error::new(ErrorKind::Corrupt, message))
            }
        }
    }

    /// Lets readers look once all that the files need is applied.
    fn look_if_loaded(&self, parts: &Parts, turn: &Turn) -> Result<()> {
        let core = &parts.core;
        if self.is_loaded() || turn.ended.is_some() || applied(core) < turn.needed {
            return Ok(());
        }
        Recovery::of(parts).rebuild_all(&[])?;
        if core.series_count() > 0 {
            core.note_replayed();
        }
        self.is_loaded.store(true, Ordering::Release);
        Ok(())
    }
}

/// The newest group that a database applied before it has a log.
pub(crate) fn applied(core: &Core) -> Position {
    Position(core.log.replayed.load(Ordering::Acquire))
}

/// Refuses to apply more where memory is short: there is no flush that would free any.
fn check_memory(core: &Core) -> Result<()> {
    core.look_if_stale();
    if core.budget.level() != Level::Full {
        return Ok(());
    }
    let (used, limit) = (core.budget.used_bytes(), core.budget.limit_bytes());
    let message = format!(
        "this node follows the log no further than group {}: the process holds {used} bytes of \
         memory, its budget is {limit}; the next checkpoint of the owner may free some",
        applied(core).0
    );
    Err(Error::new(ErrorKind::OutOfMemory, message))
}

/// A group, and the bytes behind it.
struct Group<'a> {
    header: GroupHeader,
    payload: &'a [u8],
    rest: &'a [u8],
}

/// The group `next` of `bytes`. Groups before it are passed over.
fn next_group(mut bytes: &[u8], next: u64) -> Result<Option<Group<'_>>> {
    while !bytes.is_empty() {
        let (header, payload, rest) = split_remote(bytes, next)?;
        if header.sequence > next {
            return Err(missing_remote(next, header.sequence));
        }
        if header.sequence == next {
            return Ok(Some(Group {
                header,
                payload,
                rest,
            }));
        }
        bytes = rest;
    }
    Ok(None)
}

/// Applies groups as a start does, before anybody looks.
fn replay(parts: &Parts, turn: &Turn, mut bytes: &[u8]) -> Result<()> {
    let core = &parts.core;
    check_memory(core)?;
    let replayer = Replayer::new(Recovery::of(parts), Goes::Follow(turn.first));
    let mut next = applied(core).0 + 1;
    with_workers(&replayer, &|_| PathBuf::new(), |dispatcher| {
        while let Some(group) = next_group(bytes, next)? {
            dispatcher.group(&group.header, group.payload)?;
            bytes = group.rest;
            next += 1;
        }
        Ok(())
    })?;
    core.log.replayed.store(next - 1, Ordering::Release);
    tell_damage(core, &replayer);
    Ok(())
}

/// Applies groups while readers look.
fn follow_live(parts: &Parts, turn: &mut Turn, mut bytes: &[u8]) -> Result<()> {
    let core = &parts.core;
    let mut replayer = Replayer::new(Recovery::of(parts), Goes::Follow(turn.first));
    replayer.is_live = true;
    let mut unlooked = LOOK_BYTES;
    while let Some(group) = next_group(bytes, applied(core).0 + 1)? {
        unlooked += group.payload.len();
        if unlooked >= LOOK_BYTES {
            unlooked = 0;
            check_memory(core)?;
        }
        replayer.apply_live(&group.header, group.payload, &mut turn.done)?;
        turn.done = 0;
        let applied = group.header.sequence;
        core.log.replayed.store(applied, Ordering::Release);
        bytes = group.rest;
    }
    tell_damage(core, &replayer);
    Ok(())
}

/// Tells the operator which blocks could not be read where a record asked for it.
fn tell_damage(core: &Core, replayer: &Replayer<'_>) {
    for damage in replayer.damage.lock().drain(..) {
        core.observe.notices.say(damage);
    }
}
