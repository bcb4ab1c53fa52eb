//! A server without `--cluster` takes its log from whoever has it: from a server of its kind that may
//! be dead, as a start after a crash must, but never from nodes that live.
//!
//! Tested by `tests/living.rs` of the cluster, and by `tests/clients/test_cluster.py` with brokers.

use super::tablet::{self, Home, patiently};
use crate::state::{Settings, Stop};
use latewood_cluster::kafka::KafkaError;
use latewood_cluster::living::living;
use latewood_cluster::tablet::Place;

/// As [`tablet::find`], of a log on which no node lives.
///
/// # Errors
/// Its own, and which node lives there.
pub(super) fn find(settings: &Settings) -> Result<(Home, Place), Stop> {
    let (home, place) = tablet::find(settings)?;
    let is_temporary = |error: &KafkaError| {
        matches!(
            error,
            KafkaError::Unavailable(_) | KafkaError::Unknown(_) | KafkaError::OutOfRange { .. }
        )
    };
    let look = || living(&*place.kafka, &place.partition, &*place.env.clock);
    let living = patiently(
        "cannot see whether nodes live on the log",
        look,
        is_temporary,
    )?;
    let Some(node) = living else {
        return Ok((home, place));
    };
    Err(Stop::NotOpened(format!(
        "the node at {} lives on this log, and a server without --cluster on would take the log from \
         its owner. Nothing was changed. Start this server with --cluster on, or stop all nodes first",
        node.addresses.redis
    )))
}
