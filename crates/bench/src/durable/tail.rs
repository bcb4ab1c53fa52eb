//! Long runs: how long a client waits at worst while everything goes on behind it.
//!
//! While the load runs, a connection of its own asks for a BGSAVE every half second: samples move
//! from memory into blocks, and the log is cut behind them. The log changes segments by itself.
//! How often each of these happened is in the run, as INFO counts it, so that nobody takes a run
//! without them for one that they did not disturb.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{DurableArgs, SEED, in_order};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late::{self, Fixed, Measured};
use crate::target::{System, Target};

/// Time between two calls of BGSAVE.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// How often the saver looks whether the load has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the first flush may take after the load.
const FLUSH_WAIT: Duration = Duration::from_secs(10);

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

/// What a server has done since its start.
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
/// When the server fails, has lost a sample or did not flush once, though it has a log.
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
    let done = AtomicBool::new(false);
    let (measured, saved) = thread::scope(|scope| {
        let saver = scope.spawn(|| save_until(&done, &ready.address));
        let measured = late::measure(&ready.address, &cell, &fixed, label);
        done.store(true, Ordering::Release);
        (measured, saver.join())
    });
    let measured = measured?;
    saved.map_err(|_| Error::new("the connection that saves panicked"))??;
    let behind = Behind::wait(&mut Control::connect(&ready.address)?)?;
    // Without a log nothing goes to blocks either.
    if behind.rolls.is_some() && behind.flushes == 0.0 {
        return Err(Error::new("the long run ended before its first flush"));
    }
    Ok(TailRun {
        target: target.name(),
        repeat,
        measured,
        behind,
    })
}

/// Calls BGSAVE, at least once, until told that the load is done.
fn save_until(done: &AtomicBool, address: &Address) -> Result<()> {
    let mut control = Control::connect(address)?;
    loop {
        let mut waited = Duration::ZERO;
        while waited < FLUSH_EVERY && !done.load(Ordering::Acquire) {
            thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        // Refused while one is under way: then there is no need of another.
        control.ask(&[b"BGSAVE"])?;
        if done.load(Ordering::Acquire) {
            return Ok(());
        }
    }
}

impl Behind {
    /// What INFO says once the first flush is through, if it is within a while.
    fn wait(control: &mut Control) -> Result<Self> {
        let began = Instant::now();
        loop {
            let behind = Self::read(control)?;
            if behind.flushes > 0.0 || behind.rolls.is_none() || began.elapsed() > FLUSH_WAIT {
                return Ok(behind);
            }
            thread::sleep(LOOK_EVERY);
        }
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
