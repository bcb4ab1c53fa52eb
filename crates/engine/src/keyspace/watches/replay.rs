//! Readers and the log: what is said of them there, and what a replay makes of that.
//!
//! Records of readers are about all series, so whoever replays the log applies them in its order.
//! Tested by `tests/watches`.

use super::reader::{Pending, Reader, ReaderId};
use super::state;
use crate::base::error::{Error, ErrorKind, Result};
use crate::keyspace::core::Core;
use crate::log::record::Record;
use crate::log::{GroupBuilder, Log, Position};
use crate::series::shards::AllShards;
use crate::series::watched::{Span, WatchSet};
use latewood_model::Timestamp;
use std::borrow::Cow;

impl Core {
    /// Logs a record of a reader.
    pub(super) fn log_for_reader(&self, put: impl FnOnce(&mut GroupBuilder)) -> Result<Position> {
        let mut put = Some(put);
        self.log_for_readers(|group, _| {
            put.take()?(group);
            Some(())
        })
    }

    /// Logs records of readers, which `put` puts one by one until it returns `None`, in one group
    /// unless that gets too long. Returns the position of the last.
    pub(super) fn log_for_readers(
        &self,
        mut put: impl FnMut(&mut GroupBuilder, usize) -> Option<()>,
    ) -> Result<Position> {
        self.check_writable()?;
        if self.log().is_none() {
            return Ok(Position::default());
        }
        let mut state = self.shards[0].lock();
        let mut number = 0;
        while put(&mut state.group, number).is_some() {
            number += 1;
            self.log_long_group(&mut state)?;
        }
        self.log_group(&mut state)?;
        Ok(self.log().map_or_else(Position::default, Log::written))
    }

    /// A replay meets the horizon of a reader. No shard may be locked.
    pub(crate) fn replay_horizon(&self, reader: u64, at: Timestamp) {
        self.raise_horizons(&[(ReaderId(reader), at)]);
    }

    /// A replay meets what a reader has done.
    pub(crate) fn replay_done(&self, reader: u64, position: u64) {
        self.registered(reader, |held| held.end_replayed(position));
    }

    /// A replay meets what was known of a reader. No shard may be locked.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn replay_pending(&self, reader: u64, state: &[u8]) -> Result<()> {
        let (horizon, position) = self.register_pending(reader, state)?;
        self.raise_horizons(&[(ReaderId(reader), horizon)]);
        for shard in &self.shards {
            shard.lock().watched.forget_ended(position);
        }
        Ok(())
    }

    /// The same for the registry alone. Returns the horizon, and up to where the log is in the states
    /// of all readers: one group may say that of one, and the next one that of others.
    fn register_pending(&self, reader: u64, state: &[u8]) -> Result<(Timestamp, u64)> {
        let Some(state) = state::read(state) else {
            let text = format!("the log makes no sense: the state of reader {reader}");
            return Err(Error::new(ErrorKind::Corrupt, text));
        };
        let horizon = self.registered(reader, |held| {
            held.horizon = held.horizon.max(state.horizon);
            held.since = state.since;
            held.done = state.position;
            held.set_pending(state.changes);
            held.horizon
        });
        let registry = self.watches.registry.read();
        let known = registry.readers.values().map(|held| held.done).min();
        Ok((horizon, known.unwrap_or(0)))
    }

    /// A replay meets steps of a reader that are to be computed again, in the group at `at`.
    pub(crate) fn replay_steps(&self, reader: u64, span: Span, at: u64) {
        self.registered(reader, |held| held.take_steps(span, at, true));
    }

    /// Steps of a reader before `at` are not to be touched.
    pub(crate) fn register_since(&self, reader: u64, at: Timestamp) {
        self.registered(reader, |held| held.since = at);
    }

    /// Changes what is registered of a reader, known or not.
    pub(super) fn registered<T>(&self, reader: u64, change: impl FnOnce(&mut Reader) -> T) -> T {
        let mut registry = self.watches.registry.write();
        registry.change(ReaderId(reader), change)
    }

    /// Logs all that is known of readers. Returns the first group of the log that is needed for
    /// them from here on, if there are any. Files may then hold all that was written to series
    /// before the call: a replay does not mark what it passes over. No shard may be locked.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn log_readers(&self) -> Result<Option<u64>> {
        let _collecting = self.watches.collecting.lock();
        // Most of it, while evaluations may begin.
        self.collect();
        let _turn = self.watches.turn.lock();
        let registry = self.watches.registry.read();
        if registry.readers.is_empty() || self.is_log_given_up() {
            return Ok(None);
        }
        if !registry.is_known() {
            // Nobody has said yet what they select, so marks cannot be handed out: the log stays,
            // also where a replay flushes.
            return Ok(Some(0));
        }
        drop(registry);
        self.log_states(|held, _| Cow::Borrowed(held.pending()))
    }

    /// The same where all series are gone: the log before is needed no more, known readers or not.
    /// No shard may be locked.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn log_readers_of_nothing(&self) -> Result<()> {
        if self.log_readers()? != Some(0) {
            return Ok(());
        }
        let _collecting = self.watches.collecting.lock();
        let _turn = self.watches.turn.lock();
        self.log_states(|held, at| Cow::Owned(held.with_all_gone(at)))?;
        Ok(())
    }

    /// Logs the states of all readers, each with the changes that `pending` says.
    fn log_states(
        &self,
        pending: impl Fn(&Reader, u64) -> Cow<'_, [Pending]>,
    ) -> Result<Option<u64>> {
        let Some(log) = self.log() else {
            return Ok(None);
        };
        let position = log.written();
        self.collect();
        let registry = self.watches.registry.read();
        let bytes_max = self.group_bytes_max() / 4;
        let states = registry.readers.iter().map(|(reader, held)| {
            let pending = pending(held, position.0);
            (reader.0, state::of(held, &pending, position, bytes_max))
        });
        let states: Vec<_> = states.collect();
        drop(registry);
        self.log_for_readers(|group, number: usize| {
            let (reader, state) = states.get(number)?;
            group.pending(*reader, state);
            Some(())
        })?;
        Ok(Some(position.0 + 1))
    }

    /// Sets the horizons of readers, everywhere.
    pub(super) fn raise_horizons(&self, all: &[(ReaderId, Timestamp)]) {
        let registered = all
            .iter()
            .map(|&(reader, at)| (self.register_horizon(reader, at), at));
        let registered: Vec<_> = registered.collect();
        for shard in &self.shards {
            let mut state = shard.lock();
            for ((sets, generation), at) in &registered {
                state.watched.raise_all(sets, *generation, *at);
            }
        }
    }

    /// Applies a record of a reader, of the group at `position`, under the locks of all shards.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn follow_reader(
        &self,
        states: &mut AllShards<'_>,
        position: Position,
        record: &Record<'_>,
    ) -> Result<()> {
        match *record {
            Record::Horizon { reader, at } => self.follow_horizon(states, reader, at),
            Record::Done { reader, position } => self.replay_done(reader, position),
            Record::Pending { reader, state } => {
                let (horizon, position) = self.register_pending(reader, state)?;
                self.follow_horizon(states, reader, horizon);
                for state in states {
                    state.watched.forget_ended(position);
                }
            }
            Record::Steps { reader, from, to } => {
                self.replay_steps(reader, Span { from, to }, position.0);
            }
            Record::Since { reader, at } => self.register_since(reader, at),
            // No others are of readers.
            _ => {}
        }
        Ok(())
    }

    /// As [`Core::replay_horizon`], under the locks of all shards.
    fn follow_horizon(&self, states: &mut AllShards<'_>, reader: u64, at: Timestamp) {
        let (sets, generation) = self.register_horizon(ReaderId(reader), at);
        for state in states {
            state.watched.raise_all(&sets, generation, at);
        }
    }

    /// Sets the horizon of a reader in the registry. Returns the watch sets it is in, with their
    /// generation.
    fn register_horizon(&self, reader: ReaderId, at: Timestamp) -> (Vec<WatchSet>, u64) {
        let mut registry = self.watches.registry.write();
        let generation = registry.generation;
        let held = registry.readers.entry(reader).or_insert_with(Reader::new);
        held.raise(at);
        (held.sets.clone(), generation)
    }
}
