//! The parameters of CONFIG that say what is observed: the slow log, the
//! watch on delays, the histograms of durations, the stages of a write.

use super::parameters::{Change, Parameter, Set, settable, yes_or_no};
use std::sync::atomic::Ordering;

/// The longest slow log: an entry can take 10 KiB.
const SLOWLOG_LEN_MAX: i64 = 10_000;
/// The rarest sampling; more would hardly time anything.
const STAGE_SAMPLING_MAX: i64 = 1_000_000;

pub(super) const PARAMETERS: &[Parameter] = &[
    settable(
        "slowlog-log-slower-than",
        |shared| {
            shared
                .observe
                .slowlog
                .slower_than_us
                .load(Ordering::Relaxed)
                .to_string()
        },
        Set::Number(-1, i64::MAX, |shared, us| {
            let cell = &shared.observe.slowlog.slower_than_us;
            cell.store(us, Ordering::Relaxed);
        }),
    ),
    settable(
        "slowlog-max-len",
        |shared| {
            shared
                .observe
                .slowlog
                .len_max
                .load(Ordering::Relaxed)
                .to_string()
        },
        Set::Number(0, SLOWLOG_LEN_MAX, |shared, len| {
            shared.observe.slowlog.set_len_max(len.unsigned_abs());
        }),
    ),
    settable(
        "latency-monitor-threshold",
        |shared| {
            shared
                .observe
                .latency
                .threshold_ms
                .load(Ordering::Relaxed)
                .to_string()
        },
        Set::Number(0, i64::MAX, |shared, ms| {
            let cell = &shared.observe.latency.threshold_ms;
            cell.store(ms.unsigned_abs(), Ordering::Relaxed);
        }),
    ),
    settable(
        "latency-tracking",
        |shared| yes_or_no(shared.observe.tracks_durations.load(Ordering::Relaxed)),
        Set::YesNo(|shared, is_on| {
            let cell = &shared.observe.tracks_durations;
            cell.store(is_on, Ordering::Relaxed);
        }),
    ),
    settable(
        "latency-tracking-info-percentiles",
        |shared| {
            let percentiles = shared.observe.percentiles.read();
            let texts: Vec<String> = percentiles.iter().map(f64::to_string).collect();
            texts.join(" ")
        },
        Set::Text(set_percentiles),
    ),
    settable(
        "stage-sampling",
        |shared| shared.db.stages().sampling().to_string(),
        // At most a million, which fits.
        Set::Number(0, STAGE_SAMPLING_MAX, |shared, every| {
            shared.db.stages().set_sampling(every as u32);
        }),
    ),
];

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
