//! What a correction reads, and whether it is damaged: rows that were made before the damage are
//! better than what is left gives. Tested by `super::tests`.

use crate::labelled::{Reader, Views};
use latewood_promql::source::{Found, Hold, Interrupt, Matcher, Source, SourceError, Spans, Take};
use parking_lot::Mutex;

/// A source that tells of damage when it goes.
pub(super) struct Sound<'a, R: Reader> {
    pub(super) views: Views<R>,
    /// What is damaged, in words.
    pub(super) damage: &'a Mutex<Option<String>>,
}

impl<R: Reader> Drop for Sound<'_, R> {
    fn drop(&mut self) {
        if let Some(warning) = self.views.warning() {
            *self.damage.lock() = Some(warning);
        }
    }
}

impl<R: Reader> Source for Sound<'_, R> {
    fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
        hold: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        self.views.select(matchers, from_ms, to_ms, hold)
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.views.read(handle, from_ms, to_ms, take)
    }

    fn read_spans(
        &self,
        handle: usize,
        spans: &mut Spans<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        self.views.read_spans(handle, spans, take)
    }

    fn late(&self, handle: usize) -> u64 {
        Source::late(&self.views, handle)
    }

    fn check(&self) -> Result<(), Interrupt> {
        self.views.check()
    }
}
