//! Figures that several reports give: INFO, `/metrics`, `/health` and `/api/v1/status/server`.
//!
//! Tested through them.

use super::shared::Shared;
use crate::observe::Limit;
use latewood_engine::{DbMemory, Tallied};
use std::sync::atomic::Ordering;

/// Connections of one listener.
pub(crate) struct ListenerFigures {
    pub(crate) name: &'static str,
    /// Open at this moment.
    pub(crate) open: u64,
    /// Accepted since the start.
    pub(crate) accepted: u64,
    /// Refused by a limit or by protected mode.
    pub(crate) rejected: Tallied,
}

impl Shared {
    /// Requests refused for a limit of their own, by its name.
    pub(crate) fn refused_by_limit(&self) -> [(&'static str, Tallied); 7] {
        let (engine, server) = (self.db.shown().refused(), &self.observe.refused);
        [
            ("series", engine.series),
            ("keys", engine.keys),
            ("labels", server.get(Limit::Labels)),
            ("times", server.get(Limit::Time)),
            ("queries", engine.queries),
            ("replies", server.get(Limit::Reply)),
            ("clients", server.get(Limit::Clients)),
        ]
    }

    pub(crate) fn connections_by_listener(&self) -> Vec<ListenerFigures> {
        let redis = ListenerFigures {
            name: "redis",
            open: self.clients.count() as u64,
            accepted: self.counters.connections.load(Ordering::Relaxed),
            rejected: self.counters.connections_rejected.get(),
        };
        let others = [("http", &self.protocols.http)].into_iter();
        let others = others.chain(self.protocols.lines.all());
        let others = others.map(|(name, listener)| ListenerFigures {
            name,
            open: listener.open.load(Ordering::Relaxed),
            accepted: listener.accepted.load(Ordering::Relaxed),
            rejected: listener.rejected.get(),
        });
        std::iter::once(redis).chain(others).collect()
    }

    /// Bytes of memory by what they hold.
    pub(crate) fn memory_by_part(&self, memory: &DbMemory) -> [(&'static str, usize); 12] {
        [
            ("tails", memory.series.tail_bytes),
            ("chunks", memory.series.chunk_bytes),
            ("late", memory.series.late_bytes),
            ("series", memory.series.other_bytes),
            ("key_map", memory.key_map_bytes),
            ("index", memory.index_bytes),
            ("parked", memory.parked_bytes),
            ("log_buffers", memory.log_buffer_bytes),
            ("blocks", memory.block_bytes),
            ("metadata", memory.metadata_bytes),
            ("senders", self.protocols.remembered.len_bytes()),
            ("lateness", self.observe.lateness.len_bytes()),
        ]
    }

    /// How old the answers of this node would be, if that is why it gives none.
    fn behind(&self) -> Option<String> {
        let node = self.node.get()?;
        let (behind, most) = (node.behind()?, node.staleness_max());
        (behind > most).then(|| {
            let (behind_s, most_s) = (behind.as_secs_f64(), most.as_secs_f64());
            format!("this node is {behind_s:.1} s behind, at most {most_s} s are allowed")
        })
    }

    /// Why requests are not taken, if they are not: a follower that is fresh takes reads, and
    /// passes writes on.
    pub(crate) fn unready(&self) -> Option<String> {
        if self.db.is_loading() {
            return Some("the database is loading".to_owned());
        }
        match self.takes_writes() {
            Ok(()) => {}
            Err(to) => {
                let behind = self.behind();
                let reason =
                    |_| behind.map_or_else(|| to.to_string(), |why| format!("{why}; {to}"));
                return self.takes_reads(true).err().map(reason);
            }
        }
        if self.node.get().is_some()
            && let Some(lease) = self.lease.get()
            && !lease.covers(lease.now_ns())
        {
            return Some("Kafka did not confirm lately that this node owns the log".to_owned());
        }
        match self.db.stats().halted {
            Some(reason) => Some(format!("writes have stopped: {reason}")),
            None if self.db.is_out_of_memory() => {
                Some("writes are refused: the memory budget is exhausted".to_owned())
            }
            None => None,
        }
    }
}
