//! What all measurements over the wire ask of a server: its time, its rest, its end of work.

use std::time::{Duration, Instant};

use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::measure::quiet::{self, Look};
use crate::measure::watch::LOOK_EVERY;
use crate::server::{Info, Latewood, Process, Ready, Target};

/// How long it must rest: several times as long as its threads wait between two looks for work.
const QUIET_FOR: Duration = Duration::from_secs(2);

/// A Latewood of our own, and a connection to it.
pub(crate) struct Wired {
    pub(crate) process: Process,
    pub(crate) control: Control,
}

impl Wired {
    /// Starts it with an empty directory.
    pub(crate) fn start(latewood: &Latewood) -> Result<Self> {
        let process = latewood.start()?;
        Ok(Wired {
            control: Control::connect(process.address())?,
            process,
        })
    }
}

/// Has a target answer; tells the report how it runs.
pub(crate) fn ready(target: &Target) -> Result<(Ready, Info)> {
    let ready = target.ready()?;
    let info = Info {
        name: target.name(),
        version: Control::connect(&ready.address)?.version()?,
        settings: ready.settings.clone(),
    };
    Ok((ready, info))
}

/// Processor seconds the server has used since its start, all threads.
pub(crate) fn cpu_seconds(control: &mut Control) -> Result<f64> {
    let info = control.info("cpu")?;
    Ok(info.required("used_cpu_user")? + info.required("used_cpu_sys")?)
}

/// Waits until staged late samples are merged, on servers that stage them; whether it is one.
pub(crate) fn settle(control: &mut Control) -> Result<bool> {
    let info = control.info("latewood")?;
    let stages = info.number("late_samples_pending").is_some();
    if stages {
        control.run("LATEWOOD SETTLE").map(|_| true)
    } else {
        Ok(false)
    }
}

/// Waits until late samples are merged and everything is moved to disk.
pub(crate) fn drain(control: &mut Control) -> Result<()> {
    control.run("LATEWOOD SETTLE")?;
    control.run("SAVE").map(drop)
}

/// Waits until the server rests; when it came to that, counted from `began`.
pub(crate) fn rest(control: &mut Control, began: Instant) -> Result<Look> {
    let mut look = || {
        let cpu_seconds = cpu_seconds(control)?;
        Ok(Look {
            at: began.elapsed(),
            cpu_seconds,
        })
    };
    let first = look()?;
    quiet::since(first, QUIET_FOR, || {
        std::thread::sleep(LOOK_EVERY);
        look()
    })
}

/// Fails where not as many samples or series are held as were sent.
pub(crate) fn all_held(held: u64, sent: u64) -> Result<()> {
    if held == sent {
        Ok(())
    } else {
        Err(Error::new(format!("{held} held, {sent} sent")))
    }
}
