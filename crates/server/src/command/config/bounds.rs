//! The parameters of CONFIG that bound memory, disk, log and series, by the
//! names of their flags.

use super::parameters::{Change, Parameter, settable};
use crate::base::age::Age;
use crate::base::ranges::{DISK_BUDGET, FLUSH_AGE, LOG_MAX, MEMORY, RETENTION, Range, SERIES};
use crate::base::size::Size;

/// The parameters of this file.
pub(super) const PARAMETERS: &[Parameter] = &[
    settable(
        "maxmemory",
        |shared| shared.db.memory_limit().to_string(),
        set_memory,
    ),
    settable(
        "memory",
        |shared| shared.db.memory_limit().to_string(),
        set_memory,
    ),
    settable(
        "flush-age",
        |shared| (shared.db.flush_age_ms() / 1000).to_string(),
        set_flush_age,
    ),
    settable(
        "log-max",
        |shared| shared.db.log_bytes_max().to_string(),
        set_log_max,
    ),
    settable(
        "retention",
        |shared| shared.db.retention_ms().to_string(),
        set_retention,
    ),
    settable(
        "disk-budget",
        |shared| shared.db.disk_budget().to_string(),
        set_disk_budget,
    ),
    settable(
        "max-series",
        |shared| shared.db.series_max().to_string(),
        set_series_max,
    ),
    settable(
        "max-query-series",
        |shared| shared.db.query_series_max().to_string(),
        set_query_series_max,
    ),
];

fn bytes(text: &str, range: Range) -> Result<u64, String> {
    let bytes: Result<Size, _> = text.parse();
    let Size(bytes) = bytes.map_err(|_| "argument must be a memory value".to_owned())?;
    range.check(bytes)
}

fn number(text: &str, range: Range) -> Result<u64, String> {
    let number = text.parse();
    range.check(number.map_err(|_| "argument couldn't be parsed into an integer")?)
}

fn set_memory(text: &str) -> Result<Change, String> {
    let bytes = bytes(text, MEMORY)?;
    Ok(Box::new(move |shared| {
        shared.db.set_memory_limit(bytes);
        Ok(())
    }))
}

fn set_flush_age(text: &str) -> Result<Change, String> {
    let seconds = number(text, FLUSH_AGE)?;
    Ok(Box::new(move |shared| {
        shared.db.set_flush_age_ms(seconds * 1000);
        Ok(())
    }))
}

fn set_log_max(text: &str) -> Result<Change, String> {
    let bytes = bytes(text, LOG_MAX)?;
    Ok(Box::new(move |shared| {
        shared.db.set_log_bytes_max(bytes);
        Ok(())
    }))
}

fn set_retention(text: &str) -> Result<Change, String> {
    let Age(milliseconds) = text.parse()?;
    let milliseconds = RETENTION.check(milliseconds)?;
    Ok(Box::new(move |shared| {
        Ok(shared.db.set_retention_ms(milliseconds)?)
    }))
}

fn set_disk_budget(text: &str) -> Result<Change, String> {
    let bytes = bytes(text, DISK_BUDGET)?;
    Ok(Box::new(move |shared| {
        Ok(shared.db.set_disk_budget(bytes)?)
    }))
}

fn set_series_max(text: &str) -> Result<Change, String> {
    let series = number(text, SERIES)?;
    Ok(Box::new(move |shared| {
        shared.db.set_series_max(series);
        Ok(())
    }))
}

fn set_query_series_max(text: &str) -> Result<Change, String> {
    let series = number(text, SERIES)?;
    Ok(Box::new(move |shared| {
        shared.db.set_query_series_max(series);
        Ok(())
    }))
}
