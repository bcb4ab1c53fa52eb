//! Waiting between attempts, and the end of all waiting.
//!
//! Invariant: a wait ends as soon as [`Cancel::cancel`] is called. Tested below.

use std::fmt::Display;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The call was given up because of [`Cancel::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// How often a wait that takes long is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// A flag that ends calls which would otherwise be repeated until they succeed.
#[derive(Debug, Default)]
pub struct Cancel {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    /// Ends all waits, now and later.
    pub fn cancel(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether it was called.
    pub fn is_cancelled(&self) -> bool {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, time: Duration) -> Result<(), Cancelled> {
        let until = Instant::now() + time;
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if *set {
                return Err(Cancelled);
            }
            if left.is_zero() {
                return Ok(());
            }
            let waited = self.changed.wait_timeout(set, left);
            set = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How calls to Kafka are repeated.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The wait before the second attempt; it doubles with each further one.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// Ends it.
    pub cancel: Arc<Cancel>,
}

impl Retry {
    /// Waits that suit brokers which elect a leader within seconds.
    pub fn new(cancel: Arc<Cancel>) -> Self {
        Self {
            first: Duration::from_millis(5),
            longest: Duration::from_millis(500),
            cancel,
        }
    }

    /// Calls until there is an answer that another attempt would not change. `what` cannot be done
    /// meanwhile: a machine that starts before brokers or a store is an ordinary thing.
    ///
    /// # Errors
    /// [`Cancelled`]; within, those of `call` that are not temporary.
    pub fn repeat<T, E: Display>(
        &self,
        what: &str,
        mut call: impl FnMut() -> Result<T, E>,
        is_temporary: impl Fn(&E) -> bool,
    ) -> Result<Result<T, E>, Cancelled> {
        let mut pauses = self.pauses(what);
        loop {
            match call() {
                Err(error) if is_temporary(&error) => {
                    if pauses.told.is_none() {
                        pauses.tell(&error);
                    }
                    pauses.pause(&error)?;
                }
                called => return Ok(called),
            }
        }
    }

    /// Waits once, up to `time`.
    pub(crate) fn rest(&self, time: Duration) -> Result<(), Cancelled> {
        self.cancel.wait(time.min(self.longest))
    }

    /// The waits of one call, which cannot do `what` meanwhile.
    pub(crate) fn pauses<'a>(&'a self, what: &'a str) -> Pauses<'a> {
        Pauses {
            retry: self,
            what,
            next: self.first,
            begun: Instant::now(),
            told: None,
        }
    }
}

/// The waits of one call.
pub(crate) struct Pauses<'a> {
    retry: &'a Retry,
    what: &'a str,
    next: Duration,
    begun: Instant,
    /// When the log was last told of it.
    told: Option<Instant>,
}

impl Pauses<'_> {
    /// Waits before another attempt; `why` the one before failed. The server's log says so when
    /// that takes long, and again every ten seconds.
    pub(crate) fn pause(&mut self, why: &dyn Display) -> Result<(), Cancelled> {
        if self.told.unwrap_or(self.begun).elapsed() >= TELL_EVERY {
            self.tell(why);
        }
        self.wait()
    }

    fn tell(&mut self, why: &dyn Display) {
        self.told = Some(Instant::now());
        let (what, waited_s) = (self.what, self.begun.elapsed().as_secs());
        tracing::warn!(%why, waited_s, "{what} yet");
    }

    /// Waits before another attempt, of which somebody else tells.
    pub(crate) fn wait(&mut self) -> Result<(), Cancelled> {
        let time = self.next.min(self.retry.longest);
        self.next = time * 2;
        self.retry.cancel.wait(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_it_is_cancelled() {
        let retry = Retry {
            first: Duration::from_secs(3600),
            longest: Duration::MAX / 4,
            ..Retry::new(Arc::default())
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| retry.pauses("cannot").pause(&"away"));
            retry.cancel.cancel();
            assert_eq!(waiting.join().unwrap(), Err(Cancelled));
        });
        assert!(retry.cancel.is_cancelled());
        assert_eq!(retry.pauses("cannot").pause(&"away"), Err(Cancelled));
    }

    #[test]
    fn a_call_is_repeated_until_its_answer_is_final() {
        let retry = Retry {
            first: Duration::ZERO,
            ..Retry::new(Arc::default())
        };
        let mut answers = [Err("away"), Err("away"), Ok(7)].into_iter();
        let is_temporary = |error: &&str| *error == "away";
        let answer = retry.repeat(
            "cannot",
            || answers.next().expect("an answer"),
            is_temporary,
        );
        assert_eq!(answer, Ok(Ok(7)));
        let refused = retry.repeat("cannot", || Err::<(), _>("no"), is_temporary);
        assert_eq!(refused, Ok(Err("no")));
        retry.cancel.cancel();
        let cancelled = retry.repeat("cannot", || Err::<(), _>("away"), is_temporary);
        assert_eq!(cancelled, Err(Cancelled));
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let retry = Retry {
            first: Duration::from_nanos(3),
            longest: Duration::from_nanos(10),
            ..Retry::new(Arc::default())
        };
        let mut pauses = retry.pauses("cannot");
        let mut next = Vec::new();
        for _ in 0..4 {
            pauses.pause(&"away").unwrap();
            next.push(pauses.next.as_nanos());
        }
        assert_eq!(next, [6, 12, 20, 20]);
    }
}
