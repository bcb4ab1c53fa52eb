//! The time until late samples over history on disk are in files.
//!
//! What LATEWOOD SETTLE merges lies in memory. A late sample of a time that is in a block stays an
//! operation until it goes to a late block with the next flush, and compaction folds that into the
//! block. So a run over history goes on: everything is moved to disk, and then the server is
//! watched until it rests. All servers are, so that their figures can be compared, and samples in
//! order have to be moved as well.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cell::cpu_seconds;
use crate::control::Control;
use crate::error::Result;
use crate::quiet::{self, Look};

/// Time between two looks at the server: the end of its work is known as exactly.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long it must rest: several times as long as its threads wait between two looks for work.
const QUIET_FOR: Duration = Duration::from_secs(2);

/// A run up to the moment when nothing was left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AtRest {
    /// From the first command until then.
    pub(crate) seconds: f64,
    /// Processor time of the server until then, from the first command on.
    pub(crate) server_cpu_seconds: f64,
}

/// Has everything moved to disk by a server that `stages` late samples, and waits until it rests.
/// The run `began` then, when the server had taken `cpu_before`.
///
/// # Errors
/// When the server goes away or does not come to rest.
pub(super) fn wait(
    control: &mut Control,
    stages: bool,
    began: Instant,
    cpu_before: f64,
) -> Result<AtRest> {
    if stages {
        control.run(&[b"SAVE"])?;
    }
    let rested = quiet(control, began)?;
    Ok(AtRest {
        seconds: rested.at.as_secs_f64(),
        server_cpu_seconds: rested.cpu_seconds - cpu_before,
    })
}

/// Waits until the server rests; when it came to that, counted from `began`.
///
/// # Errors
/// When the server goes away or does not come to rest.
pub(super) fn quiet(control: &mut Control, began: Instant) -> Result<Look> {
    let mut look = || {
        let cpu_seconds = cpu_seconds(control)?;
        let at = began.elapsed();
        Ok(Look { at, cpu_seconds })
    };
    let first = look()?;
    quiet::since(first, QUIET_FOR, || {
        thread::sleep(LOOK_EVERY);
        look()
    })
}
