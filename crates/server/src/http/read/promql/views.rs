//! The series that the user of a query may read, as a source of PromQL.
//!
//! Tested by `tests/http/promql.rs` and `tests/promql`.

use super::registry::Running;
use crate::http::answer::Answer;
use crate::http::read::asked::{Asked, Unreadable};
use crate::http::read::parameters::Span;
use crate::labelled::{self, Named, Reader, TakeNamed};
use crate::state::Shared;
use latewood_engine::Error;
use latewood_promql::source::{Hold, Interrupt, Matcher, Selection, SourceError};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// What a query reads.
pub(super) type Views = labelled::Views<Asking>;

/// Who asks.
pub(super) struct Asking {
    asked: Arc<Asked>,
    running: Arc<Running>,
    /// What refused the query, if it has a status of its own.
    refusal: Mutex<Option<Answer>>,
}

impl Asking {
    /// What a query of this request reads.
    pub(super) fn views(asked: &Arc<Asked>, running: Arc<Running>) -> Arc<Views> {
        Arc::new(Views::new(Self {
            asked: Arc::clone(asked),
            running,
            refusal: Mutex::default(),
        }))
    }

    /// Why the source failed, where that has a status of its own.
    pub(super) fn take_refusal(&self) -> Option<Answer> {
        self.refusal.lock().take()
    }

    fn refuse(&self, answer: Answer) -> SourceError {
        let text = answer.text.clone();
        *self.refusal.lock() = Some(answer);
        SourceError(text)
    }
}

impl Reader for Asking {
    fn shared(&self) -> &Shared {
        self.asked.shared()
    }

    fn find(
        &self,
        matchers: &[Matcher],
        (from_ms, to_ms): (i64, i64),
    ) -> Result<Arc<[Named]>, SourceError> {
        let span = Some(Span { from_ms, to_ms });
        let find = || {
            let selectors = [matchers.to_vec()];
            self.asked.find(&selectors, span, Unreadable::Refuse)
        };
        let found = self.asked.find_recent(matchers, (from_ms, to_ms), find);
        found.map_err(|answer| self.refuse(answer))
    }

    fn find_some(
        &self,
        selection: Selection<'_>,
        is_many: &dyn Fn(usize) -> bool,
        hold: &mut Hold<'_>,
        take: &mut TakeNamed<'_>,
    ) -> Result<bool, SourceError> {
        let found = self.asked.find_some(selection, is_many, hold, take);
        found.map_err(|answer| self.refuse(answer))
    }

    fn failed(&self, error: &Error, key: &[u8]) -> SourceError {
        self.refuse(Answer::of_series(error, key))
    }

    fn deadline(&self) -> Instant {
        self.running.deadline()
    }

    fn check(&self) -> Result<(), Interrupt> {
        if self.asked.is_overdue() {
            return Err(Interrupt::Timeout);
        }
        self.running.check()
    }
}
