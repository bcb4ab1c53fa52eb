//! Long reads: what would keep an event loop from its other connections runs on a
//! thread of this pool.
//!
//! A connection has at most one long read, which waits in a queue until a thread is
//! free, in the order of arrival. The last free thread is kept for users who have none,
//! and else for reads that are brief: one user cannot take all for long. A read that is
//! cancelled leaves the queue, or ends as soon as it looks. Tested here and by `tests/resp/long_reads.rs`.

use super::shared::Shared;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a thread does for a long read. It must not panic.
pub(crate) type Work = Box<dyn FnOnce(&Shared) + Send>;

/// The queue of long reads.
pub(crate) struct Readers {
    threads: usize,
    queue: Mutex<Queue>,
    /// A read may begin, or there will be none any more.
    changed: Condvar,
    /// Reads that ended.
    pub(crate) ended: AtomicU64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Ticket, Work)>,
    running: Vec<Ticket>,
    is_stopping: bool,
}

/// A read, waiting or running.
#[derive(Clone)]
pub(crate) struct Ticket {
    /// Identity of its user.
    pub(crate) user: u64,
    /// It ends soon.
    pub(crate) is_brief: bool,
    /// It may end early once this is true.
    pub(crate) cancelled: Arc<AtomicBool>,
}

impl Readers {
    /// A queue for `threads` threads, at least two, which are to call
    /// [`Readers::run`].
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads: threads.max(2),
            queue: Mutex::default(),
            changed: Condvar::new(),
            ended: AtomicU64::new(0),
        }
    }

    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Queues a read. Where the server stops, it may never begin.
    pub(crate) fn queue(&self, ticket: Ticket, work: Work) {
        let mut queue = self.queue.lock();
        if !queue.is_stopping {
            queue.waiting.push_back((ticket, work));
            self.changed.notify_one();
        }
    }

    /// Cancels the read that was queued with `cancelled`.
    pub(crate) fn cancel(&self, cancelled: &Arc<AtomicBool>) {
        cancelled.store(true, Ordering::Relaxed);
        let mut queue = self.queue.lock();
        let place = queue
            .waiting
            .iter()
            .position(|(ticket, _)| Arc::ptr_eq(&ticket.cancelled, cancelled));
        let removed = place.and_then(|place| queue.waiting.remove(place));
        drop(queue);
        drop(removed);
    }

    /// Runs reads, one after the other, until [`Readers::stop`].
    pub(crate) fn run(&self, shared: &Shared) {
        while let Some((ticket, work)) = self.begin() {
            work(shared);
            self.end(&ticket);
        }
    }

    /// Runs on this thread what may begin now, where no thread calls [`Readers::run`].
    #[cfg(any(fuzzing, feature = "fuzzing"))]
    pub(crate) fn run_queued(&self, shared: &Shared) {
        let next = || self.queue.lock().next(self.threads);
        while let Some((_, work)) = next() {
            work(shared);
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Cancels all reads; none begins any more.
    pub(crate) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.is_stopping = true;
        for ticket in &queue.running {
            ticket.cancelled.store(true, Ordering::Relaxed);
        }
        let never = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(never);
        self.changed.notify_all();
    }

    /// Reads that run, and reads that wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let queue = self.queue.lock();
        (queue.running.len(), queue.waiting.len())
    }

    /// The next read that may begin; waits for it. `None`: there will be none.
    fn begin(&self) -> Option<(Ticket, Work)> {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_stopping {
                return None;
            }
            if let Some((ticket, work)) = queue.next(self.threads) {
                queue.running.push(ticket.clone());
                return Some((ticket, work));
            }
            self.changed.wait(&mut queue);
        }
    }

    fn end(&self, ticket: &Ticket) {
        let mut queue = self.queue.lock();
        let is_it = |each: &Ticket| Arc::ptr_eq(&each.cancelled, &ticket.cancelled);
        queue.running.retain(|each| !is_it(each));
        self.ended.fetch_add(1, Ordering::Relaxed);
        drop(queue);
        // What this thread takes next may make the kept one that of another user.
        self.changed.notify_one();
    }
}

impl Queue {
    /// Takes the oldest read that may begin. The last free thread is for a user who has none
    /// running, or else for a brief read.
    fn next(&mut self, threads: usize) -> Option<(Ticket, Work)> {
        let place_of = |may_begin: &dyn Fn(&Ticket) -> bool| {
            let mut waiting = self.waiting.iter();
            waiting.position(|(ticket, _)| may_begin(ticket))
        };
        let has_none = |ticket: &Ticket| self.running.iter().all(|each| each.user != ticket.user);
        let place = match threads.saturating_sub(self.running.len()) {
            0 => None,
            1 => place_of(&has_none).or_else(|| place_of(&|ticket| ticket.is_brief)),
            _ => place_of(&|_| true),
        };
        self.waiting.remove(place?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::testing;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    /// A read of a user, brief or not.
    fn ticket((user, is_brief): (u64, bool)) -> Ticket {
        Ticket {
            user,
            is_brief,
            cancelled: Arc::default(),
        }
    }

    /// The users whose reads begin, in order, where none ends.
    fn begun(threads: usize, users: &[u64]) -> Vec<u64> {
        let all: Vec<(u64, bool)> = users.iter().map(|&user| (user, false)).collect();
        begun_of(threads, &all)
    }

    /// The same where some of the reads are brief.
    fn begun_of(threads: usize, reads: &[(u64, bool)]) -> Vec<u64> {
        let readers = Readers::new(threads);
        for &read in reads {
            readers.queue(ticket(read), Box::new(|_| {}));
        }
        let mut queue = readers.queue.lock();
        let mut begun = Vec::new();
        while let Some((ticket, _)) = queue.next(threads) {
            begun.push(ticket.user);
            queue.running.push(ticket);
        }
        begun
    }

    #[test]
    fn the_last_thread_is_for_a_user_who_has_none() {
        assert_eq!(begun(3, &[1, 1, 1, 1]), [1, 1]);
        assert_eq!(begun(3, &[1, 1, 1, 2]), [1, 1, 2]);
        assert_eq!(begun(3, &[1, 2, 1, 2, 3]), [1, 2, 3]);
        assert_eq!(begun(2, &[1, 1]), [1]);
    }

    #[test]
    fn the_last_thread_is_for_brief_reads_too() {
        let (long, brief) = ((1, false), (1, true));
        assert_eq!(begun_of(3, &[long, long, long, brief]), [1, 1, 1]);
        assert_eq!(
            begun_of(3, &[long, long, long, (2, false), brief]),
            [1, 1, 2]
        );
        assert_eq!(begun_of(2, &[long, brief, brief]), [1, 1]);
        // Whoever has none comes before brief reads of others.
        assert_eq!(begun_of(3, &[long, long, brief, (2, false)]), [1, 1, 2]);
    }

    /// Queues a read that lasts until the sender that it returns is dropped.
    fn lasting(readers: &Readers, user: u64, begun: &Sender<u64>) -> Sender<()> {
        let (end, ended) = channel::<()>();
        let begun = begun.clone();
        let work = move |_: &Shared| {
            begun.send(user).unwrap();
            ended.recv().unwrap_err();
        };
        readers.queue(ticket((user, false)), Box::new(work));
        end
    }

    #[test]
    fn the_kept_thread_begins_once_its_user_has_no_other() {
        let (shared, readers) = (testing::shared(), Readers::new(3));
        let (begun, begins) = channel();
        let next = || begins.recv_timeout(Duration::from_secs(60));
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| readers.run(&shared));
            }
            // Each of the three has run something, and one waits for more.
            let first = [1, 2, 3].map(|user| lasting(&readers, user, &begun));
            (0..3).for_each(|_| assert!(next().is_ok()));
            let [one, two, three] = first;
            drop(three);
            while readers.counts().0 > 2 {
                std::thread::yield_now();
            }
            let more = [2, 1].map(|user| lasting(&readers, user, &begun));
            assert_eq!(readers.counts(), (2, 2));
            // The thread that ends takes the second read of 2: then 1 has none.
            drop(one);
            let both = [next(), next()];
            readers.stop();
            drop((two, more));
            assert!(both == [Ok(2), Ok(1)] || both == [Ok(1), Ok(2)], "{both:?}");
        });
    }

    #[test]
    fn what_is_cancelled_does_not_begin_and_frees_its_place() {
        let readers = Readers::new(3);
        let cancelled = Arc::default();
        let first = Ticket {
            cancelled: Arc::clone(&cancelled),
            ..ticket((1, false))
        };
        readers.queue(first, Box::new(|_| {}));
        readers.queue(ticket((2, false)), Box::new(|_| {}));
        readers.cancel(&cancelled);
        assert_eq!(readers.counts(), (0, 1));
        let (running, _) = readers.begin().unwrap();
        assert_eq!((running.user, readers.counts()), (2, (1, 0)));
        readers.stop();
        assert!(running.cancelled.load(Ordering::Relaxed));
        readers.queue(ticket((3, false)), Box::new(|_| {}));
        assert_eq!(readers.counts(), (1, 0));
        assert!(readers.begin().is_none());
        readers.end(&running);
        assert_eq!(readers.counts(), (0, 0));
    }
}
