//! Waiting between attempts, and the end of all waiting.
//!
//! Invariant: a wait ends as soon as [`Cancel::cancel`] is called. Tested below.

use std::fmt::Display;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The call was given up because of [`Cancel::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

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
        let mut pauses = self.pauses();
        loop {
            match call() {
                Err(error) if is_temporary(&error) => tracing::warn!(%error, "{what} yet"),
                called => return Ok(called),
            }
            pauses.pause()?;
        }
    }

    /// The waits of one call.
    pub(crate) fn pauses(&self) -> Pauses<'_> {
        Pauses {
            retry: self,
            next: self.first,
        }
    }
}

/// The waits of one call.
pub(crate) struct Pauses<'a> {
    retry: &'a Retry,
    next: Duration,
}

impl Pauses<'_> {
    /// Waits before another attempt.
    pub(crate) fn pause(&mut self) -> Result<(), Cancelled> {
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
            let waiting = scope.spawn(|| retry.pauses().pause());
            retry.cancel.cancel();
            assert_eq!(waiting.join().unwrap(), Err(Cancelled));
        });
        assert!(retry.cancel.is_cancelled());
        assert_eq!(retry.pauses().pause(), Err(Cancelled));
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
        let mut pauses = retry.pauses();
        let mut next = Vec::new();
        for _ in 0..4 {
            pauses.pause().unwrap();
            next.push(pauses.next.as_nanos());
        }
        assert_eq!(next, [6, 12, 20, 20]);
    }
}
