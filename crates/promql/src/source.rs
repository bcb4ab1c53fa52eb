//! Where series come from.

use crate::labels::Labels;
pub use latewood_wire::selector::Matcher;
use latewood_wire::selector::Test;
use std::ops::ControlFlow;

/// The bits of a stale mark: the series ended here.
/// <https://prometheus.io/docs/specs/remote_write_spec/>
pub const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// Whether a value is a stale mark.
pub fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE_BITS
}

/// The operator of a matcher and the value it compares with.
pub(crate) fn parts(matcher: &Matcher) -> (&'static str, &[u8]) {
    match &matcher.test {
        Test::Equal(value) => ("=", value),
        Test::NotEqual(value) => ("!=", value),
        Test::Match(pattern) => ("=~", pattern.text().as_bytes()),
        Test::NotMatch(pattern) => ("!~", pattern.text().as_bytes()),
    }
}

/// Samples of one series, timestamps ascending, each once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Milliseconds.
    pub timestamps: Vec<i64>,
    /// One for each timestamp; those of [`Samples::extend`] are no stale marks.
    pub values: Vec<f64>,
}

impl Samples {
    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.timestamps.clear();
        self.values.clear();
    }

    /// Bytes of memory of one.
    pub(crate) const EACH_BYTES: usize = size_of::<i64>() + size_of::<f64>();

    /// Appends samples, without stale marks.
    pub fn extend(&mut self, timestamps: &[i64], values: &[f64]) {
        // Without a branch for each: there are none, mostly.
        let any = |any, value: &f64| any | is_stale(*value);
        if !values.iter().fold(false, any) {
            self.timestamps.extend_from_slice(timestamps);
            self.values.extend_from_slice(values);
            return;
        }
        for (&timestamp, &value) in timestamps.iter().zip(values) {
            if !is_stale(value) {
                self.timestamps.push(timestamp);
                self.values.push(value);
            }
        }
    }
}

/// A series that was found, as its source knows it.
#[derive(Clone, Debug)]
pub struct Found {
    /// What the source is asked for.
    pub handle: usize,
    /// How the series looks.
    pub labels: Labels,
}

/// Whether a series that looks so matches all `matchers`.
pub fn passes(matchers: &[Matcher], labels: &Labels) -> bool {
    let passes = |matcher: &Matcher| matcher.passes(labels.get_bytes(&matcher.name));
    matchers.iter().all(passes)
}

impl Found {
    /// Those of `series` that match, for a source that looks at all it has. O(series * matchers).
    pub fn among<'a>(
        series: impl IntoIterator<Item = (usize, &'a Labels)>,
        matchers: &[Matcher],
    ) -> Vec<Self> {
        let series = series.into_iter();
        let found = series.filter(|(_, labels)| passes(matchers, labels));
        let found = found.map(|(handle, labels)| Self {
            handle,
            labels: labels.clone(),
        });
        found.collect()
    }
}

/// Why a source failed; the text is for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// Counts bytes that a source holds until its query ends. After a `Break` the source ends at once,
/// with any result.
pub type Hold<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// Spans of time to read, milliseconds, both ends included.
pub type Spans<'a> = dyn Iterator<Item = (i64, i64)> + 'a;

/// Takes the next samples of a series, ascending. After a `Break` the source ends at once, with any
/// result.
pub type Take<'a> = dyn FnMut(&[i64], &[f64]) -> ControlFlow<()> + 'a;

/// What is known of some samples of a series together, none of which is NaN or a stale mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// How many they are.
    pub count: u64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The sum of the values, as far as a float holds it.
    pub sum: f64,
    /// Whether all values are whole numbers, and none of them -0.0; `None` where that is not known, of many
    /// samples whose parts may say it.
    pub is_whole: Option<bool>,
}

/// Whether samples are taken together; otherwise each is needed.
pub type TakeTogether<'a> = dyn FnMut(&Together) -> bool + 'a;

/// Takes some of the series of a selector, whose handles are good until it returns. After a `Break` the
/// source ends at once, with any result.
pub type TakeSome<'a> = dyn FnMut(Vec<Found>) -> ControlFlow<()> + 'a;

/// A selector, and what is read of its series.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// All of them have to pass.
    pub matchers: &'a [Matcher],
    /// The first millisecond.
    pub from_ms: i64,
    /// The last millisecond.
    pub to_ms: i64,
    /// What series may take that are held together.
    pub room_bytes: usize,
}

/// Series with samples. One source serves one query.
pub trait Source: Sync {
    /// The series that match all `matchers` and may have samples in `from_ms..=to_ms`, in the
    /// order of their labels. Series without samples there may be among them. What it keeps of
    /// them is counted by `hold`, in parts where they are many.
    ///
    /// # Errors
    /// Where they may not be read, are too many, or cannot be read. One that ends early because the
    /// query must end fails with any text; [`Source::check`] has the reason.
    fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
        hold: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError>;

    /// Whether all its series may take more than this when they are held together, so that
    /// [`Source::select_some`] is worth a question. Cheap.
    fn is_large(&self, room_bytes: usize) -> bool {
        let _ = room_bytes;
        false
    }

    /// As [`Source::select`], some series after others in no order, each once, where those of the
    /// selector do not fit into its room together; otherwise `false`, and nothing is taken. A label that
    /// the source itself adds, to tell apart series that look the same, need not be there unless it is
    /// among the `needed` ones, but no two that are taken together are the same. `hold` counts what is
    /// held of those that are taken next, until `take` has returned.
    ///
    /// # Errors
    /// As [`Source::select`].
    fn select_some(
        &self,
        selection: Selection<'_>,
        needed: &[String],
        hold: &mut Hold<'_>,
        take: &mut TakeSome<'_>,
    ) -> Result<bool, SourceError> {
        let _ = (selection, needed, hold, take);
        Ok(false)
    }

    /// Gives the samples in `from_ms..=to_ms` of a series found before to `take`, piece by piece.
    /// May block; is called from several threads.
    ///
    /// # Errors
    /// Where samples cannot be read: damage fails a query, it never shortens it. One that ends
    /// early fails as in [`Source::select`].
    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError>;

    /// As [`Source::read`] of several spans of one series, ascending and apart: a source need not find
    /// what they share more than once. `spans` end where `take` ended one.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_spans(
        &self,
        handle: usize,
        spans: &mut Spans<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        for (from_ms, to_ms) in spans {
            self.read(handle, from_ms, to_ms, take)?;
        }
        Ok(())
    }

    /// As [`Source::read`]. What the source knows of many samples without reading them it may show to
    /// `together`, and leaves them out if they are taken so.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_together(
        &self,
        handle: usize,
        (from_ms, to_ms): (i64, i64),
        together: &mut TakeTogether<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        let _ = together;
        self.read(handle, from_ms, to_ms, take)
    }

    /// Late samples that are merged into a series found before, where the source has such.
    fn late(&self, handle: usize) -> u64 {
        let _ = handle;
        0
    }

    /// Whether the query must end: its peer left, somebody cancelled it, or its time is over.
    /// Asked often; cheap.
    ///
    /// # Errors
    /// The reason.
    fn check(&self) -> Result<(), Interrupt> {
        Ok(())
    }
}

impl<T: Source + ?Sized> Source for &T {
    fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
        hold: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        (**self).select(matchers, from_ms, to_ms, hold)
    }

    fn is_large(&self, room_bytes: usize) -> bool {
        (**self).is_large(room_bytes)
    }

    fn select_some(
        &self,
        selection: Selection<'_>,
        needed: &[String],
        hold: &mut Hold<'_>,
        take: &mut TakeSome<'_>,
    ) -> Result<bool, SourceError> {
        (**self).select_some(selection, needed, hold, take)
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        (**self).read(handle, from_ms, to_ms, take)
    }

    fn read_spans(
        &self,
        handle: usize,
        spans: &mut Spans<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        (**self).read_spans(handle, spans, take)
    }

    fn read_together(
        &self,
        handle: usize,
        span_ms: (i64, i64),
        together: &mut TakeTogether<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        (**self).read_together(handle, span_ms, together, take)
    }

    fn late(&self, handle: usize) -> u64 {
        (**self).late(handle)
    }

    fn check(&self) -> Result<(), Interrupt> {
        (**self).check()
    }
}

/// Why a query ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupt {
    /// Its time is over.
    #[error("query timed out in expression evaluation")]
    Timeout,
    /// It was cancelled.
    #[error("query was canceled in expression evaluation")]
    Canceled,
}
