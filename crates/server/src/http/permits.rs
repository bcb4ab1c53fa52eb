//! Permits: the places, memory and threads of the requests of one side, those
//! that write or those that read.
//!
//! Each side has its own, so that slow readers do not block writers, nor writers
//! readers. A request that finds no place or memory is refused and may be sent
//! again; a request with a place waits for a thread.

use super::answer::Answer;
use super::uploads::Uploads;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pieces of memory that the requests of one side may hold together.
const MEMORY_PIECES: usize = 16 * 1024;
/// The unit in which memory is given out.
const PIECE_BYTES: usize = 16 * 1024;

/// What the requests of one side share.
pub(crate) struct Permits {
    /// What they are about, as in "too many requests to read".
    verb: &'static str,
    places_max: usize,
    places: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    threads: Arc<Semaphore>,
    /// Bodies on their way to these requests.
    pub(super) uploads: Uploads,
}

impl Permits {
    /// Permits for so many requests, which are there to `verb`, of which so many
    /// are worked on at a time.
    pub(super) fn new(verb: &'static str, places: usize, threads: usize) -> Self {
        Self {
            verb,
            places_max: places,
            places: Arc::new(Semaphore::new(places)),
            memory: Arc::new(Semaphore::new(MEMORY_PIECES)),
            threads: Arc::new(Semaphore::new(threads)),
            uploads: Uploads::default(),
        }
    }

    /// What the requests are there to do.
    pub(super) fn verb(&self) -> &'static str {
        self.verb
    }

    /// The number of requests at a time.
    pub(super) fn places_max(&self) -> usize {
        self.places_max
    }

    /// Memory of all requests together.
    pub(super) fn memory_bytes_max() -> usize {
        MEMORY_PIECES * PIECE_BYTES
    }

    /// One of the threads, once it is free; dropping the permit gives it back.
    pub(super) async fn thread(&self) -> impl Send + use<> {
        // Nobody closes the semaphore, so it is always there.
        Arc::clone(&self.threads).acquire_owned().await.ok()
    }

    /// A place among the requests that run or wait.
    ///
    /// # Errors
    /// 503 if there are too many.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, Answer> {
        let permit = Arc::clone(&self.places).try_acquire_owned();
        permit.map_err(|_| Answer::busy(format!("too many requests to {} at a time", self.verb)))
    }

    /// Memory for `bytes` more of a body or an answer.
    ///
    /// # Errors
    /// 503 if other requests hold too much.
    pub(crate) fn memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Answer> {
        let permit = Arc::clone(&self.memory).try_acquire_many_owned(pieces(bytes));
        permit.map_err(|_| {
            let text = format!(
                "other requests to {} use all the memory for requests",
                self.verb
            );
            Answer::busy(text)
        })
    }
}

/// Gives back what `memory` holds for more than `bytes`.
pub(super) fn shrink(memory: &mut OwnedSemaphorePermit, bytes: usize) {
    let over = memory.num_permits().saturating_sub(pieces(bytes) as usize);
    drop(memory.split(over));
}

fn pieces(bytes: usize) -> u32 {
    bytes.div_ceil(PIECE_BYTES).min(MEMORY_PIECES) as u32
}
