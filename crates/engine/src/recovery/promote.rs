//! From following a log to owning it.
//!
//! What a start as the owner does at its end, is done here: series of which nobody knows the key
//! go, samples expire again, buckets that were in flight or failed are recomputed. What was frozen
//! for flushes of the owner before, and is in no file yet, is carried on: it counts until a flush
//! of this owner has written it, and no checkpoint is made without it.
//!
//! Invariant: numbers of flushes and of files are none that an owner before can have given.
//! Tested by `tests/follow`.

use crate::background::Parts;
use crate::base::error::{Error, ErrorKind, Result};
use crate::log::{Log, Position, RemoteLog};
use crate::recovery::Recovery;
use crate::recovery::follow::{Follower, Turn, applied};
use crate::series::shard::ShardState;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Follower {
    /// As [`crate::Db::promote`], but for the threads.
    pub(crate) fn promote(&self, parts: &Parts, link: Arc<dyn RemoteLog>) -> Result<()> {
        let core = &parts.core;
        let turn = self.take_turn(core)?;
        if !self.is_loaded() || turn.is_amid_group() {
            let message = "the log is not applied as far as the files need it: no owner can be made of this database yet";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if let Some(why) = core.observe.halt.reason() {
            return Err(Error::new(ErrorKind::Halted, why));
        }
        let promoted = promote(parts, &turn, link);
        promoted.inspect_err(|error| {
            core.observe.halt.stop("taking the log over failed", error);
        })
    }
}

fn promote(parts: &Parts, turn: &Turn, link: Arc<dyn RemoteLog>) -> Result<()> {
    let (recovery, core) = (Recovery::of(parts), &parts.core);
    let applied: Position = applied(core);
    core.log.set_remote(link.clone());
    core.store.begin_numbers(applied);
    let log = Log::continue_remote(link, applied);
    core.begin_log(log.observed_by(core.observe.observer.clone(), core.observe.halt.clone()));
    let mut carries = !core.store.rows_unknown.lock().is_empty();
    for shard in 0..core.shards.len() {
        carries |= recovery.end_following(&mut core.shards[shard].lock());
    }
    core.store.carries_cuts.store(carries, Ordering::Release);
    recovery.drop_unnamed()?;
    core.observe.halt.end_following();
    recovery.tidy(turn.manifest)?;
    // The floor is that of the log. It rises once the log goes on, which may take a while.
    parts.merger.begin_retention();
    core.look_at_disk();
    Ok(())
}

impl Recovery<'_> {
    /// Samples expire again, and failed buckets are tried. Whether something is frozen.
    fn end_following(&self, state: &mut ShardState) -> bool {
        let mut carries = false;
        state.watched.replays = None;
        // awake: to the others no log is applied.
        let places: Vec<usize> = state.slab.iter().map(|(place, _)| place).collect();
        for place in places {
            let Some(series) = state.slab.get_mut(place) else {
                continue;
            };
            series.end_replay(&mut state.sealer);
            carries |= series.carry_frozen(&self.core.store.blocks);
            if let Some(source) = series.source_mut() {
                source.try_failed_again();
            }
            state.recount(place);
            state.note_rules(place);
        }
        carries
    }
}
