//! Taking over the files of a newer checkpoint.
//!
//! The owner says in the log where it froze what it then wrote into blocks (CUT), and a database
//! that follows froze the same there. So once the owner's files are in force, the frozen heads of
//! the flushes that these include go, and readers see every sample once: the set of blocks tells
//! which frozen heads count. All else that is in memory stays as it is, but that series park and wake
//! as the files have them ([`parked`]).
//!
//! Tested by `tests/follow`.

mod parked;

use crate::background::Parts;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::base::partition::partition_of;
use crate::io::small::Context;
use crate::io::{Env, small};
use crate::keyspace::core::Core;
use crate::recovery::follow::{Follower, applied};
use crate::storage::files::directory::{read_manifest, remove_if_there, series_file_path};
use crate::storage::files::manifest::{Manifest, PartitionFiles};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Places whose frozen heads go under one hold of a lock.
const PLACES_PER_LOCK: usize = 512;

impl Follower {
    /// As [`crate::Db::adopt`].
    pub(crate) fn adopt(&self, parts: &Parts, from: &Path) -> Result<bool> {
        let core = &parts.core;
        let _turn = self.take_turn(core)?;
        let found = read_manifest(&core.env, from)?.transpose();
        let Some(next) = found.map_err(|error| error.at(&from.join(names::MANIFEST)))? else {
            let message = "the folder has no manifest, and so no checkpoint";
            return Err(Error::new(ErrorKind::Invalid, message).at(from));
        };
        let mut published = core.store.published.lock();
        let held = &published.manifest;
        if !is_newer(&next, held) {
            return Ok(false);
        }
        if !self.is_loaded() || next.log_next_min() > applied(core).0 + 1 {
            let message = format!(
                "the checkpoint holds groups of the log up to {}, and only those up to {} are \
                 applied here",
                next.log_next_min() - 1,
                applied(core).0
            );
            return Err(Error::new(ErrorKind::Invalid, message).at(from));
        }
        if next.flush >= core.store.untold_from.load(Ordering::Relaxed) {
            let message = "the checkpoint was made by a start that ran short of memory: it can only \
                           be opened anew";
            return Err(Error::new(ErrorKind::Unsupported, message).at(from));
        }
        let changed = changed_partitions(held, &next);
        let named: BTreeSet<u64> = held.series_files().map(|file| file.number).collect();
        let new = next.series_files().map(|file| file.number);
        let new = new.filter(|number| !named.contains(number));
        new.into_iter()
            .try_for_each(|number| bring_series_file(&core.env, from, core.store.dir(), number))?;
        take_metadata(core, from)?;
        let mut affected = changed.clone();
        // What is marked there is what the files of a flush were to hold.
        affected.extend(core.store.rows_unknown.lock().keys());
        let counting = core.prepare_parked(&next, &affected)?;
        (core.store.next_file).fetch_max(next.next_file, Ordering::Relaxed);
        let (flush, log_start) = (next.flush, next.log_start);
        core.put_in_force(&mut published, &mut |manifest| {
            *manifest = next.clone();
            Ok(())
        })?;
        drop(published);
        core.let_go(flush, log_start, &changed);
        core.take_over_parked(&counting);
        Ok(true)
    }
}

impl Core {
    /// Lets go of what files hold that include `flush` and all groups before `log_start`.
    fn let_go(&self, flush: u64, log_start: u64, changed: &BTreeSet<u32>) {
        let mut unsure = BTreeSet::new();
        for shard in &self.shards {
            let mut start = 0;
            loop {
                let mut state = shard.lock();
                // awake: only these have heads.
                let places = state.slab.places();
                if start >= places {
                    state.heads.need_from(log_start);
                    // Whether their rows are in the new files nobody says.
                    let removed = state
                        .removed
                        .extract_if(.., |id| changed.contains(&partition_of(*id)));
                    unsure.extend(removed.map(partition_of));
                    break;
                }
                let end = (start + PLACES_PER_LOCK).min(places);
                for place in start..end {
                    if let Some(series) = state.slab.get_mut(place) {
                        series.thaw(flush);
                    }
                }
                start = end;
            }
        }
        let mut unknown = self.store.rows_unknown.lock();
        unknown.retain(|_, newest| *newest > flush);
        unknown.extend(unsure.into_iter().map(|partition| (partition, u64::MAX)));
    }
}

/// Whether the files of a checkpoint are newer than those that are held.
fn is_newer(next: &Manifest, held: &Manifest) -> bool {
    // One from before everything was removed says nothing new.
    let removals = next.epoch.cmp(&held.epoch);
    let flushes = next.flush.cmp(&held.flush);
    let is_further = next.next_file > held.next_file
        || next.floor > held.floor
        || next.log_start > held.log_start;
    removals.then(flushes).is_gt() || removals.then(flushes).is_eq() && is_further
}

/// The partitions whose series files are others.
fn changed_partitions(held: &Manifest, next: &Manifest) -> BTreeSet<u32> {
    let files = |manifest: &Manifest, partition: &u32| -> Vec<u64> {
        let files = manifest.partitions.get(partition);
        let files = files.into_iter().flat_map(PartitionFiles::series_files);
        files.map(|file| file.number).collect()
    };
    let all = held.partitions.keys().chain(next.partitions.keys());
    let changed = all.filter(|partition| files(held, partition) != files(next, partition));
    changed.copied().collect()
}

/// Gives a series file of the checkpoint a name in the database, durably but for the name.
fn bring_series_file(env: &Env, from: &Path, dir: &Path, number: u64) -> Result<()> {
    let (from, to) = (
        series_file_path(from, number),
        series_file_path(dir, number),
    );
    // Of an attempt before.
    remove_if_there(env, &to)?;
    let brought = small::link_or_copy(env, &from, &to);
    brought
        .map(drop)
        .context("cannot take a series file over", &from)
}

/// Takes the metadata of metrics over, if there are any. Samples do not need them.
fn take_metadata(core: &Core, from: &Path) -> Result<()> {
    match core.metadata.take_over(&core.env, from) {
        Err(error) if error.is_damage() => core.observe.notices.say(&error),
        taken => taken?,
    }
    core.metadata.save(&core.env, core.store.dir())
}
