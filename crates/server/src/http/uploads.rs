//! Bodies that are on their way, and who gives way when there is no room for another.
//!
//! A body takes memory as its bytes come. One user's bodies may take [`SHARE`] of the
//! places and of the memory. Where a place or memory is missing, the slowest body that is
//! too slow gives it up: its sender is told to send it again.
//!
//! Invariant: an upload is listed from its begin until it is dropped. Tested by
//! `tests/http/uploads.rs`.

use super::answer::Answer;
use super::permits::Permits;
use crate::acl::User;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep};

/// The part of places and memory that one user's bodies may take.
const SHARE: (usize, usize) = (3, 4);
/// A body that came more slowly than this gives way.
const RATE_MIN_BYTES_PER_S: u128 = 64 << 10;
/// What a body has for its beginning.
const GRACE: Duration = Duration::from_secs(1);
/// How long others take to leave.
const LEAVE: Duration = Duration::from_millis(5);
const LEAVES_MAX: usize = 100;

/// Bodies that are on their way to requests of one side.
#[derive(Default)]
pub(super) struct Uploads(Mutex<Vec<Arc<State>>>);

struct State {
    user: Vec<u8>,
    began: Instant,
    received_bytes: AtomicUsize,
    granted_bytes: AtomicUsize,
    /// Tells it to give way.
    leave: Notify,
}

impl State {
    /// Bytes a second, where it is old enough to say.
    fn rate(&self) -> Option<u128> {
        let age_ms = self.began.elapsed();
        let received_bytes = self.received_bytes.load(Ordering::Relaxed) as u128;
        (age_ms >= GRACE).then(|| received_bytes * 1000 / age_ms.as_millis().max(1))
    }
}

/// Who takes what is missing.
enum Refused {
    /// The user's own bodies.
    Own(Answer),
    /// All together.
    Others(Answer),
}

/// One body on its way.
pub(super) struct Upload<'a> {
    permits: &'a Permits,
    state: Arc<State>,
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        let mut uploads = self.permits.uploads.0.lock();
        uploads.retain(|upload| !Arc::ptr_eq(upload, &self.state));
    }
}

impl<'a> Upload<'a> {
    /// A body that `user` sends, and its place.
    ///
    /// # Errors
    /// 503 where others, or the user's own, take all places and do come.
    pub(super) async fn begin(
        permits: &'a Permits,
        user: &User,
    ) -> Result<(Self, OwnedSemaphorePermit), Answer> {
        let state = Arc::new(State {
            user: user.name.to_vec(),
            began: Instant::now(),
            received_bytes: AtomicUsize::new(0),
            granted_bytes: AtomicUsize::new(0),
            leave: Notify::new(),
        });
        let upload = Self { permits, state };
        let places_max = part(permits.places_max());
        let place = upload
            .take(|uploads| {
                let own = uploads.iter().filter(|other| upload.is_of_same_user(other));
                if own.count() < places_max {
                    permits.enter().map_err(Refused::Others)
                } else {
                    Err(upload.over_share())
                }
            })
            .await?;
        Ok((upload, place))
    }

    /// Memory for `bytes` more.
    ///
    /// # Errors
    /// 503 where others, or the user's own, take it all and do come.
    pub(super) async fn memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Answer> {
        let bytes_max = part(Permits::memory_bytes_max());
        let permit = self
            .take(|uploads| {
                let own = uploads.iter().filter(|other| self.is_of_same_user(other));
                let own = own.map(|other| other.granted_bytes.load(Ordering::Relaxed));
                if own.sum::<usize>() + bytes <= bytes_max {
                    self.permits.memory(bytes).map_err(Refused::Others)
                } else {
                    Err(self.over_share())
                }
            })
            .await?;
        self.state.granted_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(permit)
    }

    /// Notes that `bytes` more have come.
    pub(super) fn note(&self, bytes: usize) {
        self.state
            .received_bytes
            .fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends once it must give way.
    pub(super) async fn must_leave(&self) {
        self.state.leave.notified().await;
    }

    /// What `attempt` gets once slow bodies have left.
    async fn take<T>(
        &self,
        attempt: impl Fn(&[Arc<State>]) -> Result<T, Refused>,
    ) -> Result<T, Answer> {
        let mut asked: Vec<Arc<State>> = Vec::new();
        for _ in 0..LEAVES_MAX {
            let refused = {
                let mut uploads = self.permits.uploads.0.lock();
                match attempt(&uploads) {
                    Ok(taken) => {
                        if !uploads.iter().any(|other| Arc::ptr_eq(other, &self.state)) {
                            uploads.push(Arc::clone(&self.state));
                        }
                        return Ok(taken);
                    }
                    Err(refused) => {
                        asked.retain(|gone| uploads.iter().any(|other| Arc::ptr_eq(other, gone)));
                        if asked.is_empty() {
                            asked.extend(self.slowest(&uploads, &refused));
                        }
                        refused
                    }
                }
            };
            let Some(slowest) = asked.first() else {
                let (Refused::Own(answer) | Refused::Others(answer)) = refused;
                return Err(answer);
            };
            slowest.leave.notify_one();
            sleep(LEAVE).await;
        }
        Err(Answer::busy("other requests do not make room in time"))
    }

    /// The slowest of the others that are too slow and whose end helps, of the same user
    /// first.
    fn slowest(&self, uploads: &[Arc<State>], refused: &Refused) -> Option<Arc<State>> {
        let others = uploads
            .iter()
            .filter(|other| !Arc::ptr_eq(other, &self.state));
        let slow = others.filter_map(|other| {
            let rate = other.rate().filter(|rate| *rate < RATE_MIN_BYTES_PER_S)?;
            Some((!self.is_of_same_user(other), rate, other))
        });
        let any_helps = matches!(refused, Refused::Others(_));
        let slow = slow.filter(|(is_foreign, ..)| any_helps || !is_foreign);
        let slowest = slow.min_by_key(|(is_foreign, rate, _)| (*is_foreign, *rate));
        slowest.map(|(_, _, other)| Arc::clone(other))
    }

    fn is_of_same_user(&self, other: &State) -> bool {
        other.user == self.state.user
    }

    fn over_share(&self) -> Refused {
        let verb = self.permits.verb();
        Refused::Own(Answer::busy(format!(
            "this user's requests to {verb} take all that one user may"
        )))
    }
}

fn part(all: usize) -> usize {
    all / SHARE.1 * SHARE.0 + all % SHARE.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_does_not_make_a_body_fast() {
        let permits = Permits::new("write", 1, 1);
        let began = Instant::now().checked_sub(GRACE).unwrap();
        let state = Arc::new(State {
            user: Vec::new(),
            began,
            received_bytes: AtomicUsize::new(0),
            granted_bytes: AtomicUsize::new(0),
            leave: Notify::new(),
        });
        let upload = Upload {
            permits: &permits,
            state,
        };
        upload.note(1);
        let rate = upload.state.rate().unwrap();
        assert!(rate < RATE_MIN_BYTES_PER_S, "{rate}");
    }
}
