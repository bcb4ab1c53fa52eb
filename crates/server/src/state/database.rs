//! The database while it is being opened, and from then on.
//!
//! The sockets are open before the data is: a client that comes early gets
//! `-LOADING` and tries again, and INFO shows the progress. Until the database is
//! open, only commands flagged `loading`, `/metrics`, `/health` and the status of the server are
//! served; all others are refused in `command/admit.rs` and `http/context.rs`.
//!
//! Invariant: nothing takes an empty database for the data. What is served early asks for
//! [`Database::opened`], or for figures, which are those of an empty one ([`Database::shown`]); all
//! others get the open database, and must not ask before. Tested by `tests/resp/loading.rs`, the
//! registry of commands and below.

use crate::base::clock::now_ms;
use latewood_engine::{Db, Defaults, LoadProgress, Result, Stages};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The error of commands that need the data while it is loading.
pub(crate) const LOADING: &str = "LOADING Latewood is loading the dataset in memory";
/// The least time between two lines of the log about progress.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The database, once it is open.
pub(crate) struct Database {
    opened: OnceLock<Arc<Db>>,
    /// It has no files: its figures are shown until there are others.
    empty: Db,
    /// How far the opening is.
    pub(crate) loading: Loading,
}

/// How far opening the database is.
#[derive(Debug)]
pub(crate) struct Loading {
    /// Seconds since the Unix epoch.
    pub(crate) began_s: i64,
    began: Instant,
    bytes_done: AtomicU64,
    bytes_total: AtomicU64,
    samples: AtomicU64,
    /// Milliseconds since `began` of the last line of the log.
    told_ms: AtomicU64,
}

/// What INFO says of an opening under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) bytes_total: u64,
    pub(crate) bytes_done: u64,
    /// Their share in percent.
    pub(crate) percent: f64,
    /// Seconds left at the pace so far; 1 until there is one.
    pub(crate) eta_s: u64,
}

impl Database {
    /// A database that is not open yet, with these defaults of new series.
    ///
    /// # Errors
    /// `Invalid` for defaults out of their ranges.
    pub(crate) fn closed(defaults: Defaults) -> Result<Self> {
        Ok(Self {
            opened: OnceLock::new(),
            empty: Db::empty(defaults)?,
            loading: Loading::new(),
        })
    }

    /// Puts the open database in its place; false where one is there already.
    pub(crate) fn fill(&self, db: Arc<Db>) -> bool {
        self.opened.set(db).is_ok()
    }

    /// Whether the database is not open yet.
    #[inline]
    pub(crate) fn is_loading(&self) -> bool {
        self.opened.get().is_none()
    }

    /// The database, if it is open.
    pub(crate) fn opened(&self) -> Option<&Db> {
        self.opened.get().map(|db| &**db)
    }

    /// The database whose figures are shown: an empty one until it is open.
    #[inline]
    pub(crate) fn shown(&self) -> &Db {
        self.opened().unwrap_or(&self.empty)
    }

    /// The timers of the write path, which time nothing until it is open.
    #[inline]
    pub(crate) fn stages(&self) -> &Stages {
        self.shown().stages()
    }

    /// The limit of a reply, as [`Db::reply_bytes_max`].
    pub(crate) fn reply_bytes_max(&self) -> usize {
        self.shown().reply_bytes_max()
    }

    /// The open database, if it got that far.
    pub(crate) fn into_opened(self) -> Option<Arc<Db>> {
        self.opened.into_inner()
    }
}

impl Deref for Database {
    type Target = Db;

    /// # Panics
    /// Before it is open.
    #[inline]
    fn deref(&self) -> &Db {
        let opened = self.opened.get();
        opened.expect("what needs the data is refused until it is open")
    }
}

impl Loading {
    fn new() -> Self {
        Self {
            began_s: now_ms() / 1000,
            began: Instant::now(),
            bytes_done: AtomicU64::new(0),
            bytes_total: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            told_ms: AtomicU64::new(0),
        }
    }

    /// Takes note of progress, and tells the log about it now and then.
    pub(crate) fn note(&self, progress: LoadProgress) {
        self.bytes_done
            .store(progress.bytes_done, Ordering::Relaxed);
        self.bytes_total
            .store(progress.bytes_total, Ordering::Relaxed);
        self.samples.store(progress.samples, Ordering::Relaxed);
        let elapsed = self.began.elapsed();
        let elapsed_ms = elapsed.as_millis() as u64;
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        if elapsed_ms < told_ms + LINE_EVERY.as_millis() as u64 {
            return;
        }
        self.told_ms.store(elapsed_ms, Ordering::Relaxed);
        let figures = self.figures();
        let rate = progress.samples as f64 / elapsed.as_secs_f64();
        tracing::info!(
            percent = format!("{:.1}", figures.percent),
            samples = progress.samples,
            samples_per_s = format!("{rate:.0}"),
            seconds_left = figures.eta_s,
            "loading"
        );
    }

    /// How far it is.
    pub(crate) fn figures(&self) -> Figures {
        let bytes_total = self.bytes_total.load(Ordering::Relaxed);
        let bytes_done = self.bytes_done.load(Ordering::Relaxed).min(bytes_total);
        let share = bytes_done as f64 / bytes_total.max(1) as f64;
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let left_s = elapsed_s * (1.0 - share) / share;
        Figures {
            bytes_total,
            bytes_done,
            percent: share * 100.0,
            eta_s: if share > 0.0 { left_s as u64 } else { 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_tells_how_far_it_is() {
        let database = Database::closed(Defaults::default()).unwrap();
        assert!(database.is_loading() && database.opened().is_none());
        assert!(database.shown().is_empty());
        let before = database.loading.figures();
        assert_eq!((before.bytes_done, before.eta_s), (0, 1));
        database.loading.note(LoadProgress {
            bytes_done: 30,
            bytes_total: 40,
            samples: 5,
        });
        let figures = database.loading.figures();
        assert_eq!((figures.bytes_done, figures.bytes_total), (30, 40));
        assert_eq!(figures.percent, 75.0);
    }

    #[test]
    #[should_panic(expected = "refused until it is open")]
    fn nothing_takes_the_empty_database_for_the_data() {
        let database = Database::closed(Defaults::default()).unwrap();
        let _ = database.is_empty();
    }
}
