//! What to compact next, decided from what is known without reading samples.
//!
//! Three costs are held down together: bytes written per byte that came
//! (*write amplification*), blocks a read has to look into, and bytes that lie
//! in blocks without being of use. Merges are tiered: a stretch of neighbours
//! merges once their sum is several times the largest, so every rewrite of a
//! byte takes it into a file several times as long, and a byte is rewritten
//! about as often as the logarithm of the file says. Late blocks are folded
//! into the base blocks they lie over once that pays: when what is folded is at
//! least a quarter of the base bytes rewritten for it and a quarter of all late
//! bytes, so a late byte costs at most eight more in its last rewrite.
//!
//! Pure: no clock, no files. Tested by tables and by simulated histories.

use crate::storage::block::BlockMeta;
use latewood_model::Timestamp;
use std::cmp::Reverse;
use std::ops::Range;

#[cfg(test)]
mod history;
#[cfg(test)]
mod tests;

/// Late bytes, in parts of 100 of a base block, that make a fold of it pay.
const FOLD_PERCENT: u64 = 25;
/// Base blocks, in parts of the cap, after which a fold is content with half of
/// what waits, and their number after which it is with a quarter: each is read
/// through a buffer of its own.
const FOLD_CAPS: u64 = 4;
const FOLD_BLOCKS: usize = 32;
/// Late bytes below which nobody looks whether a fold pays.
const USAGE_BYTES_MIN: u64 = 4096;

/// How eager compaction is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    /// Neighbouring base blocks that merge into one, at least.
    pub(crate) base_fan: usize,
    /// The same of late blocks.
    pub(crate) late_fan: usize,
    /// No merge makes a file longer than this; a fold cuts what would be.
    pub(crate) cap_bytes: u64,
    /// Fold whatever lies over base blocks, whether it pays or not.
    pub(crate) fold_all: bool,
    /// Bytes of no use, in parts of 100, from which on a block is rewritten.
    pub(crate) garbage_percent: u64,
}

impl Bounds {
    /// For the background: what pays.
    pub(crate) fn steady(cap_bytes: u64) -> Self {
        Self {
            base_fan: 8,
            late_fan: 4,
            cap_bytes: cap_bytes.max(1),
            fold_all: false,
            garbage_percent: 50,
        }
    }

    /// For who asked: everything folded, little garbage left.
    pub(crate) fn thorough(cap_bytes: u64) -> Self {
        Self {
            base_fan: 2,
            late_fan: 2,
            fold_all: true,
            garbage_percent: 5,
            ..Self::steady(cap_bytes)
        }
    }
}

/// The blocks of a partition, in list order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists<'a> {
    pub(crate) base: &'a [BlockMeta],
    pub(crate) late: &'a [BlockMeta],
}

impl Lists<'_> {
    /// Bytes of all late blocks.
    pub(crate) fn late_bytes(&self) -> u64 {
        self.late.iter().map(|block| block.len_bytes).sum()
    }

    /// Bytes of all base blocks.
    pub(crate) fn base_bytes(&self) -> u64 {
        self.base.iter().map(|block| block.len_bytes).sum()
    }
}

/// What the indexes tell of the bytes of one base block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BaseShare {
    /// Chunks of series that are gone or of a time that is.
    pub(crate) dead_bytes: u64,
    /// Other chunks that tombstones cover.
    pub(crate) deleted_bytes: u64,
    /// Chunks still of use.
    pub(crate) live_bytes: u64,
    /// Overlays that lie over it.
    pub(crate) late_bytes: u64,
    /// Overlays and tombstones that lie over it.
    pub(crate) late_entries: u64,
}

/// The same of one late block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LateShare {
    pub(crate) dead_bytes: u64,
    pub(crate) live_bytes: u64,
    /// Entries still of use, tombstones among them.
    pub(crate) live_entries: u64,
}

/// What a look into the indexes of a partition's blocks found; as long as its
/// lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockUsage {
    pub(crate) base: Vec<BaseShare>,
    pub(crate) late: Vec<LateShare>,
    /// Overlays of series without a base chunk.
    pub(crate) orphan_bytes: u64,
    /// Overlays and tombstones of series without a base chunk.
    pub(crate) orphan_entries: u64,
}

/// What to do with a partition. Places are those in its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Forget blocks that hold nothing of use.
    Drop { base: Vec<usize>, late: Vec<usize> },
    /// Merge a stretch of base blocks, or rewrite a single one.
    MergeBase(Range<usize>),
    /// Merge a stretch of late blocks, or rewrite a single one.
    MergeLate(Range<usize>),
    /// Fold all late blocks over these stretches of base blocks into them;
    /// what lies over others becomes one late block. Where there is no base
    /// block at all the only stretch is empty.
    Fold(Vec<Range<usize>>),
}

/// Blocks that lie wholly before `floor`. Linear in the lists.
pub(crate) fn below_floor(lists: Lists<'_>, floor: Timestamp) -> Option<Job> {
    let below = |blocks: &[BlockMeta]| -> Vec<usize> {
        let places = blocks.iter().enumerate();
        let below = places.filter(|(_, block)| block.last < floor);
        below.map(|(place, _)| place).collect()
    };
    let (base, late) = (below(lists.base), below(lists.late));
    (!base.is_empty() || !late.is_empty()).then_some(Job::Drop { base, late })
}

/// Whether so much came late since a look into the indexes left
/// `late_bytes_seen` that another one may find a fold that pays.
///
/// Amortised: the look costs about a hundredth of the base bytes, and comes
/// again after late bytes of a 256th of them.
pub(crate) fn usage_due(lists: Lists<'_>, late_bytes_seen: u64) -> bool {
    let news = lists.late_bytes().saturating_sub(late_bytes_seen);
    let least = (late_bytes_seen / 4).max(lists.base_bytes() / 256);
    !lists.late.is_empty() && news >= least.max(USAGE_BYTES_MIN)
}

/// What a usage shows to pay, the cheapest first.
pub(crate) fn usage_known(lists: Lists<'_>, usage: &BlockUsage, bounds: &Bounds) -> Option<Job> {
    useless(usage)
        .or_else(|| fold(lists, usage, bounds))
        .or_else(|| wasteful(lists, usage, bounds))
}

/// What gives disk back, of what a usage shows.
pub(crate) fn garbage(lists: Lists<'_>, usage: &BlockUsage, bounds: &Bounds) -> Option<Job> {
    useless(usage).or_else(|| wasteful(lists, usage, bounds))
}

/// The merge to do next. Linear in the lists.
pub(crate) fn merge(lists: Lists<'_>, bounds: &Bounds) -> Option<Job> {
    let sizes =
        |blocks: &[BlockMeta]| -> Vec<u64> { blocks.iter().map(|block| block.len_bytes).collect() };
    let late = merge_window(&sizes(lists.late), bounds.late_fan, bounds.cap_bytes);
    if let Some(window) = late {
        return Some(Job::MergeLate(window));
    }
    merge_window(&sizes(lists.base), bounds.base_fan, bounds.cap_bytes).map(Job::MergeBase)
}

/// The stretch of neighbours to merge: of those whose sum is large enough
/// beside their largest, the one with the smallest largest.
fn merge_window(sizes: &[u64], fan: usize, cap_bytes: u64) -> Option<Range<usize>> {
    let small = sizes.iter().filter(|&&size| size < cap_bytes / 2).count();
    // Twice the ratio of sum and largest that is asked for, and the fewest
    // blocks. It is as much as `fan` equal blocks have, within a factor of two;
    // sizes that never fit together may not pile up, so it falls then.
    let (twice_growth, fewest) = match small {
        few if few < 3 * fan => (fan as u64, fan),
        few if few < 6 * fan => (3, fan),
        _ => (2, 2),
    };
    let mut best = None;
    for start in 0..sizes.len() {
        let (mut sum, mut largest) = (0u64, 0u64);
        for end in start + 1..=sizes.len().min(start + 4 * fan) {
            sum = sum.saturating_add(sizes[end - 1]);
            largest = largest.max(sizes[end - 1]);
            if sum > cap_bytes {
                break;
            }
            let pays = sum.saturating_mul(2) >= largest.saturating_mul(twice_growth);
            if end - start >= fewest && pays {
                let found = (largest, Reverse(end - start), start);
                best = best.map_or(Some(found), |best| Some(found.min(best)));
            }
        }
    }
    best.map(|(_, Reverse(len), start)| start..start + len)
}

fn useless(usage: &BlockUsage) -> Option<Job> {
    let base = usage.base.iter().enumerate();
    let base: Vec<_> = base
        .filter(|(_, share)| share.live_bytes + share.deleted_bytes == 0)
        .map(|(place, _)| place)
        .collect();
    let late = usage.late.iter().enumerate();
    let late: Vec<_> = late
        .filter(|(_, share)| share.live_entries == 0)
        .map(|(place, _)| place)
        .collect();
    (!base.is_empty() || !late.is_empty()).then_some(Job::Drop { base, late })
}

fn fold(lists: Lists<'_>, usage: &BlockUsage, bounds: &Bounds) -> Option<Job> {
    let gain = |share: &BaseShare| share.late_bytes + share.deleted_bytes;
    let entries: u64 = usage.base.iter().map(|share| share.late_entries).sum();
    if entries + usage.orphan_entries == 0 {
        return None;
    }
    if lists.base.is_empty() {
        return Some(Job::Fold(std::iter::once(0..0).collect()));
    }
    let late_bytes: u64 = usage.late.iter().map(|share| share.live_bytes).sum();
    let mut order: Vec<usize> = (0..lists.base.len())
        .filter(|&place| {
            let (share, size) = (&usage.base[place], lists.base[place].len_bytes);
            gain(share).saturating_mul(100) >= size.saturating_mul(FOLD_PERCENT)
                || bounds.fold_all && share.late_entries > 0
        })
        .collect();
    // The largest share first: what is gained over what is rewritten.
    order.sort_by(|&a, &b| {
        let product = |x: usize, y: usize| {
            u128::from(gain(&usage.base[x])) * u128::from(lists.base[y].len_bytes)
        };
        product(b, a).cmp(&product(a, b)).then(a.cmp(&b))
    });
    let (mut gained, mut size, mut chosen) = (0u64, 0u64, Vec::new());
    for place in order {
        let is_long = size >= bounds.cap_bytes.saturating_mul(FOLD_CAPS);
        let enough = bounds.fold_all || gained.saturating_mul(4) >= late_bytes;
        if chosen.len() >= FOLD_BLOCKS && enough || is_long && gained * 2 >= late_bytes {
            break;
        }
        gained += gain(&usage.base[place]);
        size += lists.base[place].len_bytes;
        chosen.push(place);
    }
    if chosen.is_empty() && bounds.fold_all {
        // What is left belongs to series without a base chunk.
        chosen.push(lists.base.len() - 1);
    }
    let pays = bounds.fold_all || gained.saturating_mul(100) >= late_bytes * FOLD_PERCENT;
    if chosen.is_empty() || !pays {
        return None;
    }
    chosen.sort_unstable();
    Some(Job::Fold(stretches(&chosen, lists.base, bounds.cap_bytes)))
}

/// Neighbours joined as long as they stay below the cap.
fn stretches(chosen: &[usize], base: &[BlockMeta], cap_bytes: u64) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    let mut size = 0;
    for &place in chosen {
        size += base[place].len_bytes;
        match joined.last_mut() {
            Some(last) if last.end == place && size <= cap_bytes => last.end += 1,
            _ => {
                size = base[place].len_bytes;
                joined.push(place..place + 1);
            }
        }
    }
    joined
}

/// Blocks that are mostly of no use.
fn wasteful(lists: Lists<'_>, usage: &BlockUsage, bounds: &Bounds) -> Option<Job> {
    let wasteful = |dead: u64, live: u64| {
        dead > 0 && dead.saturating_mul(100) >= (dead + live).saturating_mul(bounds.garbage_percent)
    };
    for (place, share) in usage.base.iter().enumerate() {
        if !wasteful(share.dead_bytes + share.deleted_bytes, share.live_bytes) {
            continue;
        }
        // Only tombstones can tell which chunks were deleted.
        let job = match share.deleted_bytes {
            0 => Job::MergeBase(place..place + 1),
            _ => Job::Fold(stretches(&[place], lists.base, bounds.cap_bytes)),
        };
        return Some(job);
    }
    let places = usage.late.iter().enumerate();
    let mut late = places.filter(|(_, share)| wasteful(share.dead_bytes, share.live_bytes));
    late.next()
        .map(|(place, _)| Job::MergeLate(place..place + 1))
}
