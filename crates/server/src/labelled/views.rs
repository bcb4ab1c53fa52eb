//! The series of the database as a source of PromQL, for whoever reads them.
//!
//! Each series is read at the moment its selector is evaluated. Those of a selector are taken in
//! parts, between which an EXEC may run. A selector that stands in a query twice with the same span
//! finds the same samples both times, so that `x / x` is 1. [`Source::select_some`] reads series anew each time.
//!
//! Tested by `tests/http/promql.rs` and `tests/promql`.

use super::{KEY, Named};
use crate::state::Shared;
use latewood_engine::io::waiting::until;
use latewood_engine::{
    BatchStats, Doubt, DoubtKind, Error, RangeQuery, SeriesRef, SeriesView, Sink, View,
};
use latewood_promql::source::{
    Found, Hold, Interrupt, Matcher, Selection, Source, SourceError, Spans, Take, TakeSome,
    TakeTogether, Together,
};
use parking_lot::{Mutex, RwLock};
use std::cell::Cell;
use std::iter::once;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Series that are taken together, under one share of the exec lock.
pub(crate) const PART_SERIES: usize = 2048;

/// Bytes that a series takes which a query holds, about: its labels, key and view.
const SERIES_BYTES: usize = 1024;

/// Takes some series, with what counts the bytes that are held for them.
pub(crate) type TakeNamed<'a> = dyn FnMut(Vec<Named>, &mut Hold<'_>) -> ControlFlow<()> + 'a;

/// For whom series are read.
pub(crate) trait Reader: Send + Sync {
    /// The server.
    fn shared(&self) -> &Shared;

    /// The series that pass all matchers, in the order of their labels; some may be left out that have
    /// no sample in the span, milliseconds, both ends included.
    ///
    /// # Errors
    /// Where they may not be read, or are too many.
    fn find(&self, matchers: &[Matcher], span: (i64, i64)) -> Result<Arc<[Named]>, SourceError>;

    /// The same some series after others, where their number `is_many`; otherwise `false`, and nothing is
    /// taken. What a turn holds is counted by `hold`.
    ///
    /// # Errors
    /// As [`Reader::find`].
    fn find_some(
        &self,
        selection: Selection<'_>,
        is_many: &dyn Fn(usize) -> bool,
        hold: &mut Hold<'_>,
        take: &mut TakeNamed<'_>,
    ) -> Result<bool, SourceError> {
        let _ = (selection, is_many, hold, take);
        Ok(false)
    }

    /// The words for an error of the series under `key`.
    fn failed(&self, error: &Error, key: &[u8]) -> SourceError;

    /// When reading must end.
    fn deadline(&self) -> Instant;

    /// Whether it must end now.
    ///
    /// # Errors
    /// Why.
    fn check(&self) -> Result<(), Interrupt>;
}

/// What a query reads.
pub(crate) struct Views<R> {
    reader: R,
    held: RwLock<Vec<Held>>,
    selected: Mutex<Vec<Selected>>,
    /// Late samples of the series found.
    late: AtomicU64,
    /// Unaccepted damage that concerns one of them.
    doubt: Mutex<Option<Doubt>>,
}

/// A series at one moment.
struct Held {
    key: Arc<[u8]>,
    view: View,
}

/// Bytes of a series that is held beside those of its view.
const EACH_BYTES: usize = size_of::<Held>() - size_of::<View>() + 64;

/// What a selector found.
struct Selected {
    matchers: Vec<Matcher>,
    /// Both ends, milliseconds.
    span: (i64, i64),
    found: Vec<Found>,
}

impl<R: Reader> Views<R> {
    /// Nothing yet.
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            held: RwLock::default(),
            selected: Mutex::default(),
            late: AtomicU64::new(0),
            doubt: Mutex::default(),
        }
    }

    /// For whom they are.
    pub(crate) fn reader(&self) -> &R {
        &self.reader
    }

    /// Late samples and deletions in memory that its reads merge.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// A warning, if the samples may not be those that were written.
    pub(crate) fn warning(&self) -> Option<String> {
        let doubt = self.doubt.lock();
        let Doubt {
            name,
            kind,
            first,
            last,
            ..
        } = doubt.as_ref()?;
        let what = match kind {
            DoubtKind::Base => {
                format!("samples from {first} to {last} may be missing")
            }
            DoubtKind::Late => format!(
                "from {first} to {last} late samples may be missing, and overwritten or deleted \
                 ones may be visible again"
            ),
            DoubtKind::Log => "writes and deletions may be missing".to_owned(),
        };
        Some(format!(
            "{name} is damaged: {what}, until LATEWOOD QUARANTINE ACCEPT"
        ))
    }

    fn find(
        &self,
        matchers: &[Matcher],
        span: (i64, i64),
        hold: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        let named = self.reader.find(matchers, span)?;
        if named.is_empty() {
            // What is lost may have made them.
            self.note_doubt(&[], span);
        }
        self.found(&named, span, hold)
    }

    /// Holds views of series, in their order.
    fn found(
        &self,
        named: &[Named],
        span: (i64, i64),
        hold: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        let (shared, query) = (self.reader.shared(), raw(span.0, span.1));
        let ids = named.iter().map(|one| one.series.id);
        let order = shared.db.order_of_reads(ids);
        let mut found: Vec<Option<Found>> = vec![None; named.len()];
        for part in order.chunks(PART_SERIES) {
            let refs: Vec<SeriesRef> = part.iter().map(|&at| named[at].series.clone()).collect();
            {
                let _until = until(self.reader.deadline());
                shared.db.prepare(&refs, &query);
            }
            let views = {
                let _shared_lock = shared.exec_lock.share_beside_loops();
                shared.db.views(&refs, &query, false)
            };
            self.note_doubt(&refs, span);
            let each = |one: &SeriesView| EACH_BYTES + one.view.memory_bytes();
            let held_bytes = views.iter().map(each).sum();
            self.keep(views, part, named, &mut found);
            if hold(held_bytes).is_break() || self.check().is_err() {
                return Err(interrupted());
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Reads spans of a series; `together` takes what it can of statistics.
    fn read_series(
        &self,
        handle: usize,
        spans_ms: &mut Spans<'_>,
        together: Option<&mut TakeTogether<'_>>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        // Nobody finds series meanwhile.
        let all = self.held.read();
        let Some(held) = all.get(handle) else {
            return Ok(());
        };
        let takes_stats = together.is_some();
        let mut rows = Rows {
            take,
            together,
            reader: &self.reader,
            unchecked: Cell::new(0),
            has_ended: Cell::new(false),
        };
        let read = held.view.samples_in(spans_ms, takes_stats, &mut rows);
        read.map_err(|error| self.reader.failed(&error, &held.key))?;
        // One that ended early must not pass for a shorter series.
        if rows.has_ended.get() {
            return Err(interrupted());
        }
        Ok(())
    }

    /// Notes unaccepted damage that concerns one of `refs`, or none of them.
    fn note_doubt(&self, refs: &[SeriesRef], span: (i64, i64)) {
        let mut doubt = self.doubt.lock();
        if doubt.is_none() {
            let db = &self.reader.shared().db;
            *doubt = db.doubt_of(refs, span.0, span.1);
        }
    }

    /// Keeps views of the series of `named` at the places in `part`, and says so in `found`.
    fn keep(
        &self,
        views: Vec<SeriesView>,
        part: &[usize],
        named: &[Named],
        found: &mut [Option<Found>],
    ) {
        let late: usize = views.iter().map(|one| one.view.late()).sum();
        self.late.fetch_add(late as u64, Ordering::Relaxed);
        let mut held = self.held.write();
        held.reserve(views.len());
        let mut part = part.iter();
        for one in views {
            // A series that was removed meanwhile has no view.
            // Keys are shared, those of other series are other ones.
            let Some(&at) = part.find(|&&at| Arc::ptr_eq(&named[at].series.key, &one.key)) else {
                break;
            };
            found[at] = Some(Found {
                handle: held.len(),
                labels: named[at].labels.clone(),
            });
            held.push(Held {
                key: one.key,
                view: one.view,
            });
        }
    }
}

/// A source that ends early says anything.
pub(crate) fn interrupted() -> SourceError {
    SourceError("interrupted".to_owned())
}

impl<R: Reader> Source for Views<R> {
    fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
        hold: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        let span = (from_ms, to_ms);
        let mut selected = self.selected.lock();
        let known = selected
            .iter()
            .find(|known| known.span == span && known.matchers == matchers);
        if let Some(known) = known {
            return Ok(known.found.clone());
        }
        let found = self.find(matchers, span, hold)?;
        selected.push(Selected {
            matchers: matchers.to_vec(),
            span,
            found: found.clone(),
        });
        Ok(found)
    }

    fn is_large(&self, room_bytes: usize) -> bool {
        self.reader.shared().db.len() > room_bytes / SERIES_BYTES
    }

    fn select_some(
        &self,
        selection: Selection<'_>,
        needed: &[String],
        hold: &mut Hold<'_>,
        take: &mut TakeSome<'_>,
    ) -> Result<bool, SourceError> {
        if needed.iter().any(|name| name == KEY) {
            return Ok(false);
        }
        let span = (selection.from_ms, selection.to_ms);
        let is_many = |series: usize| series > selection.room_bytes / SERIES_BYTES;
        // Nobody else finds series meanwhile: what is held goes after each turn.
        let _selected = self.selected.lock();
        let mut failed = None;
        let taken = self
            .reader
            .find_some(selection, &is_many, hold, &mut |named, hold| {
                let before = self.held.read().len();
                let flow = match self.found(&named, span, hold) {
                    Ok(found) => take(found),
                    Err(error) => {
                        failed = Some(error);
                        ControlFlow::Break(())
                    }
                };
                self.held.write().truncate(before);
                flow
            });
        match failed {
            Some(error) => Err(error),
            None => taken,
        }
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.read_spans(handle, &mut once((from_ms, to_ms)), take)
    }

    fn read_spans(
        &self,
        handle: usize,
        spans: &mut Spans<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.read_series(handle, spans, None, take)
    }

    fn read_together(
        &self,
        handle: usize,
        span_ms: (i64, i64),
        together: &mut TakeTogether<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.read_series(handle, &mut once(span_ms), Some(together), take)
    }

    fn late(&self, handle: usize) -> u64 {
        let held = self.held.read();
        held.get(handle).map_or(0, |held| held.view.late() as u64)
    }

    fn check(&self) -> Result<(), Interrupt> {
        self.reader.check()
    }
}

/// All samples of a span.
pub(crate) fn raw(from: i64, to: i64) -> RangeQuery {
    RangeQuery {
        from,
        to,
        ..RangeQuery::default()
    }
}

/// Slices of samples, each of a frame, between two looks whether the query must end.
const SLICES_UNCHECKED: u32 = 16;

/// Hands on the samples of a series.
struct Rows<'a, 'b, 'c, R> {
    take: &'a mut Take<'b>,
    together: Option<&'a mut TakeTogether<'c>>,
    reader: &'a R,
    /// Slices since somebody looked whether the query must end.
    unchecked: Cell<u32>,
    has_ended: Cell<bool>,
}

impl<R: Reader> Sink for Rows<'_, '_, '_, R> {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        (self.take)(timestamps, values)
    }

    fn stats(&mut self, stats: &BatchStats) -> Option<ControlFlow<()>> {
        let together = self.together.as_mut().filter(|_| stats.nan_count == 0)?;
        let is_taken = together(&Together {
            count: stats.count,
            min: stats.min,
            max: stats.max,
            sum: stats.sum,
            is_whole: stats.is_whole,
        });
        is_taken.then_some(ControlFlow::Continue(()))
    }

    fn is_cancelled(&self) -> bool {
        let unchecked = self.unchecked.get();
        self.unchecked.set((unchecked + 1) % SLICES_UNCHECKED);
        if unchecked + 1 == SLICES_UNCHECKED && self.reader.check().is_err() {
            self.has_ended.set(true);
        }
        self.has_ended.get()
    }
}
