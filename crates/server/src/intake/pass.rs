//! The way of a batch past the gate and CLIENT PAUSE.

use super::Failure;
use crate::state::Pass;
use crate::state::Shared;
use std::sync::atomic::Ordering;

/// What a sender does while CLIENT PAUSE holds writes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InPause {
    /// It waits, and its samples with it.
    Wait,
    /// It is told to come again.
    Refuse,
}

/// A pass of the gate to write a batch with. A pause is looked for behind the
/// gate, which CLIENT PAUSE has alone: once that is answered, nothing is
/// written before the pause ends.
pub(super) fn enter(shared: &Shared, in_pause: InPause) -> Result<Pass<'_>, Failure> {
    loop {
        let pass = shared.gate.enter_beside_loops();
        if shared.pause.holds(true).is_none() {
            return Ok(pass);
        }
        if in_pause == InPause::Refuse {
            return Err(Failure::Paused);
        }
        // A server that stops takes what has come.
        if shared.lifetime.stopping.load(Ordering::Acquire) {
            return Ok(pass);
        }
        drop(pass);
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
            // Who waits keeps no EXEC from the gate.
            drop(shared.gate.alone());
            assert!(!waits.is_finished());
            shared.pause.end();
            assert!(waits.join().unwrap());
        });
        shared.pause.begin(until, false);
        shared.lifetime.stopping.store(true, Ordering::Release);
        assert!(enter(&shared, InPause::Wait).is_ok());
    }
}
