//! The parameters of CONFIG that say what is observed: the slow log, the
//! watch on delays, the histograms of durations, the stages of a write.

use super::parameters::{Change, Parameter, integer, settable, yes_no, yes_or_no};
use std::sync::atomic::Ordering;

/// The parameters of this file.
pub(super) const PARAMETERS: &[Parameter] = &[
    settable(
        "slowlog-log-slower-than",
        |shared| {
            let slowlog = &shared.observe.slowlog;
            slowlog.slower_than_us.load(Ordering::Relaxed).to_string()
        },
        set_slower_than,
    ),
    settable(
        "slowlog-max-len",
        |shared| {
            let slowlog = &shared.observe.slowlog;
            slowlog.len_max.load(Ordering::Relaxed).to_string()
        },
        set_slowlog_len,
    ),
    settable(
        "latency-monitor-threshold",
        |shared| {
            let latency = &shared.observe.latency;
            latency.threshold_ms.load(Ordering::Relaxed).to_string()
        },
        set_threshold,
    ),
    settable(
        "latency-tracking",
        |shared| yes_or_no(shared.observe.tracks_durations.load(Ordering::Relaxed)),
        set_tracking,
    ),
    settable(
        "latency-tracking-info-percentiles",
        |shared| {
            let percentiles = shared.observe.percentiles.read();
            let texts: Vec<String> = percentiles.iter().map(f64::to_string).collect();
            texts.join(" ")
        },
        set_percentiles,
    ),
    settable(
        "stage-sampling",
        |shared| shared.db.stages().sampling().to_string(),
        set_stage_sampling,
    ),
];

fn set_slower_than(text: &str) -> Result<Change, String> {
    let us = integer(text, -1, i64::MAX)?;
    Ok(Box::new(move |shared| {
        let cell = &shared.observe.slowlog.slower_than_us;
        cell.store(us, Ordering::Relaxed);
    }))
}

/// The longest slow log: an entry can take 10 KiB.
const SLOWLOG_LEN_MAX: i64 = 10_000;

fn set_slowlog_len(text: &str) -> Result<Change, String> {
    let len = integer(text, 0, SLOWLOG_LEN_MAX)?.unsigned_abs();
    Ok(Box::new(move |shared| {
        shared.observe.slowlog.set_len_max(len);
    }))
}

fn set_threshold(text: &str) -> Result<Change, String> {
    let ms = integer(text, 0, i64::MAX)?.unsigned_abs();
    Ok(Box::new(move |shared| {
        let cell = &shared.observe.latency.threshold_ms;
        cell.store(ms, Ordering::Relaxed);
    }))
}

fn set_tracking(text: &str) -> Result<Change, String> {
    let on = yes_no(text)?;
    Ok(Box::new(move |shared| {
        let cell = &shared.observe.tracks_durations;
        cell.store(on, Ordering::Relaxed);
    }))
}

/// The rarest sampling; more would hardly time anything.
const STAGE_SAMPLING_MAX: i64 = 1_000_000;

fn set_stage_sampling(text: &str) -> Result<Change, String> {
    let every = integer(text, 0, STAGE_SAMPLING_MAX)?.unsigned_abs();
    Ok(Box::new(move |shared| {
        // At most a million, which fits.
        shared.db.stages().set_sampling(every as u32);
    }))
}

/// Percentiles a client may ask for at a time.
const PERCENTILES_MAX: usize = 64;

fn set_percentiles(text: &str) -> Result<Change, String> {
    let name = "latency-tracking-info-percentiles";
    let parsed: Result<Vec<f64>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    let percentiles = parsed.map_err(|_| format!("Invalid {name} parameters"))?;
    if !percentiles.iter().all(|p| (0.0..=100.0).contains(p)) {
        return Err(format!("{name} parameters should sit between [0.0,100.0]"));
    }
    if percentiles.len() > PERCENTILES_MAX {
        return Err(format!("{name} takes at most {PERCENTILES_MAX} numbers"));
    }
    Ok(Box::new(move |shared| {
        *shared.observe.percentiles.write() = percentiles;
    }))
}
