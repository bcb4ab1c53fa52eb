//! The series of the database as a source of PromQL.
//!
//! Each series is read at the moment its selector is evaluated. A selector that stands in a query
//! twice with the same span finds the same samples both times, so that `x / x` is 1.
//!
//! Tested by `tests/http/promql.rs` and `tests/promql`.

use super::registry::Running;
use crate::http::answer::Answer;
use crate::http::read::asked::{Asked, Unreadable, raw};
use crate::http::read::parameters::Span;
use latewood_engine::{SeriesRef, Sink, View};
use latewood_promql::source::{Found, Interrupt, Matcher, Samples, Source, SourceError};
use parking_lot::{Mutex, RwLock};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a query reads.
pub(super) struct Views {
    asked: Arc<Asked>,
    running: Arc<Running>,
    /// Samples of a series that may be held at a time.
    samples_max: usize,
    held: RwLock<Vec<Arc<Held>>>,
    selected: Mutex<Vec<Selected>>,
    /// Late samples of the series found.
    late: AtomicU64,
    /// What refused the query, if it has a status of its own.
    refusal: Mutex<Option<Answer>>,
}

/// A series at one moment.
struct Held {
    key: Arc<[u8]>,
    view: View,
}

/// What a selector found.
struct Selected {
    matchers: Vec<Matcher>,
    span: Span,
    found: Vec<Found>,
}

impl Views {
    /// Nothing yet.
    pub(super) fn new(asked: Arc<Asked>, running: Arc<Running>, samples_max: usize) -> Self {
        Self {
            asked,
            running,
            samples_max,
            held: RwLock::default(),
            selected: Mutex::default(),
            late: AtomicU64::new(0),
            refusal: Mutex::default(),
        }
    }

    /// Why the source failed, where that has a status of its own.
    pub(super) fn take_refusal(&self) -> Option<Answer> {
        self.refusal.lock().take()
    }

    /// Late samples and deletions in memory that its reads merge.
    pub(super) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    fn refuse(&self, answer: Answer) -> SourceError {
        let text = answer.text.clone();
        *self.refusal.lock() = Some(answer);
        SourceError(text)
    }

    fn find(&self, matchers: &[Matcher], span: Span) -> Result<Vec<Found>, Answer> {
        let named = self.asked.find(&[matchers.to_vec()], Unreadable::Refuse)?;
        let refs: Vec<SeriesRef> = named.iter().map(|one| one.series.clone()).collect();
        let shared = self.asked.shared();
        let views = {
            let _shared_lock = shared.exec_lock.share_beside_loops();
            shared.db.views(&refs, &raw(span), false)
        };
        self.asked.hold_bytes(views.len() * size_of::<Held>())?;
        let late: usize = views.iter().map(|one| one.view.late()).sum();
        self.late.fetch_add(late as u64, Ordering::Relaxed);
        let mut held = self.held.write();
        let mut found = Vec::with_capacity(views.len());
        let mut named = named.into_iter();
        for one in views {
            // A series that was removed meanwhile has no view.
            let Some(labels) = named.find(|named| named.series.key == one.key) else {
                break;
            };
            found.push(Found {
                handle: held.len(),
                labels: labels.labels,
            });
            held.push(Arc::new(Held {
                key: one.key,
                view: one.view,
            }));
        }
        Ok(found)
    }
}

impl Source for Views {
    fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
    ) -> Result<Vec<Found>, SourceError> {
        let span = Span { from_ms, to_ms };
        let mut selected = self.selected.lock();
        let known = selected
            .iter()
            .find(|known| known.span == span && known.matchers == matchers);
        if let Some(known) = known {
            return Ok(known.found.clone());
        }
        let found = self
            .find(matchers, span)
            .map_err(|answer| self.refuse(answer))?;
        selected.push(Selected {
            matchers: matchers.to_vec(),
            span,
            found: found.clone(),
        });
        Ok(found)
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        into: &mut Samples,
    ) -> Result<(), SourceError> {
        let Some(held) = self.held.read().get(handle).cloned() else {
            return Ok(());
        };
        let query = raw(Span { from_ms, to_ms });
        let mut rows = Rows {
            into,
            running: &self.running,
            samples_max: self.samples_max,
        };
        let read = held.view.narrow(from_ms, to_ms).run(&query, &mut rows);
        read.map_err(|error| self.refuse(Answer::of_series(&error, &held.key)))?;
        match self.running.is_cancelled() {
            true => Err(SourceError("interrupted".to_owned())),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<(), Interrupt> {
        self.running.check()
    }
}

/// Takes the samples of a series.
struct Rows<'a> {
    into: &'a mut Samples,
    running: &'a Running,
    samples_max: usize,
}

impl Sink for Rows<'_> {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        self.into.timestamps.extend_from_slice(timestamps);
        self.into.values.extend_from_slice(values);
        // Whoever reads asks for the limit of samples and the memory then.
        match self.into.timestamps.len() > self.samples_max {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.running.is_cancelled()
    }
}
