//! How much memory the database and one of its series hold.
//!
//! The figures are sums of actual sizes, not estimates: capacities of vectors
//! and tables, lengths of keys and labels. A sum over all series takes time
//! linear in their number, so it is cached and recomputed only when its age is a
//! hundred times the time it took: frequent calls cost at most one hundredth of a
//! core. The memory budget ([`crate::keyspace::memory_budget`]) keeps its own
//! counts.

use crate::base::error::Result;
use crate::db::Db;
use crate::series::Memory;
use parking_lot::Mutex;

/// A cached sum is valid for this many times the time it took to compute.
const AGE_PER_COST: u64 = 100;

/// Bytes of memory of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbMemory {
    /// All series.
    pub series: Memory,
    /// The key map, without the keys.
    pub key_map_bytes: usize,
    /// The label index.
    pub index_bytes: usize,
    /// What is in memory of parked series beside their labels: which there are, where their rows
    /// are, and rows that were read lately.
    pub parked_bytes: usize,
    /// Buffers of log groups that are not yet appended.
    pub log_buffer_bytes: usize,
    /// Roots of open blocks, and what was read from blocks lately, also by the
    /// databases that share [`crate::Resources`].
    pub block_bytes: usize,
    /// Metadata of metrics.
    pub metadata_bytes: usize,
}

impl DbMemory {
    /// The sum of all parts.
    pub fn total_bytes(&self) -> usize {
        self.series.total_bytes()
            + self.key_map_bytes
            + self.index_bytes
            + self.parked_bytes
            + self.log_buffer_bytes
            + self.block_bytes
            + self.metadata_bytes
    }
}

/// Sums over all series, and over what many of them share.
#[derive(Clone, Copy, Debug)]
struct Sums {
    series: Memory,
    index_bytes: usize,
    parked_bytes: usize,
}

/// The cached sums.
#[derive(Debug, Default)]
pub(crate) struct KeptMemory(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    sums: Sums,
    made_ns: u64,
    cost_ns: u64,
}

impl Db {
    /// Bytes of memory of the whole database. The figures for the series and for
    /// the label index may be cached, for up to a hundred times the time it takes
    /// to compute them, which is some tenths of a second for a million series.
    /// No writer waits for the computation.
    pub fn memory(&self) -> DbMemory {
        let core = &self.core;
        let shards = core.shards.iter();
        let sums = self.summed_memory();
        DbMemory {
            series: sums.series,
            key_map_bytes: core.keys.memory_bytes(),
            index_bytes: sums.index_bytes,
            parked_bytes: sums.parked_bytes,
            log_buffer_bytes: shards.map(|shard| shard.lock().group.memory_bytes()).sum(),
            block_bytes: core.store.blocks.get().memory_bytes()
                + core.store.cache.held_bytes() as usize,
            metadata_bytes: core.metadata.memory_bytes(),
        }
    }

    /// Bytes of memory that the series under `key` accounts for: its own memory
    /// and an equal share of the key map and of the label index.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn memory_of(&self, key: &[u8]) -> Result<usize> {
        let own = self.read(key, |series| series.memory())?;
        let of_map = self.core.keys.bytes_of_one();
        let of_index = self.summed_memory().index_bytes / self.core.series_count().max(1);
        Ok(own.total_bytes() + of_map + of_index)
    }
}

impl KeptMemory {
    /// Drops the cached sum; the next call recomputes it.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}

impl Db {
    fn summed_memory(&self) -> Sums {
        // A thread that finds the lock taken waits for the sum being computed.
        let mut kept = self.kept_memory.0.lock();
        let begun_ns = self.core.env.clock.monotonic_ns();
        if let Some(kept) = &*kept
            && begun_ns.saturating_sub(kept.made_ns) < kept.cost_ns.saturating_mul(AGE_PER_COST)
        {
            return kept.sums;
        }
        let sums = Sums {
            series: self.sum_series(),
            index_bytes: self.core.index.memory_bytes(),
            parked_bytes: self.core.parked_bytes(),
        };
        let made_ns = self.core.env.clock.monotonic_ns();
        *kept = Some(Kept {
            sums,
            made_ns,
            cost_ns: made_ns.saturating_sub(begun_ns),
        });
        sums
    }

    /// A few series at a time, so that no writer waits long for their shard.
    fn sum_series(&self) -> Memory {
        let mut sum = Memory::default();
        for shard in &self.core.shards {
            let mut page = 0;
            // awake: what is in memory of the parked ones is counted apart.
            while let Some((next, series)) = shard.lock().slab.page_from(page) {
                series.for_each(|series| sum += series.memory());
                page = next;
            }
        }
        sum
    }
}
