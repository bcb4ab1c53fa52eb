//! Admission of writes: which wait for memory or disk space, and which are refused.
//!
//! A write is admitted before it takes any lock, and a new series again once it is
//! known to be one. Tested with [`crate::keyspace::memory_budget`].

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::refusal::Refusal;
use crate::keyspace::core::Core;
use crate::keyspace::memory_budget::Level;
use crate::log::Log;
use crate::observe::notices::About;
use crate::observe::signals::Job;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a batch waits near the memory budget, and at it.
const SLOW_WAIT_NS: u64 = 100_000_000;
const FULL_WAIT_NS: u64 = 1_000_000_000;
/// How long a new series waits for others that leave memory.
const PARKING_WAIT_NS: u64 = 200_000_000;
/// How long a batch waits for disk space.
const DISK_WAIT_NS: u64 = 3_000_000_000;
/// Interval at which a waiting write checks again.
const TURN: Duration = Duration::from_millis(5);

/// Admits a write that needs memory, possibly after a wait.
///
/// # Errors
/// `OutOfMemory` at the budget; `DiskBudget` if the files may not grow; `LogFull`;
/// `Halted` once the log has failed. The caller holds no lock.
#[inline]
pub(crate) fn admit_write(core: &Core) -> Result<()> {
    core.check_writable()?;
    check_memory(core)?;
    check_disk_budget(core)
}

#[inline]
pub(crate) fn check_memory(core: &Core) -> Result<()> {
    match core.budget.level() {
        Level::Open => Ok(()),
        _ => wait_for_memory(core),
    }
}

/// Whether a flush is likely to free memory.
pub(crate) fn may_free_memory(core: &Core) -> bool {
    let (budget, flush) = (&core.budget, &core.budget.flush);
    let frees = budget.can_free() || flush.is_running() || flush.has_just_ended(budget.now_ns());
    flush.works() && frees
}

/// Calls `look` with the time waited so far, until it decides; between two calls memory or disk
/// space may get free. Returns that time, too.
fn wait_for<T>(
    core: &Core,
    turn: &Mutex<()>,
    eased: &Condvar,
    mut look: impl FnMut(u64) -> Option<T>,
) -> (T, u64) {
    let begun_ns = core.env.clock.monotonic_ns();
    let mut waited_ns = 0;
    loop {
        if let Some(decision) = look(waited_ns) {
            return (decision, waited_ns);
        }
        eased.wait_for(&mut turn.lock(), TURN);
        waited_ns = core.env.clock.monotonic_ns().saturating_sub(begun_ns);
    }
}

#[cold]
fn wait_for_memory(core: &Core) -> Result<()> {
    let budget = &core.budget;
    let (outcome, waited_ns) = wait_for(core, &budget.turn, &budget.eased, |waited_ns| {
        core.look_if_stale();
        let level = budget.level();
        let wait_max_ns = match level {
            Level::Open => return Some(Ok(())),
            Level::Slow => SLOW_WAIT_NS,
            Level::Full => FULL_WAIT_NS,
        };
        // The first write waits before it is refused; later ones do not.
        let is_new = level == Level::Full
            && core.options.background
            && !budget.waited_in_vain.load(Ordering::Relaxed);
        if !(may_free_memory(core) || is_new) || waited_ns >= wait_max_ns {
            return Some(match level {
                Level::Full => Err(refuse_for_memory(core)),
                _ => Ok(()),
            });
        }
        budget.wake_flusher();
        None
    });
    note_stall(&core.member.stalls, &core.member.stalled_ns, waited_ns);
    outcome
}

fn note_stall(stalls: &AtomicU64, stalled_ns: &AtomicU64, waited_ns: u64) {
    if waited_ns > 0 {
        stalls.fetch_add(1, Ordering::Relaxed);
        stalled_ns.fetch_add(waited_ns, Ordering::Relaxed);
    }
}

fn refuse_for_memory(core: &Core) -> Error {
    core.member.refused.note(core.env.clock.now_ms());
    core.budget.waited_in_vain.store(true, Ordering::Relaxed);
    let used = core.budget.used_bytes();
    let limit = core.budget.limit_bytes();
    let message = format!("the process holds {used} bytes of memory, its budget is {limit}");
    let text = format_args!("writes are refused: {message}");
    core.observe.notices.tell(About::Memory, text);
    Error::new(ErrorKind::OutOfMemory, message)
}

/// Admits a new series, possibly after a wait: what fills the memory may go by
/// itself.
///
/// # Errors
/// `OutOfMemory` if existing series fill the budget. The caller holds no lock.
#[inline]
pub(crate) fn admit_series(core: &Core) -> std::result::Result<(), Refusal> {
    let crowd = &core.budget.crowd;
    if crowd.is_crowded() {
        wait_for_place(core)
    } else {
        if crowd.is_near() && crowd.is_slow(core.budget.now_ns()) {
            wait_for_parking(core);
        }
        Ok(())
    }
}

/// Waits until series that rest have left memory, or for a moment.
#[cold]
fn wait_for_parking(core: &Core) {
    if !core.options.background {
        // Without threads, the caller of `maintain` parks.
        return;
    }
    let budget = &core.budget;
    budget.crowd.note_slowed(budget.now_ns());
    let ((), waited_ns) = wait_for(core, &budget.turn, &budget.eased, |waited_ns| {
        core.look_if_stale();
        let is_slower = budget.crowd.is_slower(budget.now_ns()) && !budget.crowd.is_crowded();
        (!is_slower || waited_ns >= PARKING_WAIT_NS).then_some(())
    });
    budget.crowd.note_slowed(budget.now_ns());
    note_stall(&core.member.stalls, &core.member.stalled_ns, waited_ns);
}

#[cold]
fn wait_for_place(core: &Core) -> std::result::Result<(), Refusal> {
    let budget = &core.budget;
    let mut cleared_at_ns = None;
    let (outcome, waited_ns) = wait_for(core, &budget.turn, &budget.eased, |waited_ns| {
        core.look_if_stale();
        if !budget.crowd.is_crowded() {
            return Some(Ok(()));
        }
        // As with writes, one waits for all; another one once others have left memory.
        let is_new = core.options.background && !budget.crowd.waited_in_vain();
        if !is_new || waited_ns >= FULL_WAIT_NS {
            return Some(Err(refuse_series(core)));
        }
        // Sooner than a series is refused, reads have to go to the disk. What that frees
        // is not known before the memory is measured again.
        let measured_at_ns = Some(budget.measured_ns());
        if cleared_at_ns != measured_at_ns {
            core.store.cache.clear();
            cleared_at_ns = measured_at_ns;
        }
        None
    });
    note_stall(&core.member.stalls, &core.member.stalled_ns, waited_ns);
    outcome
}

fn refuse_series(core: &Core) -> Refusal {
    core.member.refused.note(core.env.clock.now_ms());
    core.budget.crowd.note_waited_in_vain();
    let limit = core.budget.limit_bytes();
    let text = format_args!(
        "new series are refused: existing series fill the memory budget of {limit} bytes"
    );
    core.observe.notices.tell(About::Series, text);
    Refusal::OutOfMemory
}

/// Admits a write that takes disk space, possibly after a wait; or space in a remote log, without.
///
/// # Errors
/// `DiskBudget`, `LogFull`. The caller holds no lock.
#[inline]
pub(crate) fn check_disk_budget(core: &Core) -> Result<()> {
    if core.store.disk_budget.is_spent() {
        wait_for_disk(core)
    } else {
        Ok(())
    }
}

#[cold]
fn wait_for_disk(core: &Core) -> Result<()> {
    if let Some(why) = core.log().and_then(Log::why_full) {
        return Err(refuse_for_log(core, why));
    }
    if !core.options.background {
        // Without threads, the caller of `maintain` frees disk space.
        return Ok(());
    }
    let disk = &core.store.disk_budget;
    let (outcome, waited_ns) = wait_for(core, &disk.turn, &disk.eased, |waited_ns| {
        core.look_at_disk();
        if !disk.is_spent() {
            return Some(Ok(()));
        }
        if waited_ns >= DISK_WAIT_NS || disk.waited_in_vain.load(Ordering::Relaxed) {
            disk.waited_in_vain.store(true, Ordering::Relaxed);
            return Some(Err(refuse_for_disk(core)));
        }
        core.observe.signals.wake(Job::Flush);
        core.observe.signals.wake(Job::Merge);
        None
    });
    note_stall(&disk.stalls, &disk.stalled_ns, waited_ns);
    outcome
}

fn refuse_for_log(core: &Core, why: String) -> Error {
    core.store.disk_budget.refused.note(core.env.clock.now_ms());
    let text = format_args!("writes are refused: {why}");
    core.observe.notices.tell(About::Log, text);
    Error::new(ErrorKind::LogFull, why)
}

fn refuse_for_disk(core: &Core) -> Error {
    let now_ms = core.env.clock.now_ms();
    core.store.disk_budget.refused.note(now_ms);
    let budget = core.store.disk_budget.budget_bytes();
    let usage = core.disk_usage();
    let (blocks, log, others) = (usage.blocks, usage.log, usage.others);
    let paused = if core.observe.signals.is_merging_paused() {
        "; merging is paused, so nothing goes"
    } else {
        ""
    };
    let message = format!(
        "the disk budget of {budget} bytes is used up: blocks take {blocks}, the log {log}, \
         series files and quarantine {others}{paused}"
    );
    let text = format_args!("writes are refused: {message}");
    core.observe.notices.tell(About::Disk, text);
    Error::new(ErrorKind::DiskBudget, message)
}
