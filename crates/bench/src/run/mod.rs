//! The measurements, one file for each family of reports.

pub(crate) mod all;
pub(crate) mod durable;
pub(crate) mod fleet;
pub(crate) mod generate;
pub(crate) mod inprocess;
pub(crate) mod late;
pub(crate) mod lines;
pub(crate) mod mixed;
pub(crate) mod new;
pub(crate) mod promql;
pub(crate) mod query;
pub(crate) mod remote;
pub(crate) mod senders;
pub(crate) mod size;
pub(crate) mod soak;
pub(crate) mod stages;

mod beside;
mod digest;
mod options;
pub(crate) mod report;
