//! From what the decoders of labelled protocols read to samples in the engine.
//!
//! An [`EngineIntake`] belongs to one connection or worker. It remembers the
//! rows and series that were met, as references of the engine that need no look
//! for a key, and gathers samples into batches. A batch is one call of the
//! engine; what it refused is noted by line. A series that was removed or
//! renamed since refuses its samples as stale; then its name is read out of
//! its key, and it is created anew.
//!
//! The figures of each protocol stand in `observe::intake`. Nothing is acknowledged
//! before [`EngineIntake::finish`]: it applies what is left and waits for the
//! disk where the server was started with `--durability sync`. It may block, as
//! a batch may when memory is short, so none of this runs on an event loop.
//!
//! Tested by `tests.rs`.

mod apply;
mod pause;
mod remembered;
pub(crate) mod removal;
mod report;
mod senders;
#[cfg(test)]
mod tests;

pub(crate) use pause::{InPause, enter};
pub(crate) use remembered::Share;
pub(crate) use report::{Failure, Report};

use crate::acl::{Denied, User};
use crate::base::clock::now_ms;
use crate::observe::{Protocol, Route};
use crate::state::Shared;
use latewood_engine::{Db, Refusal, Scratch, SeriesRef, prefetch};
use latewood_model::limits::APPEND_BATCH_MAX;
use latewood_model::{SeriesOptions, Told};
use latewood_wire::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use latewood_wire::series_cache::SeriesCache;
use latewood_wire::series_name::SeriesName;
use std::fmt::Arguments;
use std::sync::Arc;

/// Series of a row whose memory is asked for ahead.
const PREFETCHED_MAX: usize = 16;
/// Bytes of rows and series one intake remembers.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Bytes of series that wait to be created with the samples of one batch: what
/// the fields of one line may come to.
const TO_COME_BYTES_MAX: usize = 64 << 20;

/// Samples on their way into the engine.
pub(crate) struct EngineIntake {
    shared: Arc<Shared>,
    protocol: Protocol,
    /// The sender, as ACL LOG shows it.
    sender: &'static str,
    /// What becomes of its samples during CLIENT PAUSE.
    in_pause: InPause,
    /// Whose permissions count; `None` may write everywhere.
    user: Option<Arc<User>>,
    cache: SeriesCache,
    series: Vec<Series>,
    /// Bytes of the series that are to come.
    to_come_bytes: usize,
    /// More is held than may be: all is forgotten before the next row.
    is_full: bool,
    /// Of the memory for what senders have sent before.
    share: Share,
    /// Samples of existing series.
    known: Vec<Pending>,
    /// Samples of series that may have to be created.
    fresh: Vec<Pending>,
    senders: senders::Senders,
    scratch: Scratch,
    report: Report,
    now_ms: i64,
    /// Earlier timestamps are refused.
    earliest_ms: i64,
    /// Later timestamps are refused.
    latest_ms: i64,
}

/// How samples come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// As what they are counted.
    pub(crate) protocol: Protocol,
    /// As what they are late.
    pub(crate) route: Route,
}

impl Way {
    /// Samples of `protocol` that come by `route`.
    pub(crate) const fn new(protocol: Protocol, route: Route) -> Self {
        Self { protocol, route }
    }
}

/// A series that was met.
struct Series {
    place: Place,
    /// The time of its last sample, to see what rounding merges.
    last: Moment,
}

enum Place {
    /// In the engine.
    There(SeriesRef),
    /// To be created with its first sample.
    ToCome(Box<ToCome>),
}

struct ToCome {
    key: Box<[u8]>,
    options: SeriesOptions,
}

impl Place {
    /// Bytes of memory of a series that is to come; those of others are the
    /// engine's.
    fn len_bytes(&self) -> usize {
        match self {
            Self::There(_) => 0,
            Self::ToCome(new) => {
                size_of::<ToCome>() + new.key.len() + new.options.labels.as_bytes().len()
            }
        }
    }
}

/// The key of a series that was met.
fn key_of(place: &Place) -> &[u8] {
    match place {
        Place::There(series) => &series.key,
        Place::ToCome(new) => &new.key,
    }
}

/// Says who writes a series, as the engine does where more than a sample is refused.
pub(crate) fn owned_text(key: &[u8], db: &Db) -> String {
    match db.owner(key) {
        Some(owner) => format!("series is written by {owner}"),
        None => Refusal::Owned.to_string(),
    }
}

/// A sample that waits for its batch.
#[derive(Clone, Copy)]
struct Pending {
    slot: u32,
    line: u32,
    timestamp_ms: i64,
    value: f64,
}

impl EngineIntake {
    /// An intake for what `user` sends by `way`; without a user, all is allowed. `sender`
    /// is how ACL LOG shows it, `in_pause` what it does then. Who sends is told by
    /// [`EngineIntake::sent_by`].
    pub(crate) fn new(
        shared: Arc<Shared>,
        way: Way,
        sender: &'static str,
        user: Option<Arc<User>>,
        in_pause: InPause,
    ) -> Self {
        let mut intake = Self {
            share: Share::new(Arc::clone(&shared)),
            shared,
            protocol: way.protocol,
            sender,
            in_pause,
            user: user.filter(|user| !user.adds_anywhere),
            cache: SeriesCache::new(),
            series: Vec::new(),
            to_come_bytes: 0,
            is_full: false,
            known: Vec::new(),
            fresh: Vec::new(),
            senders: senders::Senders::new(way.route),
            // Series of rules are written by nobody else.
            scratch: match way.protocol {
                Protocol::Rules => Scratch::of_owner(),
                _ => Scratch::new(),
            },
            report: Report::default(),
            now_ms: 0,
            earliest_ms: 0,
            latest_ms: 0,
        };
        intake.begin();
        intake
    }

    /// Looks at the clock: for the start of a request, or for lines that have
    /// just come.
    pub(crate) fn begin(&mut self) {
        self.now_ms = now_ms();
        let limits = self.shared.settings.senders.time_limits;
        (self.earliest_ms, self.latest_ms) = limits.bounds(self.now_ms);
    }

    /// Whether its user may write to every key.
    pub(crate) fn is_for_all(&self) -> bool {
        self.user.is_none()
    }

    /// Applies what waits, and says what became of all since the last time.
    pub(crate) fn finish(&mut self) -> Report {
        self.apply();
        self.sync();
        let report = std::mem::take(&mut self.report);
        let counters = self.shared.protocols.intake.of(self.protocol);
        report.count(counters, self.now_ms);
        if report.refused() + report.failed > 0 {
            let sender = report.sender.clone().or_else(|| self.senders.current());
            report.warn(
                counters,
                self.protocol,
                &sender.unwrap_or_default(),
                self.now_ms,
            );
        }
        let lateness = &self.shared.observe.lateness;
        let route = self.senders.route();
        lateness.arrived(route, report.samples, &report.ages, self.now_ms);
        report
    }

    /// Forgets every series once they take too much memory.
    fn make_room(&mut self) {
        self.is_full = false;
        if self.held_bytes() > self.share.allowed_bytes(CACHE_BYTES_MAX) {
            self.apply();
            self.cache.clear();
            self.series = Vec::new();
            self.to_come_bytes = 0;
        }
        self.share.hold(self.held_bytes());
    }

    fn held_bytes(&self) -> usize {
        self.cache.len_bytes() + self.series.len() * size_of::<Series>() + self.to_come_bytes
    }

    /// Looks whether a row that shows more and more fields takes too much. It
    /// is in use, so it stays until the next one is looked for.
    fn note_growth(&mut self) {
        let held = self.held_bytes();
        self.share.hold(held);
        if held > self.share.allowed_bytes(CACHE_BYTES_MAX) {
            self.is_full = true;
            self.cache.expect_none();
        }
    }

    fn locate(&mut self, name: &SeriesName) -> Result<Place, Refused> {
        if let Some(user) = &self.user
            && !user.may_add(name.key())
        {
            let log = &self.shared.runtime.users.log;
            // The other lines of such a report are refused for the same reason.
            if !std::mem::replace(&mut self.report.has_denied, true) {
                log.note_sender(self.sender, Some(Denied::Key), name.key(), &user.name);
            }
            return Err(Refused {
                reason: Reason::Permission,
                text: format!("no permission to write to {}", report::shown(name.key())),
            });
        }
        match self.shared.db.resolve(name.key()) {
            Ok(series) => Ok(Place::There(series)),
            Err(_) => self.to_come(name),
        }
    }

    /// Asks for the memory of a row's series, which as a rule lie side by side,
    /// while its line is being read.
    #[inline]
    fn prefetch(&self, row: Row) {
        let Some((first, count)) = self.cache.slots(row) else {
            return;
        };
        let first = first.0 as usize;
        let end = (first + count.min(PREFETCHED_MAX)).min(self.series.len());
        let series = self.series.get(first..end).unwrap_or_default();
        for one in series {
            prefetch(one);
        }
    }

    /// Lets a sample wait for its batch.
    #[inline]
    fn take(&mut self, slot: Slot, at: Moment, value: f64, line: u32) {
        let Some(series) = self.series.get_mut(slot.0 as usize) else {
            return self.refuse(
                line,
                Reason::Limit,
                format_args!("the series was forgotten"),
            );
        };
        self.report.merged +=
            u64::from(series.last.ms == at.ms && (at.is_rounded || series.last.is_rounded));
        series.last = at;
        let pending = match series.place {
            Place::There(_) => &mut self.known,
            Place::ToCome(_) => &mut self.fresh,
        };
        pending.push(Pending {
            slot: slot.0,
            line,
            timestamp_ms: at.ms,
            value,
        });
        if pending.len() == APPEND_BATCH_MAX {
            self.apply();
        }
    }
}

impl Intake for EngineIntake {
    #[inline]
    fn follow(&mut self, text: &[u8]) -> Option<(Row, usize)> {
        let found = self.cache.follow(text)?;
        self.prefetch(found.0);
        Some(found)
    }

    #[inline]
    fn find(&mut self, raw: &[u8]) -> Option<Row> {
        if self.is_full {
            self.make_room();
        }
        let row = self.cache.find(raw)?;
        self.prefetch(row);
        Some(row)
    }

    fn add(&mut self, raw: &[u8]) -> Row {
        self.make_room();
        self.cache.add(raw)
    }

    #[inline]
    fn field(&mut self, row: Row, at: usize, name: &[u8]) -> Option<Slot> {
        self.cache.field(row, at, name)
    }

    #[inline]
    fn expect(&mut self, row: Row, at: usize, text: &[u8]) -> Option<(Slot, usize)> {
        self.cache.expect(row, at, text)
    }

    fn learn(&mut self, row: Row, name: &[u8], series: &SeriesName) -> Result<Slot, Refused> {
        let place = self.locate(series)?;
        if self.to_come_bytes > TO_COME_BYTES_MAX {
            return Err(Refused {
                reason: Reason::Limit,
                text: format!(
                    "the new series of one line may take {TO_COME_BYTES_MAX} bytes of keys and \
                     labels together"
                ),
            });
        }
        self.to_come_bytes += place.len_bytes();
        let slot = self.cache.learn(row, name);
        let last = Moment::whole(-1);
        self.series.push(Series { place, last });
        debug_assert_eq!(self.series.len(), slot.0 as usize + 1);
        self.note_growth();
        Ok(slot)
    }

    fn metadata(&mut self, metric: &str, told: Told<'_>) {
        // Who may write none of a metric's series has no say in what it is.
        let is_allowed = |user: &Arc<User>| user.may_run_add(metric.as_bytes());
        if self.user.as_ref().is_none_or(is_allowed) {
            self.shared.db.note_metadata(metric, told);
        }
    }

    #[inline]
    fn samples(&mut self, samples: &[(Slot, f64)], at: Moment, line: u32) {
        if at.ms > self.latest_ms || at.ms < self.earliest_ms {
            for (slot, _) in samples {
                self.refuse_time(*slot, at, line);
            }
            return;
        }
        let age_ms = self.now_ms.saturating_sub(at.ms);
        for (slot, value) in samples {
            self.report.ages.note(age_ms);
            self.take(*slot, at, *value, line);
        }
    }

    fn refuse(&mut self, line: u32, reason: Reason, text: Arguments<'_>) {
        self.report.refuse(line, reason, text);
        self.note_sender(None);
    }

    fn refusals(&self) -> u64 {
        self.report.refused()
    }

    fn skip_text(&mut self) {
        self.report.texts += 1;
    }

    fn now_ms(&self) -> i64 {
        self.now_ms
    }
}
