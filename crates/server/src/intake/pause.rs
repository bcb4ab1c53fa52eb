//! The exec lock and CLIENT PAUSE on the way of a batch.

use super::Failure;
use crate::state::{ExecBeside, Shared};
use std::sync::atomic::Ordering;

/// What a sender does while CLIENT PAUSE holds writes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InPause {
    /// It waits, and its samples with it.
    Wait,
    /// It is refused and may retry.
    Refuse,
}

/// A share of the exec lock to write a batch with. The pause is checked with the
/// lock held, which CLIENT PAUSE takes exclusively: once that is answered,
/// nothing is written before the pause ends.
pub(crate) fn enter(shared: &Shared, in_pause: InPause) -> Result<ExecBeside<'_>, Failure> {
    loop {
        let shared_lock = shared.exec_lock.share_beside_loops();
        if shared.pause.holds(true).is_none() {
            return Ok(shared_lock);
        }
        if in_pause == InPause::Refuse {
            return Err(Failure::Paused);
        }
        // A server that stops takes what has come.
        if shared.lifetime.stopping.load(Ordering::Acquire) {
            return Ok(shared_lock);
        }
        drop(shared_lock);
        shared.pause.wait(&shared.lifetime.stopping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::testing::shared as test_shared;
    use std::time::{Duration, Instant};

    #[test]
    fn in_a_pause_one_is_refused_and_another_waits_for_its_end() {
        let shared = test_shared();
        assert!(enter(&shared, InPause::Refuse).is_ok());
        let until = Instant::now() + Duration::from_secs(3600);
        shared.pause.begin(until, false);
        assert!(matches!(
            enter(&shared, InPause::Refuse),
            Err(Failure::Paused)
        ));
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| enter(&shared, InPause::Wait).is_ok());
            // A waiting sender does not block EXEC.
            drop(shared.exec_lock.exclude());
            assert!(!waits.is_finished());
            shared.pause.end();
            assert!(waits.join().unwrap());
        });
        shared.pause.begin(until, false);
        shared.lifetime.stopping.store(true, Ordering::Release);
        assert!(enter(&shared, InPause::Wait).is_ok());
    }
}
