//! The settings of protocols other than Redis'.

use crate::cli::ServeOptions;
use crate::config::{ConfigError, duplicate_policy, ranged, value};
use crate::ranges;
use latewood_model::DuplicatePolicy;
use latewood_wire::influx::Precision;

/// How what comes by other protocols is taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Senders {
    /// Where HTTP is served.
    pub(crate) http: Http,
    /// The label that the database or bucket of InfluxDB's senders becomes.
    pub(crate) influx_db_label: Option<String>,
    /// Policy of the series they create.
    pub(crate) duplicate_policy: DuplicatePolicy,
    /// Milliseconds a timestamp may be ahead of the clock; 0 is no limit.
    pub(crate) future_limit_ms: u64,
    /// Where OpenTSDB's telnet protocol is spoken.
    pub(crate) opentsdb: Option<String>,
    /// Where Akumuli's native protocol is spoken.
    pub(crate) akumuli: Option<String>,
    /// Where InfluxDB line protocol is taken from connections.
    pub(crate) influx_tcp: Option<String>,
    /// Where it is taken from datagrams.
    pub(crate) influx_udp: Option<String>,
    /// The unit of the timestamps at these two.
    pub(crate) influx_precision: Precision,
}

/// A day: further ahead is no clock, it is seconds taken for milliseconds or
/// something of the kind.
const FUTURE_LIMIT_MS: u64 = 86_400_000;

/// InfluxDB's port.
const HTTP: &str = "127.0.0.1:8086";

/// Where HTTP is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    /// At its usual address, if that is free.
    Default,
    /// At this address.
    At(String),
    /// Nowhere.
    Off,
}

impl Http {
    /// The address to bind.
    pub(crate) fn address(&self) -> Option<&str> {
        match self {
            Self::Default => Some(HTTP),
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl Senders {
    /// Fills what the options leave open.
    ///
    /// # Errors
    /// A value out of its range.
    pub(crate) fn resolve(options: &ServeOptions) -> Result<Self, ConfigError> {
        let policy = options.sender_duplicate_policy.as_deref().unwrap_or("last");
        let duplicate_policy = duplicate_policy("sender-duplicate-policy", policy)?;
        Ok(Self {
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
