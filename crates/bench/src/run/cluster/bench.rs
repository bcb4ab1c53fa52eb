//! What the parts of the cluster report share: brokers, and how much is measured.

use crate::run::prelude::*;
use crate::server::{Brokers, Nodes};

/// Nodes of a cluster.
pub(super) const NODES: usize = 3;

/// Brokers, and the options of the report.
pub(super) struct Bench {
    pub(super) brokers: Brokers,
    pub(super) seed: u64,
    pub(super) tries: usize,
    pub(super) stall_seconds: u64,
    pub(super) checkpoints: usize,
    /// Samples between two checkpoints.
    pub(super) between: u64,
    /// Samples a second of paced writers.
    pub(super) rate: f64,
    pub(super) paced_seconds: f64,
    /// Those of writers that are not paced.
    pub(super) samples: u64,
    pub(super) reads: usize,
    pub(super) asked_seconds: f64,
}

impl Bench {
    /// So many nodes of a new log.
    pub(super) fn nodes(&self, log: &str, count: usize, report: &mut Report) -> Result<Nodes> {
        let mut nodes = Nodes::start(self.brokers.make_log(log)?)?;
        nodes.resize(count)?;
        report.note(&nodes.info()?);
        Ok(nodes)
    }
}
