//! The parameters of CONFIG about other protocols than Redis', by the names of
//! their flags. They are set at start.

use super::parameters::{Parameter, fixed};

/// The parameters of this file.
pub(super) const PARAMETERS: &[Parameter] = &[
    fixed("sender-duplicate-policy", |shared| {
        let senders = &shared.settings.senders;
        senders.duplicate_policy.name().to_owned()
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
];
