//! Who watches which series, and what changed for whom.
//!
//! What a rule needs:
//! 1. [`Core::watch`] says who the readers are and which series each of them selects. A reader's
//!    selectors never change: with others it is another reader.
//! 2. Before an evaluation at some time reads, [`Core::begin_evaluations`] sets the reader's horizon.
//!    When it returns, each change at or below that time either is visible to reads or will be
//!    marked.
//! 3. [`Core::drain`] returns what changed in what a reader has used, up to a position of the log.
//!    When all that follows from it is written, [`Core::done`] says so; until then the same changes
//!    are returned again.
//!
//! Changes are collected from all shards at once, matched with the selectors of all readers and
//! kept for each reader apart. A change says the labels and the key that the series had. Readers
//! decide what is final: retention, the floor of the disk budget and expiry are no changes, but
//! a removed series says when it was to expire.
//!
//! Invariants:
//! 1. A horizon is set in the registry first and then under the lock of each shard, and only then
//!    its reader reads. A writer that did not see it has given its lock back before, so the reader
//!    sees what it wrote.
//! 2. What is taken from a shard at a position holds all changes of groups up to that position: a
//!    group is logged under the lock under which its changes are marked. Steps are logged and
//!    registered in one `turn`, and no drain reads its position within one.
//! 3. Nothing pending is dropped but by [`Core::done`] or with its reader, and what a drain returned
//!    stays as it is until it is done. Other changes of a series are joined into a few spans; what is
//!    too much, of a reader or of all of them, into a few spans a selector.
//! 4. The log from where a manifest needs it says all horizons, and all that is pending or marked: it
//!    is said anew ([`Core::log_readers`]) after the rows of a flush are made and before they are
//!    published, and a replay marks what it applies from there on. A FLUSHALL takes the log before it
//!    away, also at a start that replays it before anybody has said what readers select: then all
//!    that they have used is pending ([`Core::log_readers_of_nothing`]).
//!
//! Damage is no change. Samples of a block that is damaged, or in quarantine, are not gone for a
//! reader: its reads of them fail, and whoever reads keeps the rows that it has. What a hole of the log
//! took is not marked either; horizons and pending changes that it took are known again from the next
//! state of the reader.
//!
//! Locks: `collecting`, then `turn`, then shards, then `registry`, with which nothing else is locked. To
//! collect from very many new series takes seconds, and evaluations begin meanwhile: a horizon that
//! is raised then only makes what is handed out longer.
//! Tested by `tests/watches` against a set of changed samples.

mod marks;
mod reader;
mod registry;
mod replay;
mod state;
mod twins;

pub use reader::{
    Change, ChangedSeries, Drained, ReaderId, ReaderState, Selector, Selects, Watcher,
};

use crate::base::error::{Error, ErrorKind, Result};
use crate::keyspace::core::Core;
use crate::log::{Log, Position};
use crate::series::watched::{GoneLook, Mark, Span, Taken};
use latewood_model::Timestamp;
use parking_lot::{Mutex, RwLock};
use registry::Registry;

/// Marks whose labels are looked up before the shard's lock is given back.
const MARKS_PER_LOCK_MAX: usize = 256;

/// See the module.
#[derive(Default)]
pub(crate) struct Watches {
    /// Held while changes are collected. What is taken from a shard is on its way to its readers.
    collecting: Mutex<()>,
    /// Held while readers or horizons change.
    turn: Mutex<()>,
    registry: RwLock<Registry>,
}

fn no_reader(reader: ReaderId) -> Error {
    let text = format!(
        "reader {} does not watch anything: call watch first",
        reader.0
    );
    Error::new(ErrorKind::Invalid, text)
}

impl Core {
    /// See [`crate::Db::watch`].
    pub(crate) fn watch(&self, watchers: Vec<Watcher>) -> Result<()> {
        let collecting = self.watches.collecting.lock();
        let turn = self.watches.turn.lock();
        let mut registry = self.watches.registry.write();
        registry.set(watchers);
        let (generation, top) = (registry.generation, registry.top());
        drop(registry);
        for shard in &self.shards {
            shard.lock().watched.begin_generation(generation, top);
        }
        drop((turn, collecting));
        // Those that were known from the log are from here on known from this.
        self.log_readers().map(drop)
    }

    /// See [`crate::Db::begin_evaluations`].
    pub(crate) fn begin_evaluations(&self, all: &[(ReaderId, Timestamp)]) -> Result<()> {
        let _turn = self.watches.turn.lock();
        let registry = self.watches.registry.read();
        let mut raised = Vec::with_capacity(all.len());
        for &(reader, at) in all {
            let held = registry.readers.get(&reader);
            if at > held.ok_or_else(|| no_reader(reader))?.horizon {
                raised.push((reader, at));
            }
        }
        drop(registry);
        if raised.is_empty() {
            return Ok(());
        }
        // Said first: whoever replays the log marks what comes behind it.
        self.log_for_readers(|group, at: usize| {
            let &(reader, horizon) = raised.get(at)?;
            group.horizon(reader.0, horizon);
            Some(())
        })?;
        self.raise_horizons(&raised);
        Ok(())
    }

    /// See [`crate::Db::set_since`].
    pub(crate) fn set_since(&self, reader: ReaderId, at: Timestamp) -> Result<()> {
        let _turn = self.watches.turn.lock();
        self.known(reader)?;
        self.log_for_reader(|group| group.since(reader.0, at))?;
        self.register_since(reader.0, at);
        Ok(())
    }

    /// See [`crate::Db::add_pending`].
    pub(crate) fn add_pending(&self, reader: ReaderId, span: Span) -> Result<()> {
        let _turn = self.watches.turn.lock();
        self.known(reader)?;
        if span.from > span.to {
            return Ok(());
        }
        let at = self.log_for_reader(|group| group.steps(reader.0, span.from, span.to))?;
        self.registered(reader.0, |held| held.take_steps(span, at.0, false));
        Ok(())
    }

    /// Whether there is such a reader.
    fn known(&self, reader: ReaderId) -> Result<()> {
        let registry = self.watches.registry.read();
        let is_known = registry.is_known() && registry.readers.contains_key(&reader);
        is_known.then_some(()).ok_or_else(|| no_reader(reader))
    }

    /// See [`crate::Db::readers`].
    pub(crate) fn readers(&self) -> Vec<ReaderState> {
        let _collecting = self.watches.collecting.lock();
        self.collect();
        let registry = self.watches.registry.read();
        if !registry.is_known() {
            return Vec::new();
        }
        let states = registry.readers.iter();
        let states = states.map(|(&reader, held)| held.state(reader));
        states.collect()
    }

    /// See [`crate::Db::reader`].
    pub(crate) fn reader(&self, reader: ReaderId) -> Option<ReaderState> {
        let registry = self.watches.registry.read();
        let held = registry.readers.get(&reader)?;
        registry.is_known().then(|| held.state(reader))
    }

    /// See [`crate::Db::drain`].
    pub(crate) fn drain(&self, reader: ReaderId) -> Result<Drained> {
        let position = {
            // Steps that are logged up to here are registered.
            let _turn = self.watches.turn.lock();
            self.log().map_or_else(Position::default, Log::written)
        };
        let _collecting = self.watches.collecting.lock();
        self.known(reader)?;
        self.collect();
        let mut registry = self.watches.registry.write();
        let changes = registry.drain(reader);
        let changes = changes.ok_or_else(|| no_reader(reader))?;
        Ok(Drained { position, changes })
    }

    /// See [`crate::Db::done`].
    pub(crate) fn done(&self, reader: ReaderId, position: Position) -> Result<()> {
        let _turn = self.watches.turn.lock();
        self.known(reader)?;
        self.log_for_reader(|group| group.done(reader.0, position.0))?;
        let mut registry = self.watches.registry.write();
        let held = registry.readers.get_mut(&reader);
        let held = held.ok_or_else(|| no_reader(reader))?;
        held.end_drained(position.0);
        Ok(())
    }

    /// Hands out what the shards have noted, if it is known to whom. Hold `collecting`.
    fn collect(&self) {
        if !self.watches.registry.read().is_known() {
            return;
        }
        for (number, shard) in self.shards.iter().enumerate() {
            let looks = shard.lock().watched.take_looks();
            self.collect_twins(number, looks);
            loop {
                let mut state = shard.lock();
                let (taken, is_all) = state.watched.take(MARKS_PER_LOCK_MAX);
                let series = taken.marks.iter().filter_map(|&(place, mark)| {
                    let id = self.shards.id_of(number, place);
                    Some((self.look_of(&state, id)?, mark))
                });
                let series: Vec<_> = series.collect();
                drop(state);
                self.hand_out(series, taken);
                if is_all {
                    break;
                }
            }
        }
    }

    fn hand_out(&self, series: Vec<(ChangedSeries, Mark)>, taken: Taken) {
        let mut registry = self.watches.registry.write();
        for (look, mark) in series {
            registry.hand_out(look, &mark);
        }
        for gone in taken.gone {
            let look = ChangedSeries {
                id: gone.id,
                key: gone.key,
                labels: gone.labels,
                floor: gone.floor,
                is_gone: true,
                expires_at_ms: gone.expires_at_ms,
            };
            registry.hand_out(look, &gone.mark);
        }
        for GoneLook {
            labels, key, mark, ..
        } in taken.ended
        {
            let entries = registry.matching(&labels, &key);
            registry.hand_out_ended(&entries, &mark);
        }
        if let Some(mark) = taken.ended_any {
            let all = registry.all_entries();
            registry.hand_out_ended(&all, &mark);
        }
        for (set, mark) in taken.hulls {
            registry.hand_out_hull(set, &mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReaderId, Watcher};
    use crate::io::sim::SimDisk;
    use crate::series::watched::Span;
    use crate::{Db, Defaults, Options};
    use std::path::Path;

    #[test]
    fn evaluations_begin_while_changes_are_collected() {
        let options = Options {
            background: false,
            ..Options::default()
        };
        let env = SimDisk::new().env(1);
        let db = Db::open(&env, Path::new("/db"), options, Defaults::default())
            .expect("an empty disk takes a database");
        let reader = ReaderId(1);
        let watcher = Watcher {
            reader,
            selectors: Vec::new(),
        };
        db.watch(vec![watcher]).expect("it is open");
        let core = &db.parts().core;
        // This would wait for ever if it waited for that.
        let _collecting = core.watches.collecting.lock();
        core.begin_evaluations(&[(reader, 100)])
            .expect("it is open");
        let span = Span { from: 1, to: 2 };
        core.add_pending(reader, span).expect("it is open");
        let state = core.reader(reader).expect("it is watched");
        assert_eq!((state.horizon, state.pending), (100, 1));
    }
}
