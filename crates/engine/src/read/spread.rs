//! How the work of one query is spread over threads.
//!
//! Threads share it only where it is worth waking them: a small query stays
//! on the thread that asks. What comes out never depends on how many threads
//! there are, because work is cut by what it is, not by who does it.
//!
//! Tested by `tests/query_many.rs`, with one thread and with several.

use crate::read::Reader;
use std::sync::OnceLock;

/// Samples that a thread should have before it is worth waking another.
const SAMPLES_PER_THREAD: u64 = 16 * 1024;

impl Reader {
    /// As [`crate::Db::spread`].
    pub(crate) fn spread<T: Send>(&self, samples: u64, work: impl FnOnce(Spread) -> T + Send) -> T {
        let worth_it = samples / SAMPLES_PER_THREAD >= 2;
        match worth_it.then(|| self.threads.pool()).flatten() {
            Some(pool) => pool.install(|| work(Spread { parallel: true })),
            None => work(Spread { parallel: false }),
        }
    }
}

/// Whether the pieces of a query are worked on side by side.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    parallel: bool,
}

impl Spread {
    /// Whether they are.
    pub fn is_parallel(self) -> bool {
        self.parallel
    }

    /// Both results, maybe made at the same time.
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

    /// What `make` makes of each item, in their order.
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

/// The threads of queries, begun when the first large one comes.
#[derive(Default)]
pub(crate) struct Readers {
    threads: usize,
    pool: OnceLock<Option<rayon::ThreadPool>>,
}

impl Readers {
    /// At most `threads` of them; 0 takes as many as there are cores.
    pub(crate) fn new(threads: usize) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: if threads == 0 { cores() } else { threads },
            pool: OnceLock::new(),
        }
    }

    /// `None` where there is to be one thread, or where the system gives none:
    /// then the caller does the work alone.
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
