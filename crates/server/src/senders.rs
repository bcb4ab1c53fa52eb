//! The settings of protocols other than Redis'.

use crate::cli::ServeOptions;
use crate::config::{ConfigError, ranged, value};
use crate::ranges;
use latewood_model::DuplicatePolicy;

/// How what comes by other protocols is taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Senders {
    /// Policy of the series they create.
    pub(crate) duplicate_policy: DuplicatePolicy,
    /// Milliseconds a timestamp may be ahead of the clock; 0 is no limit.
    pub(crate) future_limit_ms: u64,
    /// Where OpenTSDB's telnet protocol is spoken.
    pub(crate) opentsdb: Option<String>,
    /// Where Akumuli's native protocol is spoken.
    pub(crate) akumuli: Option<String>,
}

/// A day: further ahead is no clock, it is seconds taken for milliseconds or
/// something of the kind.
const FUTURE_LIMIT_MS: u64 = 86_400_000;

impl Senders {
    /// Fills what the options leave open.
    ///
    /// # Errors
    /// A value out of its range.
    pub(crate) fn resolve(options: &ServeOptions) -> Result<Self, ConfigError> {
        let policy = options.sender_duplicate_policy.as_deref().unwrap_or("last");
        let duplicate_policy = DuplicatePolicy::parse(policy.as_bytes()).ok_or_else(|| {
            let reason = format!("there is no duplicate policy {policy:?}");
            value("sender-duplicate-policy", reason)
        })?;
        Ok(Self {
            duplicate_policy,
            future_limit_ms: ranged(
                "future-limit",
                options.future_limit.map(|age| age.0),
                FUTURE_LIMIT_MS,
                ranges::FUTURE_LIMIT,
            )?,
            opentsdb: options
                .opentsdb
                .clone()
                .filter(|address| !address.is_empty()),
            akumuli: options
                .akumuli
                .clone()
                .filter(|address| !address.is_empty()),
        })
    }
}
