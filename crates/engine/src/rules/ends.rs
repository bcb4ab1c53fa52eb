//! Ending series: what retention has left nothing of is removed, so that memory follows the series
//! that are written.
//!
//! A *pass* looks at all series, a slice of time at once, and removes those of which [`Terms`] say
//! that they have ended: first at those that are awake, then at the parked ones ([`parked`]). A source stays until all that it writes to has ended but for it, what closed
//! before it goes is in its destinations, and these end behind it. A pass is due when the floor has risen, and when by what the last one
//! saw a series may have ended by its own retention; else once in an hour. Passes take a fiftieth of
//! a core at most.
//!
//! Invariants:
//! 1. Under one lock at most [`LOOKS_MAX`] series are looked at, or [`ENDS_MAX`] removed. Computing,
//!    freeing memory and telling happen under none.
//! 2. Whether a series has ended is decided under the lock under which it goes: a sample that was
//!    acknowledged before keeps it, one that comes after finds no series.
//! 3. What is made in the course of a pass is not judged by it: by its time, samples that come after
//!    a FLUSHALL may be old.
//! 4. The log says what the floor is before a series ends by it. A follower ends nothing.
//!
//! Tested by `tests/ends`, `tests/db_rules/ends.rs`, `tests/churn.rs` and the model test.

mod parked;
mod terms;

use crate::base::error::Result;
use crate::base::options::DropEmpty;
use crate::io::waiting::no_wait;
use crate::keyspace::core::Core;
use crate::keyspace::ended::EndedBy;
use crate::observe::observer::Work;
use crate::rules::Rules;
use crate::series::Series;
use crate::series::rules::Take;
use crate::series::shard::ShardState;
use latewood_model::{SeriesId, Timestamp};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;
use terms::Terms;

/// Series looked at under one lock.
const LOOKS_MAX: usize = 512;
/// Series removed under one lock, and where their selectors have to be matched.
const ENDS_MAX: usize = 128;
const WATCHED_ENDS_MAX: usize = 32;
/// How long a pass goes on before others have their turn.
const SLICE: Duration = Duration::from_millis(20);
/// A pass rests this many times as long as it took,
const REST_PER_WORK: u64 = 50;
/// this long at least, unless the floor has risen,
const REST_MIN: Duration = Duration::from_secs(60);
/// and no longer than this: series change.
const REST_MAX: Duration = Duration::from_secs(3600);

/// See the module.
pub(super) struct Ends {
    /// A [`DropEmpty`].
    which: AtomicU8,
    /// It was changed since a pass began.
    has_changed: AtomicBool,
    /// Held while series are looked at; before all other locks.
    pass: Mutex<Passes>,
}

impl Ends {
    pub(super) fn new(which: DropEmpty) -> Self {
        Self {
            which: AtomicU8::new(which as u8),
            has_changed: AtomicBool::new(false),
            pass: Mutex::default(),
        }
    }

    fn which(&self) -> DropEmpty {
        let number = self.which.load(Ordering::Relaxed);
        DropEmpty::ALL[usize::from(number)]
    }
}

/// The pass that is under way, and what the last one said.
#[derive(Default)]
struct Passes {
    running: Option<Pass>,
    last: Option<LastPass>,
}

/// A pass under way.
struct Pass {
    /// The places of each shard that it looks at.
    ends: Vec<usize>,
    /// Where it goes on.
    shard: usize,
    place: usize,
    /// Behind the last shard.
    files: Option<parked::Files>,
    floor: Timestamp,
    /// See [`Terms::now_ms`].
    now_ms: i64,
    took_ns: u64,
    /// When a series that stayed ends by its own retention at the earliest.
    next_own_end: i64,
}

/// A pass that is over.
struct LastPass {
    floor: Timestamp,
    took_ns: u64,
    over_ns: u64,
    next_own_end: i64,
}

/// Some series of a shard that may go.
struct Found {
    /// What they look like is asked for when they go.
    is_watched: bool,
    series: Vec<Ending>,
}

struct Ending {
    id: SeriesId,
    is_source: bool,
    /// The source of the rule that writes to it.
    source: Option<SeriesId>,
}

impl Rules {
    /// See [`crate::Db::set_drop_empty`].
    pub(crate) fn set_drop_empty(&self, which: DropEmpty) {
        self.ends.which.store(which as u8, Ordering::Relaxed);
        // The lock of the pass is held while sources are read, so it is not waited for.
        self.ends.has_changed.store(true, Ordering::Release);
    }

    /// See [`crate::Db::drop_empty`].
    pub(crate) fn drop_empty(&self) -> DropEmpty {
        self.ends.which()
    }

    /// Goes on with the pass for a slice of time, if there is one or one is due.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn end_some(&self) -> Result<()> {
        let mut passes = self.ends.pass.lock();
        if passes.running.is_none() && self.ends.has_changed.swap(false, Ordering::Acquire) {
            // What stayed may go.
            passes.last = None;
        }
        let clock = &self.core.env.clock;
        let begun_ns = clock.monotonic_ns();
        if self.ends.which() == DropEmpty::None
            || passes.running.is_none() && !self.is_due(passes.last.as_ref(), begun_ns)
            || self.core.check_writable().is_err()
        {
            return Ok(());
        }
        let end_ns = begun_ns.saturating_add(SLICE.as_nanos() as u64);
        let Passes { running, last } = &mut *passes;
        let pass = running.get_or_insert_with(|| self.begin_pass(last.as_ref()));
        let (mut goes_on, mut ended, mut now_ns) = (true, 0, begun_ns);
        while goes_on && now_ns < end_ns {
            goes_on = self.end_next(pass, &mut ended)?;
            now_ns = clock.monotonic_ns();
        }
        let took_ns = now_ns.saturating_sub(begun_ns);
        pass.took_ns += took_ns;
        if !goes_on {
            passes.finish(now_ns);
        }
        if ended > 0 {
            self.core.observe.observer.note(Work::EndCycle, took_ns);
        }
        Ok(())
    }

    /// Makes a whole pass, due or not.
    ///
    /// # Errors
    /// Those of the log.
    pub(crate) fn end_all(&self) -> Result<()> {
        if self.ends.which() == DropEmpty::None || self.core.check_writable().is_err() {
            return Ok(());
        }
        let mut passes = self.ends.pass.lock();
        let pass = passes.running.insert(self.begin_pass(None));
        while self.end_next(pass, &mut 0)? {}
        passes.finish(self.core.env.clock.monotonic_ns());
        Ok(())
    }

    fn is_due(&self, last: Option<&LastPass>, now_ns: u64) -> bool {
        let Some(last) = last else {
            return true;
        };
        let rest_ns = now_ns.saturating_sub(last.over_ns);
        let has_rested = |time: Duration| u128::from(rest_ns) >= time.as_nanos();
        rest_ns >= last.took_ns.saturating_mul(REST_PER_WORK)
            && (self.core.store.blocks.floor() > last.floor
                || has_rested(REST_MIN) && self.core.time.now_ms() > last.next_own_end
                || has_rested(REST_MAX))
    }

    /// A new pass. By what the `last` one saw it may be that no series ends by its own retention.
    fn begin_pass(&self, last: Option<&LastPass>) -> Pass {
        let shards = self.core.shards.iter();
        let ends = shards.map(|shard| shard.lock().next_place).collect();
        let floor = self.core.store.blocks.floor();
        let now_ms = self.core.time.now_ms();
        // Asked after `ends`: what comes later is not judged by it. A clock alone says nothing, nor
        // do samples that are far ahead of it.
        let now_ms = match last {
            Some(last) if now_ms <= last.next_own_end => Timestamp::MIN,
            _ => self
                .core
                .newest_agreed()
                .map_or(Timestamp::MIN, |newest| newest.min(now_ms)),
        };
        Pass {
            ends,
            shard: 0,
            place: 0,
            files: None,
            floor,
            now_ms,
            took_ns: 0,
            next_own_end: i64::MAX,
        }
    }

    /// Looks at the next series of a pass and removes those that have ended, which it adds to
    /// `ended`. Returns whether the pass goes on.
    fn end_next(&self, pass: &mut Pass, ended: &mut u64) -> Result<bool> {
        let Some(&end) = pass.ends.get(pass.shard) else {
            return self.end_next_parked(pass, ended);
        };
        let (shard, mut found) = (pass.shard, self.look(pass, end));
        let _no_wait = no_wait();
        let terms = self.terms(pass.now_ms);
        found
            .series
            .retain(|ending| self.make_ready(ending, &terms));
        if !found.series.is_empty() {
            *ended += self.end(shard, pass.now_ms, &found)?;
        }
        Ok(true)
    }

    /// The next series of a shard that may go.
    fn look(&self, pass: &mut Pass, end: usize) -> Found {
        let state = self.core.shards[pass.shard].lock();
        let terms = self.terms(pass.now_ms);
        let is_watched = state.watched.is_on();
        let ends_max = if is_watched {
            WATCHED_ENDS_MAX
        } else {
            ENDS_MAX
        };
        let (from, mut found) = (pass.place, Vec::with_capacity(ends_max));
        let (mut looks, mut is_over) = (0, true);
        // awake: the parked ones are looked at page by page.
        for (place, series) in state.slab.iter_in(from..end) {
            if looks == LOOKS_MAX || found.len() == ends_max {
                is_over = false;
                break;
            }
            looks += 1;
            pass.place = place + 1;
            if terms.ended(series).is_some() {
                if series.rules().is_some() {
                    // It may not be ready yet, and what it writes to may end behind it.
                    pass.next_own_end = i64::MIN;
                }
                found.push(Ending {
                    id: self.core.shards.id_of(pass.shard, place),
                    is_source: series.rules().is_some(),
                    source: series.source(),
                });
            } else if let Some(at_ms) = terms.next_own_end(series) {
                pass.next_own_end = pass.next_own_end.min(at_ms);
            }
        }
        if is_over {
            (pass.shard, pass.place) = (pass.shard + 1, 0);
        }
        Found {
            is_watched,
            series: found,
        }
    }

    fn terms(&self, now_ms: i64) -> Terms {
        Terms {
            which: self.ends.which(),
            floor: self.core.store.blocks.floor(),
            now_ms,
        }
    }

    /// Does what has to be done before a series goes; whether it may go.
    fn make_ready(&self, ending: &Ending, terms: &Terms) -> bool {
        // An id is not used again: a source that is gone stays so.
        let is_written = ending.source.is_some_and(|source| {
            let state = self.core.shards.lock_of(source);
            self.core.is_there(&state, source)
        });
        if is_written || !ending.is_source {
            return !is_written;
        }
        // What closed before a source goes is in its destinations.
        self.leaves_no_rows(ending.id, terms) && self.recompute_for_removal(ending.id).is_ok()
    }

    /// Whether all that a source writes to has ended but for the source. Else the rule would go, and
    /// where the source comes back nobody would go on with its rows.
    fn leaves_no_rows(&self, source: SeriesId, terms: &Terms) -> bool {
        let destinations_of = |series: &Series| series.destinations();
        let destinations = self.seen(source, destinations_of);
        let Ok(destinations) = destinations else {
            // One that cannot be read stays, and so does what writes to it.
            return false;
        };
        destinations.into_iter().flatten().all(|destination| {
            let has_ended = self.seen(destination, |series| terms.is_over(series));
            matches!(has_ended, Ok(None | Some(true))) && self.leaves_no_rows(destination, terms)
        })
    }

    /// What is to be seen of an end of rules, if it is there.
    fn seen<T>(&self, id: SeriesId, see: impl FnOnce(&Series) -> T) -> Result<Option<T>> {
        self.core.bring_linked([id].into_iter())?;
        let state = self.core.shards.lock_of(id);
        Ok(self.core.linked(&state, id)?.series().map(see))
    }

    /// Removes those of a shard that have ended all the same. Returns how many.
    fn end(&self, shard: usize, now_ms: i64, found: &Found) -> Result<u64> {
        if found.is_watched {
            // Or labels are looked for in the queues of the index, one by one.
            self.core.index.apply();
        }
        let mut state = self.core.shards[shard].lock();
        let (state_now, terms) = (&*state, self.terms(now_ms));
        let ends = found.series.iter().filter_map(|ending| {
            let by = ending.still_ended(&self.core, state_now, &terms)?;
            Some((ending.id, by))
        });
        let ends: Vec<_> = ends.collect();
        if ends.is_empty() {
            return Ok(0);
        }
        let gone = self.core.end_in(&mut state, &ends)?;
        state.counters.ended += gone.len() as u64;
        drop(state);
        // No writer may come that does so.
        self.core.index.relieve();
        if let Some(hook) = &self.core.options.on_ended {
            gone.iter().for_each(|series| hook.tell(&series.key));
        }
        Ok(gone.len() as u64)
    }
}

impl Ending {
    /// Why the series has ended, if nothing came that keeps it. One that cannot be read stays.
    fn still_ended(&self, core: &Core, state: &ShardState, terms: &Terms) -> Option<EndedBy> {
        let presence = core.presence(state, self.id).ok()?;
        let series = presence.series()?;
        let has_work = series.has_rule_work(Take::All) || series.has_history();
        let is_same = series.source() == self.source && !has_work;
        let may_end = is_same && !state.unnamed.contains(&self.id);
        may_end.then(|| terms.ended(series)).flatten()
    }
}

impl Passes {
    /// The pass that is under way is over.
    fn finish(&mut self, over_ns: u64) {
        self.last = self.running.take().map(|pass| LastPass {
            floor: pass.floor,
            took_ns: pass.took_ns,
            over_ns,
            next_own_end: pass.next_own_end,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::{SimClock, SimDisk};
    use crate::io::{Clock, Env};
    use crate::{Append, Create, Db, Defaults, Options, Scratch};
    use latewood_model::SeriesOptions;
    use std::path::Path;
    use std::sync::Arc;

    const HOUR_MS: u32 = 3_600_000;

    struct World {
        clock: Arc<SimClock>,
        db: Db,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(SimClock::default());
            let env = Env {
                clock: clock.clone(),
                ..SimDisk::new().env(1)
            };
            let options = Options {
                background: false,
                retention_ms: 240 * u64::from(HOUR_MS),
                ..Options::default()
            };
            let db = Db::open(&env, Path::new("/db"), options, Defaults::default()).unwrap();
            Self { clock, db }
        }

        fn write(&self, key: &[u8], retention_ms: u64) {
            let options = SeriesOptions {
                retention_ms,
                ..SeriesOptions::default()
            };
            let append = Append {
                key,
                timestamp: self.clock.now_ms(),
                value: 1.0,
                on_duplicate: None,
                create: Create::Sent(&options),
            };
            self.db.append(&[append], &mut Scratch::new()).unwrap();
        }

        /// Lets time pass and the thread have its turn; whether a pass was made.
        fn passes_after(&self, ms: u32) -> bool {
            self.clock.advance_ms(ms);
            let rules = &self.db.parts().rules;
            rules.end_some().unwrap();
            let passes = rules.ends.pass.lock();
            passes.last.as_ref().unwrap().over_ns == self.clock.monotonic_ns()
        }
    }

    #[test]
    fn a_pass_is_due_when_a_series_may_have_ended() {
        let world = World::new();
        assert!(world.passes_after(1), "the first one");
        assert!(!world.passes_after(60_001), "nothing ends by itself");
        assert!(world.passes_after(HOUR_MS), "an hour later");
        // A pass sees when a series ends: a minute later, and a slack of one more.
        world.db.set_drop_empty(DropEmpty::Sent);
        world.write(b"minute", 60_000);
        assert!(world.passes_after(1), "series that stayed may go");
        assert!(!world.passes_after(60_000));
        assert!(!world.passes_after(59_999), "the last millisecond");
        assert!(world.passes_after(1));
    }

    #[test]
    fn a_pass_is_due_when_the_floor_has_risen() {
        let world = World::new();
        for key in [b"a", b"b", b"c"] {
            world.write(key, 0);
        }
        assert!(world.passes_after(1));
        while world.db.merge_step().unwrap() {}
        assert!(world.passes_after(1), "a floor");
        assert!(!world.passes_after(1), "the same");
        world.clock.advance_ms(HOUR_MS);
        while world.db.merge_step().unwrap() {}
        assert!(world.passes_after(1), "a higher one");
    }
}
