//! Spreads the work of one query over threads.
//!
//! Other threads take part only if the work is worth waking them: a small query
//! stays on the calling thread. The result does not depend on the number of
//! threads, because the data, not the threads, determines how the work is divided.
//!
//! One query at a time has the threads, of all databases that share them. Another that
//! comes meanwhile does its work alone: no query waits for the end of another one's.
//!
//! Tested by `tests/query_many.rs`, with one thread and with several.

use crate::db::Db;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Minimum number of samples for each thread.
const SAMPLES_PER_THREAD: u64 = 16 * 1024;

impl Db {
    /// Runs `work`, which reads about `samples` samples, and provides threads for
    /// it if parallel work pays and no other query has them: it waits for none.
    pub fn spread<T: Send>(&self, samples: u64, work: impl FnOnce(Spread) -> T + Send) -> T {
        let worth_it = samples / SAMPLES_PER_THREAD >= 2;
        match worth_it.then(|| self.readers.take()).flatten() {
            Some(taken) => taken.pool.install(|| work(Spread { parallel: true })),
            None => work(Spread { parallel: false }),
        }
    }
}

/// Whether the parts of a query run in parallel.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    parallel: bool,
}

impl Spread {
    /// Whether the parts run in parallel.
    pub fn is_parallel(self) -> bool {
        self.parallel
    }

    /// Calls both, possibly in parallel.
    pub fn both<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        if self.parallel {
            rayon::join(a, b)
        } else {
            (a(), b())
        }
    }

    /// Calls `make` for each item and returns the results in order.
    pub fn map<I: Send, T: Send>(
        self,
        items: Vec<I>,
        make: impl Fn(I) -> T + Send + Sync,
    ) -> Vec<T> {
        use rayon::iter::{IntoParallelIterator, ParallelIterator};
        if self.parallel {
            items.into_par_iter().map(make).collect()
        } else {
            items.into_iter().map(make).collect()
        }
    }
}

/// The threads of queries, started by the first large one.
#[derive(Default)]
pub(crate) struct Readers {
    threads: usize,
    pool: OnceLock<Option<rayon::ThreadPool>>,
    /// A query has the threads.
    is_taken: AtomicBool,
}

/// The threads, in use by one query until this is dropped.
struct Taken<'a> {
    pool: &'a rayon::ThreadPool,
    is_taken: &'a AtomicBool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

impl Readers {
    /// At most `threads` threads; 0 means one for each core.
    pub(crate) fn new(threads: usize) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: if threads == 0 { cores() } else { threads },
            pool: OnceLock::new(),
            is_taken: AtomicBool::new(false),
        }
    }

    /// The threads, if no other query has them.
    fn take(&self) -> Option<Taken<'_>> {
        let (pool, is_taken) = (self.pool()?, &self.is_taken);
        (!is_taken.swap(true, Ordering::AcqRel)).then(|| Taken { pool, is_taken })
    }

    /// `None` if the limit is one thread or the system cannot start threads; the
    /// caller then does the work alone.
    fn pool(&self) -> Option<&rayon::ThreadPool> {
        let build = || {
            let builder = rayon::ThreadPoolBuilder::new()
                .num_threads(self.threads)
                .thread_name(|number| format!("query-{number}"));
            builder.build().ok()
        };
        if self.threads < 2 {
            return None;
        }
        self.pool.get_or_init(build).as_ref()
    }
}
