//! The parameters of CONFIG about other protocols than Redis' and the log, by
//! the names of their flags. They are set at start.

use super::parameters::{Parameter, fixed};

/// The parameters of this file.
pub(super) const PARAMETERS: &[Parameter] = &[
    fixed("sender-duplicate-policy", |shared| {
        let senders = &shared.settings.senders;
        senders.duplicate_policy.name().to_owned()
    }),
    fixed("log-format", |shared| {
        shared.settings.log_format.name().to_owned()
    }),
    fixed("http", |shared| {
        let address = shared.settings.senders.http.address();
        address.unwrap_or("off").to_owned()
    }),
    fixed("influx-db-label", |shared| {
        let label = shared.settings.senders.influx_db_label.clone();
        label.unwrap_or_default()
    }),
    fixed("future-limit", |shared| {
        shared.settings.senders.future_limit_ms.to_string()
    }),
    fixed("opentsdb", |shared| {
        shared.settings.senders.opentsdb.clone().unwrap_or_default()
    }),
    fixed("akumuli", |shared| {
        shared.settings.senders.akumuli.clone().unwrap_or_default()
    }),
    fixed("influx-tcp", |shared| {
        let address = &shared.settings.senders.influx_tcp;
        address.clone().unwrap_or_default()
    }),
    fixed("influx-udp", |shared| {
        let address = &shared.settings.senders.influx_udp;
        address.clone().unwrap_or_default()
    }),
    fixed("influx-precision", |shared| {
        let precision = shared.settings.senders.influx_precision;
        precision.name().to_owned()
    }),
];
