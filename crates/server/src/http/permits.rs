//! Permits: the places, memory and threads of the requests of one side, those
//! that write or those that read.
//!
//! Each side has its own, so that slow readers do not block writers, nor writers
//! readers. A request that finds no place or memory is refused and may be sent
//! again; a request with a place waits for a thread.

use super::answer::Answer;
use super::uploads::Uploads;
use crate::base::clock::now_ms;
use latewood_engine::Tally;
use parking_lot::Mutex;
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
    /// Answers that wait for their readers.
    long_answers: Arc<Mutex<Vec<Arc<LongAnswer>>>>,
    /// Requests that found no place or memory.
    pub(super) refused: Tally,
    /// Bodies on their way to these requests.
    pub(super) uploads: Uploads,
}

impl Permits {
    /// Permits for `places` requests that `verb`; `threads` of them are worked on at a time.
    pub(super) fn new(verb: &'static str, places: usize, threads: usize) -> Self {
        Self {
            verb,
            places_max: places,
            places: Arc::new(Semaphore::new(places)),
            memory: Arc::new(Semaphore::new(MEMORY_PIECES)),
            threads: Arc::new(Semaphore::new(threads)),
            long_answers: Arc::default(),
            refused: Tally::default(),
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

    /// Requests that run or wait.
    pub(super) fn places_used(&self) -> usize {
        let free = self.places.available_permits();
        self.places_max.saturating_sub(free)
    }

    /// Memory that requests hold.
    pub(super) fn memory_bytes(&self) -> usize {
        let free = self.memory.available_permits();
        MEMORY_PIECES.saturating_sub(free) * PIECE_BYTES
    }

    /// Counts a request that may be tried again.
    fn refuse(&self, text: String) -> Answer {
        self.refused.note(now_ms());
        Answer::busy(text)
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
        permit.map_err(|_| self.refuse(format!("too many requests to {} at a time", self.verb)))
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
            self.refuse(text)
        })
    }

    /// Lets an answer of `user` wait for its reader, until what is returned is dropped. It holds
    /// `held` bytes of `bytes_max`, which are those of requests and those of queries. One user's
    /// take three quarters of either, and of the places, and those of all users seven eighths, so
    /// that short answers find some. A user's only one may be longer.
    ///
    /// # Errors
    /// 503 if those of the user, or all, hold too much.
    pub(super) fn long_answer(
        &self,
        user: &[u8],
        held: (usize, usize),
        bytes_max: (usize, usize),
    ) -> Result<Unread, Answer> {
        let mut answers = self.long_answers.lock();
        let own = || answers.iter().filter(|answer| *answer.user == *user);
        let is_over = |of: fn(&LongAnswer) -> usize, bytes: usize, max: usize| {
            let own_bytes = own().map(|answer| of(answer)).sum::<usize>() + bytes;
            let all_bytes = answers.iter().map(|answer| of(answer)).sum::<usize>() + bytes;
            (own_bytes > max / 4 * 3, all_bytes > max / 8 * 7)
        };
        let requests = is_over(|answer| answer.bytes, held.0, bytes_max.0);
        let queries = is_over(|answer| answer.query_bytes, held.1, bytes_max.1);
        let verb = self.verb;
        let is_only = own().next().is_none();
        if !is_only && (requests.0 || queries.0 || own().count() >= self.places_max / 4 * 3) {
            let text = format!("this user's requests to {verb} take all that one user may");
            return Err(self.refuse(text));
        }
        if !answers.is_empty() && (requests.1 || queries.1) {
            let text = format!("other requests to {verb} use all the memory for long answers");
            return Err(self.refuse(text));
        }
        let answer = Arc::new(LongAnswer {
            user: user.into(),
            bytes: held.0,
            query_bytes: held.1,
        });
        answers.push(Arc::clone(&answer));
        Ok(Unread {
            answer,
            all: Arc::clone(&self.long_answers),
        })
    }
}

/// An answer that waits for its reader.
struct LongAnswer {
    user: Box<[u8]>,
    bytes: usize,
    query_bytes: usize,
}

/// Counts an answer that waits for its reader.
pub(super) struct Unread {
    answer: Arc<LongAnswer>,
    all: Arc<Mutex<Vec<Arc<LongAnswer>>>>,
}

impl Drop for Unread {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        all.retain(|answer| !Arc::ptr_eq(answer, &self.answer));
    }
}

/// Bytes that `memory` holds.
pub(super) fn bytes_of(memory: &OwnedSemaphorePermit) -> usize {
    memory.num_permits() * PIECE_BYTES
}

/// Gives back what `memory` holds for more than `bytes`.
pub(super) fn shrink(memory: &mut OwnedSemaphorePermit, bytes: usize) {
    let over = memory.num_permits().saturating_sub(pieces(bytes) as usize);
    drop(memory.split(over));
}

fn pieces(bytes: usize) -> u32 {
    bytes.div_ceil(PIECE_BYTES).min(MEMORY_PIECES) as u32
}
