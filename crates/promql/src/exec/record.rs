//! What one node of a query does, counted while the query is explained.
//!
//! Threads add to the same counters. Time is that of the node alone, the sum of all threads: a
//! thread takes off what it spends in nodes within the node, and in waiting for other threads.
//!
//! Invariants: a series has one place in `given` from [`Record::found`] on; what only looks
//! whether a series has a sample ([`crate::exec::Context::probing`]) counts nothing else.
//!
//! Tested by `tests/evaluation/explain.rs`.

use crate::labels::Labels;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// Counters of a node.
#[derive(Default)]
pub(crate) struct Record {
    /// Steps at which it is evaluated.
    pub(crate) steps: usize,
    /// It is the same at every step of what it stands in.
    pub(crate) is_invariant: AtomicBool,
    own_ns: AtomicU64,
    /// Columns computed, those of a series that is asked for again among them.
    columns: AtomicU64,
    series_read: AtomicU64,
    samples_read: AtomicU64,
    late_read: AtomicU64,
    held_bytes: AtomicI64,
    peak_bytes: AtomicI64,
    /// Of each series how many samples it gave, as [`Given`] has it.
    given: OnceLock<Vec<AtomicU32>>,
    matches: OnceLock<Matches>,
}

/// The series of both sides of a binary operation, and which belong together.
pub(crate) struct Matches {
    pub(crate) left: Vec<Labels>,
    pub(crate) right: Vec<Labels>,
    /// Places of series with the same matching labels.
    pub(crate) groups: Vec<(Vec<usize>, Vec<usize>)>,
}

/// What is known of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// Nothing needed it.
    Unknown,
    /// Nothing needed it, but somebody looked whether it has a sample.
    Probed(bool),
    /// Its number of samples.
    Samples(u32),
}

/// Figures of a node that was evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Steps at which it was evaluated.
    pub steps: usize,
    /// Series that it could give.
    pub series_known: usize,
    /// Those that something needed.
    pub series_evaluated: usize,
    /// Those of them that had a sample.
    pub series: usize,
    /// Samples of these.
    pub samples: u64,
    /// Columns computed: more than series where some were computed again.
    pub columns: u64,
    /// Series that the source found.
    pub series_read: u64,
    /// Samples read from the source.
    pub samples_read: u64,
    /// Late samples that lay beside those series.
    pub late_read: u64,
    /// The most memory that it held itself at a time.
    pub peak_bytes: u64,
    /// Its time, without that of nodes within it, the sum of all threads.
    pub own_ns: u64,
}

/// Marks a series that was only probed; below it stands the number of samples and one.
const PROBED: u32 = 1 << 31;

thread_local! {
    /// Time that this thread has spent within the innermost part that is timed, but in others.
    static NESTED_NS: Cell<u64> = const { Cell::new(0) };
}

/// Runs `work`; its result, and the time that it took without parts that are timed themselves.
fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let outer_ns = NESTED_NS.replace(0);
    let began = Instant::now();
    let result = work();
    let all_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let nested_ns = NESTED_NS.replace(outer_ns.saturating_add(all_ns));
    (result, all_ns.saturating_sub(nested_ns))
}

/// Runs `work`, whose time is nobody's: it waits for other threads.
pub(crate) fn untimed<T>(work: impl FnOnce() -> T) -> T {
    timed(work).0
}

impl Record {
    /// Of a node that is evaluated at `steps` steps.
    pub(crate) fn new(steps: usize) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// Runs `work` as a part of the node.
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let (result, own_ns) = timed(work);
        self.own_ns.fetch_add(own_ns, Ordering::Relaxed);
        result
    }

    /// Says how many series it has.
    pub(crate) fn found(&self, series: usize) {
        self.given
            .get_or_init(|| (0..series).map(|_| AtomicU32::new(0)).collect());
    }

    /// Says that it gave `samples` samples of a series.
    pub(crate) fn gave(&self, at: usize, samples: usize) {
        self.columns.fetch_add(1, Ordering::Relaxed);
        self.set(at, u32::try_from(samples).unwrap_or(u32::MAX), false);
    }

    /// Says whether a series has samples, though nothing needs them.
    pub(crate) fn probed(&self, at: usize, samples: usize) {
        if self.given(at) == Given::Unknown {
            self.set(at, samples.min(1) as u32, true);
        }
    }

    fn set(&self, at: usize, samples: u32, is_probed: bool) {
        let place = self.given.get().and_then(|given| given.get(at));
        if let Some(place) = place {
            let mark = if is_probed { PROBED } else { 0 };
            let counted = samples.min(PROBED - 2) + 1;
            place.store(counted | mark, Ordering::Relaxed);
        }
    }

    /// What is known of a series.
    pub(crate) fn given(&self, at: usize) -> Given {
        let place = self.given.get().and_then(|given| given.get(at));
        match place.map_or(0, |place| place.load(Ordering::Relaxed)) {
            0 => Given::Unknown,
            counted if counted & PROBED != 0 => Given::Probed(counted != PROBED | 1),
            counted => Given::Samples(counted - 1),
        }
    }

    /// Counts what the source found.
    pub(crate) fn selected(&self, series: u64, late: u64) {
        self.series_read.fetch_add(series, Ordering::Relaxed);
        self.late_read.fetch_add(late, Ordering::Relaxed);
    }

    /// Counts samples that were read.
    pub(crate) fn read(&self, samples: u64) {
        self.samples_read.fetch_add(samples, Ordering::Relaxed);
    }

    /// Counts bytes that are held, or given back where it is negative.
    pub(crate) fn held(&self, bytes: i64) {
        let held = self.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(held, Ordering::Relaxed);
    }

    /// Keeps which series belong together.
    pub(crate) fn matched(&self, matches: Matches) {
        // A node is prepared once.
        self.matches.get_or_init(|| matches);
    }

    /// Which series belong together, in an operation of two vectors.
    pub(crate) fn matches(&self) -> Option<&Matches> {
        self.matches.get()
    }

    /// Its figures; none where it was not evaluated.
    pub(crate) fn figures(&self) -> Option<Figures> {
        let series_known = self.given.get()?.len();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut figures = Figures {
            steps: self.steps,
            series_known,
            columns: load(&self.columns),
            series_read: load(&self.series_read),
            samples_read: load(&self.samples_read),
            late_read: load(&self.late_read),
            peak_bytes: self
                .peak_bytes
                .load(Ordering::Relaxed)
                .max(0)
                .unsigned_abs(),
            own_ns: load(&self.own_ns),
            ..Figures::default()
        };
        for at in 0..series_known {
            if let Given::Samples(samples) = self.given(at) {
                figures.series_evaluated += 1;
                figures.series += usize::from(samples > 0);
                figures.samples += u64::from(samples);
            }
        }
        Some(figures)
    }
}
