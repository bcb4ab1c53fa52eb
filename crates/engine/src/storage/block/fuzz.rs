//! The code under the fuzz target `block`: reads any bytes as a block.
//!
//! Checksums are not verified in a fuzz build, so that the fuzzer reaches the code
//! after them.

use crate::base::error::Result;
use crate::io::Disk;
use crate::io::sim::SimDisk;
use crate::storage::block::{Block, BlockSet, Cache, Entry, Family, Overlay, PartitionBlocks};
use latewood_model::{SeriesId, Timestamp};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Reads `bytes` in every way a block is read. Nothing panics; and if the block is
/// valid, lookups find the same entries as a walk over all of it.
pub(crate) fn read_any(bytes: &[u8]) -> Result<()> {
    let disk = SimDisk::new();
    let path = Path::new("/block");
    let written = disk
        .create_dir_all(Path::new("/"))
        .and_then(|()| disk.create(path, 0))
        .and_then(|file| file.write_at(bytes, 0));
    assert!(written.is_ok(), "a disk without faults");
    let block = Arc::new(Block::open_any(&disk.env(0), path, &Cache::new(1 << 16))?);
    let verified = block.verify();
    let mut found: BTreeMap<SeriesId, Vec<Entry>> = BTreeMap::new();
    let mut scan = block.scan();
    let walked = loop {
        match scan.advance() {
            Ok(Some(entry)) => found.entry(entry.id).or_default().push(entry),
            end => break end,
        }
    };
    let set = set_of(&block);
    for (&id, entries) in &found {
        let middle = entries[entries.len() / 2];
        for (from, to) in [
            (Timestamp::MIN, Timestamp::MAX),
            (middle.first, middle.first),
            (middle.last, middle.last),
        ] {
            let layers = set.layers(id, from, to);
            let Ok(layers) = layers else {
                assert!(verified.is_err(), "what was verified can be read");
                continue;
            };
            for stored in &layers.base {
                let (once, again) = (stored.load(), stored.load_cached());
                assert_eq!(once.is_ok(), again.is_ok());
            }
            let overlays = layers.overlays.iter().map(|overlay| match overlay {
                Overlay::Delete(from, to) => (*from, *to),
                Overlay::Ops(stored) => (stored.entry.first, stored.entry.last),
            });
            let base = layers.base.iter().map(|stored| stored.entry);
            let spans: Vec<_> = base.map(|entry| (entry.first, entry.last)).collect();
            let spans: Vec<_> = spans.into_iter().chain(overlays).collect();
            let touching = entries.iter().filter(|entry| entry.touches(from, to));
            let expected: Vec<_> = touching.map(|entry| (entry.first, entry.last)).collect();
            assert!(verified.is_err() || spans == expected);
        }
    }
    walked.and(verified)
}

fn set_of(block: &Arc<Block>) -> BlockSet {
    let mut blocks = PartitionBlocks::default();
    match block.meta().family {
        Family::Base => blocks.base.push(block.clone()),
        Family::Late => blocks.late.push(block.clone()),
    }
    BlockSet {
        partitions: BTreeMap::from([(block.meta().partition, blocks)]),
        ..BlockSet::default()
    }
}
