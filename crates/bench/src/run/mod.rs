//! The measurements, one file for each family of reports, as data.

pub(crate) mod generate;
pub(crate) mod options;
pub(crate) mod report;

mod ask;
mod cluster;
mod durable;
mod fleet;
mod inprocess;
mod late;
mod lines;
mod mixed;
mod new;
mod prelude;
mod promql;
mod query;
mod remote;
mod senders;
mod size;
mod soak;
mod stages;

/// All of them.
pub(crate) const MODES: [options::Mode; 17] = [
    late::MODE,
    lines::MODE,
    senders::MODE,
    durable::MODE,
    remote::MODE,
    cluster::MODE,
    fleet::RECOVER,
    query::MODE,
    promql::MODE,
    inprocess::MODE,
    new::MODE,
    fleet::MODE,
    fleet::WEAR,
    mixed::MODE,
    size::MODE,
    soak::MODE,
    stages::MODE,
];
