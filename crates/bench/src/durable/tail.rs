//! Long runs: how long a client waits at worst while everything goes on behind it.
//!
//! While the load runs, a connection of its own asks for a BGSAVE every half second: samples move
//! from memory into blocks, and the log is cut behind them. The log changes segments by itself.
//! How often each of these happened between the first command and the last reply is in the run, as
//! INFO counts it, so that nobody takes a run without them for one that they did not disturb.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DurableArgs, SEED, in_order};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late::{self, Fixed, Measured, Moment};
use crate::target::{System, Target};

/// Time between two calls of BGSAVE.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// How often the saver looks whether the load has begun or ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One long run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TailRun {
    /// How the server was started.
    pub(crate) target: String,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// The load.
    pub(crate) measured: Measured,
    /// What went on behind it.
    pub(crate) behind: Behind,
}

/// What a server has done beside a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Behind {
    /// Changes of the log's segment; none without a log.
    pub(crate) rolls: Option<f64>,
    /// Syncs of the log; none without one.
    pub(crate) syncs: Option<f64>,
    /// Flushes to blocks, each with a cut of the log; none without a log.
    pub(crate) flushes: f64,
    /// Bytes of blocks they wrote.
    pub(crate) flushed_bytes: f64,
}

/// Measures one long run.
///
/// # Errors
/// When the server fails, has lost a sample or did not flush once during the load, though it has a
/// log.
pub(super) fn measure(system: System, repeat: usize, args: &DurableArgs) -> Result<TailRun> {
    let target = Target::start(system);
    let ready = target.ready()?;
    // Waiting for the disk takes so much longer that less of it shows as much.
    let share = match system {
        System::LatewoodSync => 4,
        _ => 1,
    };
    let cell = in_order(args.long_samples.div_ceil(share));
    let fixed = Fixed::new(SEED, args.warmup);
    let label = format!("{}, long", target.name());
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut counts = Vec::new();
    let (measured, saved) = thread::scope(|scope| {
        let saver = scope.spawn(|| save_between(&begun, &done, &ready.address));
        let measured =
            late::measure_beside(&ready.address, &cell, &fixed, label, |control, now| {
                counts.push(Behind::read(control)?);
                let reached = if now == Moment::Begins { &begun } else { &done };
                reached.store(true, Ordering::Release);
                Ok(())
            });
        // A run that broke off says nothing more.
        done.store(true, Ordering::Release);
        (measured, saver.join())
    });
    let measured = measured?;
    saved.map_err(|_| Error::new("the connection that saves panicked"))??;
    let behind = match counts.as_slice() {
        [before, after] => after.since(before)?,
        _ => return Err(Error::new("the long run was not counted")),
    };
    Ok(TailRun {
        target: target.name(),
        repeat,
        measured,
        behind,
    })
}

/// Calls BGSAVE every half second from the beginning of the load to its end.
fn save_between(begun: &AtomicBool, done: &AtomicBool, address: &Address) -> Result<()> {
    let mut control = Control::connect(address)?;
    let ended = || done.load(Ordering::Acquire);
    while !begun.load(Ordering::Acquire) && !ended() {
        thread::sleep(LOOK_EVERY);
    }
    while !ended() {
        control.run(&[b"BGSAVE"])?;
        let mut waited = Duration::ZERO;
        while waited < FLUSH_EVERY && !ended() {
            thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
    Ok(())
}

impl Behind {
    /// What came to these counts after `before`.
    ///
    /// # Errors
    /// When no flush did, though there is a log: without one nothing goes to blocks either.
    fn since(&self, before: &Self) -> Result<Self> {
        let grown = |now: Option<f64>, before: Option<f64>| Some(now? - before?);
        let behind = Behind {
            rolls: grown(self.rolls, before.rolls),
            syncs: grown(self.syncs, before.syncs),
            flushes: self.flushes - before.flushes,
            flushed_bytes: self.flushed_bytes - before.flushed_bytes,
        };
        if behind.rolls.is_some() && behind.flushes == 0.0 {
            return Err(Error::new("the long run ended before its first flush"));
        }
        Ok(behind)
    }

    fn read(control: &mut Control) -> Result<Self> {
        let info = control.info("latewood")?;
        let number = |name: &str| {
            let missing = || Error::new(format!("INFO latewood has no {name}"));
            info.number(name).ok_or_else(missing)
        };
        Ok(Behind {
            rolls: info.number("wal_rolls"),
            syncs: info.number("wal_syncs"),
            flushes: number("flushes")?,
            flushed_bytes: number("flush_bytes_written")?,
        })
    }
}

impl TailRun {
    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        let (load, behind) = (&self.measured, &self.behind);
        format!(
            "{}, long: {:.0} samples/s; p99.9 {:.0} us, max {:.0} us; {:.0} segments changed, \
             {:.0} flushes",
            self.target,
            load.samples_per_second,
            load.p999_us.unwrap_or(0.0),
            load.max_us,
            behind.rolls.unwrap_or(0.0),
            behind.flushes,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_during_the_load_counts() {
        let at = |flushes, rolls| Behind {
            rolls,
            syncs: Some(10.0 * flushes),
            flushes,
            flushed_bytes: 100.0 * flushes,
        };
        let behind = at(5.0, Some(4.0)).since(&at(2.0, Some(1.0))).unwrap();
        assert_eq!((behind.rolls, behind.syncs), (Some(3.0), Some(30.0)));
        assert_eq!((behind.flushes, behind.flushed_bytes), (3.0, 300.0));
        // A flush before the load is none beside it.
        let error = at(2.0, Some(4.0)).since(&at(2.0, Some(1.0))).unwrap_err();
        assert!(error.to_string().contains("before its first flush"));
        assert!(at(0.0, None).since(&at(0.0, None)).is_ok());
    }
}
