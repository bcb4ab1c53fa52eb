//! The settings of protocols other than Redis'.

use super::resolve::{ConfigError, duplicate_policy, ranged, value};
use super::serve::ServeOptions;
use crate::base::ranges;
use crate::state::{Http, Senders};
use latewood_wire::influx::Precision;

/// A day: further ahead is no clock, it is seconds taken for milliseconds or
/// something of the kind.
const FUTURE_LIMIT_MS: u64 = 86_400_000;

/// Fills what the options leave open.
///
/// # Errors
/// A value out of its range.
pub(crate) fn resolve(options: &ServeOptions) -> Result<Senders, ConfigError> {
    let policy = options.sender_duplicate_policy.as_deref().unwrap_or("last");
    let duplicate_policy = duplicate_policy("sender-duplicate-policy", policy)?;
    Ok(Senders {
        http: match options.http.as_deref() {
            None => Http::Default,
            Some("off" | "") => Http::Off,
            Some(address) => Http::At(address.to_owned()),
        },
        influx_db_label: options
            .influx_db_label
            .clone()
            .filter(|name| !name.is_empty()),
        duplicate_policy,
        future_limit_ms: ranged(
            "future-limit",
            options.future_limit.map(|age| age.0),
            FUTURE_LIMIT_MS,
            ranges::FUTURE_LIMIT,
        )?,
        opentsdb: address(options.opentsdb.as_ref()),
        akumuli: address(options.akumuli.as_ref()),
        influx_tcp: address(options.influx_tcp.as_ref()),
        influx_udp: address(options.influx_udp.as_ref()),
        influx_precision: precision(options.influx_precision.as_deref())?,
    })
}

/// An address that was given; an empty one is none.
fn address(given: Option<&String>) -> Option<String> {
    given.filter(|address| !address.is_empty()).cloned()
}

fn precision(given: Option<&str>) -> Result<Precision, ConfigError> {
    let name = given.unwrap_or_default();
    Precision::parse(name).ok_or_else(|| {
        let reason = format!("there is no precision {name:?}; use ns, us, ms, s, m or h");
        value("influx-precision", reason)
    })
}
