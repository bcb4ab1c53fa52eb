//! Since when a process rests.
//!
//! Work behind the last reply comes in pieces, with breaks while a thread waits. A process rests
//! once it has taken hardly any processor time for longer than such a break.

use std::time::Duration;

use crate::base::error::{Error, Result};

/// A process that takes less than this share of a core rests.
const RESTING_SHARE: f64 = 0.1;
const PATIENCE: Duration = Duration::from_secs(600);

/// What is seen of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub(crate) at: Duration,
    pub(crate) cpu_seconds: f64,
}

/// When a process came to rest that has rested for `quiet_for`. `look` waits a little and looks;
/// `first` is what was seen before.
pub(crate) fn since(
    first: Look,
    quiet_for: Duration,
    mut look: impl FnMut() -> Result<Look>,
) -> Result<Look> {
    let (mut rested, mut last) = (first, first);
    while last.at.saturating_sub(rested.at) < quiet_for {
        if last.at.saturating_sub(first.at) > PATIENCE {
            let minutes = PATIENCE.as_secs() / 60;
            return Err(Error::new(format!(
                "the process does not rest: it still works {minutes} minutes after the load"
            )));
        }
        let now = look()?;
        let window = now.at.saturating_sub(last.at).as_secs_f64();
        if now.cpu_seconds - last.cpu_seconds >= RESTING_SHARE * window {
            rested = now;
        }
        last = now;
    }
    Ok(rested)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);
    const BEGIN: Look = Look {
        at: Duration::from_secs(3),
        cpu_seconds: 7.0,
    };

    /// A process of which `busy` says whether it works in a step, all the time then.
    fn process(busy: impl Fn(u32) -> bool) -> impl FnMut() -> Result<Look> {
        let (mut steps, mut now) = (0, BEGIN);
        move || {
            now.at += STEP;
            now.cpu_seconds += if busy(steps) { 0.1 } else { 0.001 };
            steps += 1;
            Ok(now)
        }
    }

    #[test]
    fn a_break_in_the_work_is_no_rest() {
        let steps = |count: u32| BEGIN.at + STEP * count;
        let breaks = process(|step| step < 5 || (8..20).contains(&step));
        let rested = since(BEGIN, STEP * 10, breaks).unwrap();
        assert_eq!(rested.at, steps(20));
        assert!((rested.cpu_seconds - 8.703).abs() < 1e-9, "{rested:?}");
        // What never worked has rested from the beginning.
        assert_eq!(since(BEGIN, STEP * 10, process(|_| false)).unwrap(), BEGIN);
    }

    #[test]
    fn a_process_that_never_rests_is_an_error() {
        let error = since(BEGIN, STEP * 10, process(|_| true)).unwrap_err();
        assert!(error.to_string().contains("does not rest"), "{error}");
    }
}
