//! What the operators of one query share: its source and settings, what it holds, what it gathers.
//!
//! Invariant: what is held counts for the query and for the pool of all queries alike, and goes
//! back to the pool with the query. Tested by `tests/evaluation/held.rs` and `memory.rs`.

use crate::annotation::Annotations;
use crate::exec::record::Record;
use crate::exec::{EvalError, Result, Scratch, Work};
use crate::source::{Found, Matcher, Samples, Selection, Source, SourceError, TakeTogether};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ranges that are read before it is asked whether the query must end.
const RANGES_UNCHECKED: usize = 256;

/// Settings of an evaluation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How far back an instant selector looks, milliseconds.
    pub lookback_ms: i64,
    /// The step of a subquery without one, milliseconds.
    pub subquery_step_ms: i64,
    /// Names are removed from the result of the whole query only.
    pub delays_name_removal: bool,
    /// Sums over windows that overlap are shared between steps, which may round another way than
    /// an evaluation of each step alone.
    pub shares_sums: bool,
    /// Samples that a query may hold at a time.
    pub samples_max: usize,
    /// Bytes that a query may hold at a time.
    pub memory_bytes_max: usize,
    /// What all queries may hold together, if that is bounded.
    pub pool: Option<Arc<Pool>>,
}

/// Memory that several queries share.
#[derive(Debug)]
pub struct Pool {
    bytes_max: usize,
    held_bytes: AtomicUsize,
}

impl Pool {
    /// Of this many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            held_bytes: AtomicUsize::new(0),
        }
    }

    /// The most that queries may hold, bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes that queries hold now.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }
}

impl Default for Settings {
    /// As Prometheus.
    fn default() -> Self {
        Self {
            lookback_ms: 5 * 60 * 1000,
            subquery_step_ms: 60 * 1000,
            delays_name_removal: false,
            shares_sums: true,
            samples_max: 50_000_000,
            memory_bytes_max: 1 << 30,
            pool: None,
        }
    }
}

/// What the operators of one query share.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) settings: &'a Settings,
    pub(super) state: &'a State,
    /// Of the node that is evaluated, if the query is explained.
    pub(super) record: Option<&'a Record>,
    /// Somebody only looks which series have samples: nothing is counted, and nothing said.
    pub(super) is_probing: bool,
}

/// What an evaluation gathers, and what it holds.
#[derive(Default)]
pub(crate) struct State {
    annotations: Mutex<Annotations>,
    held_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    scratch: Mutex<Vec<Scratch>>,
    /// Series found by the source, and samples read from it.
    series_read: AtomicU64,
    samples_read: AtomicU64,
    /// Of these, samples of which the source knew enough together.
    samples_together: AtomicU64,
    /// Where what is held counts, too.
    pool: Option<Arc<Pool>>,
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let held = *self.held_bytes.get_mut();
            pool.held_bytes.fetch_sub(held, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Nothing yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut state = Self::default();
        state.pool.clone_from(&settings.pool);
        state
    }

    /// Adds what was said and read in a part of the evaluation.
    fn absorb(&self, part: &Self) {
        lock(&self.annotations).merge(part.take_annotations());
        self.series_read
            .fetch_add(part.series_read(), Ordering::Relaxed);
        self.samples_read
            .fetch_add(part.samples_read(), Ordering::Relaxed);
        self.samples_together
            .fetch_add(part.samples_together(), Ordering::Relaxed);
        let peak_bytes = self.held_bytes() + part.peak_bytes();
        self.peak_bytes.fetch_max(peak_bytes, Ordering::Relaxed);
    }

    /// Takes the annotations out.
    pub(crate) fn take_annotations(&self) -> Annotations {
        std::mem::take(&mut *lock(&self.annotations))
    }

    /// Series that the source found.
    pub(crate) fn series_read(&self) -> u64 {
        self.series_read.load(Ordering::Relaxed)
    }

    /// Samples read from the source.
    pub(crate) fn samples_read(&self) -> u64 {
        self.samples_read.load(Ordering::Relaxed)
    }

    /// Of these, samples of which the source knew enough together.
    pub(crate) fn samples_together(&self) -> u64 {
        self.samples_together.load(Ordering::Relaxed)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// The most that was held at a time, bytes.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak_bytes.load(Ordering::Relaxed)
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(source: &'a dyn Source, settings: &'a Settings, state: &'a State) -> Self {
        Self {
            source,
            settings,
            state,
            record: None,
            is_probing: false,
        }
    }

    /// Runs `run` with what a thread keeps between columns.
    pub(crate) fn work<T>(&self, run: impl FnOnce(&mut Work<'_>) -> Result<T>) -> Result<T> {
        let kept = || lock(&self.state.scratch);
        let mut scratch = kept().pop().unwrap_or_default();
        let result = run(&mut Work {
            ctx: self,
            scratch: &mut scratch,
        });
        kept().push(scratch);
        result
    }

    /// Finds series.
    pub(crate) fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
    ) -> Result<Vec<Found>> {
        self.source.check()?;
        let mut held = Ok(());
        let mut hold = |bytes| flow(self.hold(bytes), &mut held);
        let found = self.source.select(matchers, from_ms, to_ms, &mut hold);
        let found = self.unless_ended(found, held)?;
        let series = found.len() as u64;
        self.state.series_read.fetch_add(series, Ordering::Relaxed);
        if let Some(record) = self.record {
            let late = found.iter().map(|found| self.source.late(found.handle));
            record.selected(series, late.sum());
        }
        Ok(found)
    }

    /// Evaluates a part of the query, which gives back all that it holds; the settings are its own.
    pub(super) fn part<T>(
        &self,
        source: &dyn Source,
        evaluate: impl FnOnce(&Context<'_>) -> Result<T>,
    ) -> Result<T> {
        let settings = Settings {
            memory_bytes_max: (self.settings.memory_bytes_max)
                .saturating_sub(self.state.held_bytes()),
            ..self.settings.clone()
        };
        let state = State::new(&settings);
        let result = evaluate(&Context::new(source, &settings, &state));
        self.state.absorb(&state);
        match result {
            Err(EvalError::Memory(_)) => Err(EvalError::Memory(self.settings.memory_bytes_max)),
            result => result,
        }
    }

    /// Finds series, some after others, where the source has too many to hold them together; otherwise
    /// returns `false`. What is held of them is given back after each turn.
    pub(super) fn select_some(
        &self,
        selection: Selection<'_>,
        needed: &[String],
        mut take: impl FnMut(Vec<Found>) -> Result<()>,
    ) -> Result<bool> {
        self.source.check()?;
        let (held, taken, held_bytes) = (Cell::new(Ok(())), Cell::new(Ok(())), Cell::new(0));
        let flow = |done: Result<()>, result: &Cell<Result<()>>| {
            let is_done = done.is_ok();
            result.set(done);
            if is_done {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let mut hold = |bytes: usize| {
            let done = self.hold(bytes);
            held_bytes.set(held_bytes.get() + if done.is_ok() { bytes } else { 0 });
            flow(done, &held)
        };
        let mut take = |found| {
            let done = take(found);
            self.release(held_bytes.take());
            flow(done, &taken)
        };
        let selected = (self.source).select_some(selection, needed, &mut hold, &mut take);
        self.release(held_bytes.take());
        taken.into_inner()?;
        let selected = self.unless_ended(selected, held.into_inner())?;
        // One that ended early must not pass for fewer series.
        self.source.check()?;
        Ok(selected)
    }

    /// Reads ranges of one series, ends inclusive and ascending; `into` is emptied first.
    pub(crate) fn read(
        &self,
        handle: usize,
        ranges: impl Iterator<Item = (i64, i64)>,
        into: &mut Samples,
    ) -> Result<()> {
        into.clear();
        self.pass(handle, ranges, |timestamps, values| {
            self.keep(timestamps, values, into)
        })
    }

    /// The same, handed to `take` as they come.
    pub(crate) fn pass(
        &self,
        handle: usize,
        ranges: impl Iterator<Item = (i64, i64)>,
        mut take: impl FnMut(&[i64], &[f64]) -> Result<()>,
    ) -> Result<()> {
        let end: RefCell<Option<EvalError>> = RefCell::default();
        let spans = ranges.enumerate().map_while(|(at, span_ms)| {
            // Of ranges without samples nobody else asks.
            if at % RANGES_UNCHECKED == 0
                && let Err(interrupt) = self.source.check()
            {
                *end.borrow_mut() = Some(interrupt.into());
            }
            end.borrow().is_none().then_some(span_ms)
        });
        let mut spans = spans.filter(|(from_ms, to_ms)| from_ms <= to_ms);
        let mut count = 0;
        let mut take = |timestamps: &[i64], values: &[f64]| {
            count += timestamps.len();
            let taken = if count > self.settings.samples_max {
                Err(EvalError::Samples)
            } else {
                take(timestamps, values)
            };
            match taken {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    *end.borrow_mut() = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let read = self.source.read_spans(handle, &mut spans, &mut take);
        self.unless_ended(read, end.take().map_or(Ok(()), Err))?;
        self.count_read(count as u64, 0);
        Ok(())
    }

    /// The same of one range, of which `together` may take samples that are left out then; how many were
    /// read, which is not counted yet: see [`Context::count_read`].
    pub(crate) fn read_together(
        &self,
        handle: usize,
        span_ms: (i64, i64),
        together: &mut TakeTogether<'_>,
        into: &mut Samples,
    ) -> Result<u64> {
        self.source.check()?;
        into.clear();
        let (mut kept, mut count) = (Ok(()), 0);
        let mut take = |timestamps: &[i64], values: &[f64]| {
            count += timestamps.len() as u64;
            flow(self.keep(timestamps, values, into), &mut kept)
        };
        let read = (self.source).read_together(handle, span_ms, together, &mut take);
        self.unless_ended(read, kept)?;
        Ok(count)
    }

    /// Counts samples of a series that were read, and those that were taken together.
    pub(crate) fn count_read(&self, samples: u64, together: u64) {
        if self.is_probing {
            return;
        }
        let samples = samples + together;
        if let Some(record) = self.record {
            record.read(samples);
        }
        self.state
            .samples_read
            .fetch_add(samples, Ordering::Relaxed);
        if together > 0 {
            let count = &self.state.samples_together;
            count.fetch_add(together, Ordering::Relaxed);
        }
    }

    /// What the source came to, unless the query ends: by its limits, as `within` says, or
    /// interrupted, with which the source fails.
    fn unless_ended<T>(&self, result: Result<T, SourceError>, within: Result<()>) -> Result<T> {
        within?;
        if result.is_err() {
            self.source.check()?;
        }
        Ok(result?)
    }

    /// Appends samples, without stale marks. A thread keeps their memory for its next series, until
    /// the query ends.
    fn keep(&self, timestamps: &[i64], values: &[f64], into: &mut Samples) -> Result<()> {
        let (len, capacity) = (into.timestamps.len(), into.timestamps.capacity());
        let needed = len + timestamps.len();
        if needed > self.settings.samples_max {
            return Err(EvalError::Samples);
        }
        if needed > capacity {
            let grown = needed.max(2 * capacity);
            self.hold((grown - capacity) * Samples::EACH_BYTES)?;
            into.timestamps.reserve_exact(grown - len);
            into.values.reserve_exact(grown - len);
        }
        into.extend(timestamps, values);
        Ok(())
    }

    /// Adds annotations under a lock: gather them first where there may be many.
    pub(crate) fn annotate(&self, add: impl FnOnce(&mut Annotations)) {
        if !self.is_probing {
            add(&mut lock(&self.state.annotations));
        }
    }

    /// Counts bytes that stay held until [`Context::release`] or the end of the query.
    pub(crate) fn hold(&self, bytes: usize) -> Result<()> {
        let State {
            held_bytes,
            peak_bytes,
            pool,
            ..
        } = self.state;
        // What is refused is given back at once: it must not keep other queries out.
        let held = held_bytes
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes);
        if held > self.settings.memory_bytes_max {
            held_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(EvalError::Memory(self.settings.memory_bytes_max));
        }
        if let Some(pool) = pool {
            let all = pool
                .held_bytes
                .fetch_add(bytes, Ordering::Relaxed)
                .saturating_add(bytes);
            if all > pool.bytes_max {
                pool.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
                held_bytes.fetch_sub(bytes, Ordering::Relaxed);
                return Err(EvalError::Crowded);
            }
        }
        peak_bytes.fetch_max(held, Ordering::Relaxed);
        if let Some(record) = self.record {
            record.held(bytes as i64);
        }
        Ok(())
    }

    /// Whether `bytes` more stay far below what the query may hold.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.room_bytes()
    }

    /// What more stays far below what the query may hold.
    pub(super) fn room_bytes(&self) -> usize {
        let held = self.state.held_bytes.load(Ordering::Relaxed);
        (self.settings.memory_bytes_max / 2).saturating_sub(held)
    }

    /// Gives back what was held.
    pub(crate) fn release(&self, bytes: usize) {
        self.state.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(record) = self.record {
            record.held(-(bytes as i64));
        }
        if let Some(pool) = &self.state.pool {
            pool.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Whether to go on, and in `result` why not.
fn flow(done: Result<(), EvalError>, result: &mut Result<()>) -> ControlFlow<()> {
    *result = done;
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
