//! A look into the indexes of a partition's blocks: what is of use in each,
//! and what lies over it. Reads no samples.

use crate::background::merge::cursor::{Cursor, next_id};
use crate::background::merge::living::Living;
use crate::background::merge::plan::{BaseShare, BlockUsage, LateShare};
use crate::background::merge::regions::{Region, regions};
use crate::background::merge::rewrite::first_of;
use crate::base::error::Result;
use crate::series::spans::Spans;
use crate::storage::block::{Block, Entry, Kind};
use latewood_model::{SeriesId, Timestamp};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are looked at as one when outputs are cut by time.
const GRAIN_BYTES: u64 = 4096;

/// Looks at all base and late blocks of a partition.
///
/// # Errors
/// `Io` and `Corrupt` where an index cannot be read.
pub(crate) fn usage(
    base: &[Arc<Block>],
    late: &[Arc<Block>],
    living: &Living,
) -> Result<BlockUsage> {
    let mut usage = BlockUsage {
        base: vec![BaseShare::default(); base.len()],
        late: vec![LateShare::default(); late.len()],
        ..BlockUsage::default()
    };
    let mut deleted = BTreeMap::new();
    look_over(base, late, living, &mut usage, &mut deleted)?;
    for (block, share) in base.iter().zip(&mut usage.base) {
        let mut scan = block.scan();
        while let Some(entry) = scan.advance()? {
            let bytes = u64::from(entry.len_bytes);
            let is_deleted = |spans: &Spans| spans.covers_all(entry.first, entry.last);
            match living.get(entry.id) {
                Some(facts) if entry.last < facts.floor => share.dead_bytes += bytes,
                None => share.dead_bytes += bytes,
                _ if deleted.get(&entry.id).is_some_and(is_deleted) => share.deleted_bytes += bytes,
                _ => share.live_bytes += bytes,
            }
        }
    }
    Ok(usage)
}

/// Looks at the late blocks: what lies over which base block.
fn look_over(
    base: &[Arc<Block>],
    late: &[Arc<Block>],
    living: &Living,
    usage: &mut BlockUsage,
    deleted: &mut BTreeMap<SeriesId, Spans>,
) -> Result<()> {
    let cursors: Result<Vec<Cursor>> = late.iter().map(Cursor::new).collect();
    let mut cursors = cursors?;
    while let Some(id) = next_id(&cursors) {
        let facts = living.get(id);
        let mut of_series = None;
        for (cursor, share) in cursors.iter_mut().zip(&mut usage.late) {
            for entry in cursor.take(id)? {
                let bytes = u64::from(entry.len_bytes);
                if facts.is_none_or(|facts| entry.last < facts.floor) {
                    share.dead_bytes += bytes;
                    continue;
                }
                share.live_bytes += bytes;
                share.live_entries += 1;
                let regions = match &of_series {
                    Some(regions) => regions,
                    None => &*of_series.insert(regions_of(base, id)?),
                };
                if entry.kind == Kind::Tombstone {
                    let spans: &mut Spans = deleted.entry(id).or_default();
                    spans.add(entry.first, entry.last);
                }
                share_out(
                    &entry,
                    regions,
                    &mut usage.base,
                    (&mut usage.orphan_bytes, &mut usage.orphan_entries),
                );
            }
        }
    }
    Ok(())
}

fn regions_of(base: &[Arc<Block>], id: SeriesId) -> Result<Vec<Region>> {
    let mut firsts = Vec::new();
    for (place, block) in base.iter().enumerate() {
        firsts.extend(first_of(block, id)?.map(|first| (place, first)));
    }
    Ok(regions(&firsts))
}

/// Gives the bytes of an overlay to the blocks it lies over, in equal shares.
fn share_out(
    entry: &Entry,
    regions: &[Region],
    base: &mut [BaseShare],
    orphans: (&mut u64, &mut u64),
) {
    let bytes = u64::from(entry.len_bytes);
    let start = regions.partition_point(|region| region.to < entry.first);
    let end = regions.partition_point(|region| region.from <= entry.last);
    let Some(met) = regions.get(start..end).filter(|met| !met.is_empty()) else {
        *orphans.0 += bytes;
        *orphans.1 += 1;
        return;
    };
    for region in met {
        let share = &mut base[region.place];
        share.late_bytes += bytes / met.len() as u64;
        share.late_entries += 1;
    }
}

/// Where to cut the outputs of a stretch so that each has about `cap_bytes`,
/// by when its chunks and what lies over them begin. `over_bytes` of the late
/// blocks lie over it.
///
/// # Errors
/// `Io` and `Corrupt` where an index cannot be read.
pub(crate) fn borders(
    base: &[Arc<Block>],
    places: &Range<usize>,
    late: &[Arc<Block>],
    over_bytes: u64,
    cap_bytes: u64,
) -> Result<Vec<Timestamp>> {
    let stretch = &base[places.clone()];
    let base_bytes: u64 = stretch.iter().map(|block| block.meta().len_bytes).sum();
    let total = base_bytes + over_bytes;
    if total <= cap_bytes {
        return Ok(Vec::new());
    }
    let from = match places.start {
        0 => Timestamp::MIN,
        _ => earliest(stretch),
    };
    let to = match base.get(places.end..) {
        Some(later) if !later.is_empty() => earliest(later),
        _ => Timestamp::MAX,
    };
    let mut grains = Vec::new();
    for block in stretch {
        add_grains(block, Timestamp::MIN, Timestamp::MAX, &mut grains)?;
    }
    for block in late {
        add_grains(block, from, to, &mut grains)?;
    }
    grains.sort_unstable();
    let parts = total.div_ceil(cap_bytes);
    let sum: u64 = grains.iter().map(|(_, bytes)| bytes).sum();
    let (mut borders, mut passed) = (Vec::new(), 0);
    for (first, bytes) in grains {
        passed += bytes;
        let part = borders.len() as u64 + 1;
        if part < parts && passed > sum / parts * part {
            borders.push(first);
        }
    }
    borders.dedup();
    Ok(borders)
}

fn earliest(blocks: &[Arc<Block>]) -> Timestamp {
    let firsts = blocks.iter().map(|block| block.meta().first);
    firsts.min().unwrap_or(Timestamp::MAX)
}

/// When the bytes of a block begin, a few KiB at a time.
fn add_grains(
    block: &Arc<Block>,
    from: Timestamp,
    to: Timestamp,
    grains: &mut Vec<(Timestamp, u64)>,
) -> Result<()> {
    let (mut scan, mut bytes) = (block.scan(), 0);
    while let Some(entry) = scan.advance()? {
        if entry.kind == Kind::Tombstone || !(from..=to).contains(&entry.first) {
            continue;
        }
        bytes += u64::from(entry.len_bytes);
        if bytes >= GRAIN_BYTES {
            grains.push((entry.first, bytes));
            bytes = 0;
        }
    }
    Ok(())
}
