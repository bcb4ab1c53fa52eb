//! Chooses the next merge job, without reading samples.
//!
//! The plan limits three costs: bytes written per byte ingested (*write
//! amplification*), blocks that a read must search, and garbage bytes in blocks.
//! Merges are tiered: a stretch of neighbours is merged once its total is several
//! times its largest block, so each rewrite moves a byte into a file several times
//! as long, and the number of rewrites is logarithmic in the file size. Late
//! blocks are folded into the base blocks they overlap once that pays: when the
//! folded bytes are at least a quarter of the base bytes rewritten and a quarter
//! of all late bytes. A late byte then costs at most eight more bytes in its last
//! rewrite.
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

/// Late bytes, in percent of a base block, from which on a fold pays.
const FOLD_PERCENT: u64 = 25;
/// Base blocks, in parts of the cap, after which a fold accepts half of the
/// waiting bytes, and their number after which it accepts a quarter: each block
/// is read through its own buffer.
const FOLD_CAPS: u64 = 4;
const FOLD_BLOCKS: usize = 32;
/// Late bytes below which block usage is not read.
const USAGE_BYTES_MIN: u64 = 4096;

/// The thresholds of merging.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    /// Minimum number of neighbouring base blocks per merge.
    pub(crate) base_fan: usize,
    /// The same for late blocks.
    pub(crate) late_fan: usize,
    /// Maximum size of an output file; a fold splits larger outputs.
    pub(crate) cap_bytes: u64,
    /// Fold all overlays over base blocks, whether that pays or not.
    pub(crate) fold_all: bool,
    /// Garbage, in percent, from which on a block is rewritten.
    pub(crate) garbage_percent: u64,
}

impl Bounds {
    /// The thresholds of background merging: jobs that pay.
    pub(crate) fn steady(cap_bytes: u64) -> Self {
        Self {
            base_fan: 8,
            late_fan: 4,
            cap_bytes: cap_bytes.max(1),
            fold_all: false,
            garbage_percent: 50,
        }
    }

    /// The thresholds of a requested merge: fold everything, leave little garbage.
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

/// Block usage of one base block: its bytes by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BaseShare {
    /// Chunks of removed series or below the floor.
    pub(crate) dead_bytes: u64,
    /// Other chunks that tombstones cover.
    pub(crate) deleted_bytes: u64,
    /// Chunks in use.
    pub(crate) live_bytes: u64,
    /// Overlays over this block.
    pub(crate) late_bytes: u64,
    /// Overlays and tombstones over this block.
    pub(crate) late_entries: u64,
}

/// Block usage of one late block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LateShare {
    pub(crate) dead_bytes: u64,
    pub(crate) live_bytes: u64,
    /// Entries in use, tombstones included.
    pub(crate) live_entries: u64,
}

/// Block usage of a partition, one item per block of its lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockUsage {
    pub(crate) base: Vec<BaseShare>,
    pub(crate) late: Vec<LateShare>,
    /// Overlays of series without a base chunk.
    pub(crate) orphan_bytes: u64,
    /// Overlays and tombstones of series without a base chunk.
    pub(crate) orphan_entries: u64,
}

/// A job of a partition. Places are indexes into its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Drop blocks that hold only garbage.
    Drop { base: Vec<usize>, late: Vec<usize> },
    /// Merge a stretch of base blocks, or rewrite a single one.
    MergeBase(Range<usize>),
    /// Merge a stretch of late blocks, or rewrite a single one.
    MergeLate(Range<usize>),
    /// Fold all late blocks into these stretches of base blocks; overlays of other
    /// base blocks become one late block. If there are no base blocks, the only
    /// stretch is empty.
    Fold(Vec<Range<usize>>),
}

/// Blocks entirely before `floor`. Linear in the lists.
pub(crate) fn below_floor(lists: Lists<'_>, floor: Timestamp) -> Option<Job> {
    let below = |blocks: &[BlockMeta]| -> Vec<usize> {
        let places = blocks.iter().enumerate();
        let below = places.filter(|(_, block)| block.last < floor);
        below.map(|(place, _)| place).collect()
    };
    let (base, late) = (below(lists.base), below(lists.late));
    (!base.is_empty() || !late.is_empty()).then_some(Job::Drop { base, late })
}

/// Whether enough late bytes arrived since the last read of block usage, which
/// left `late_bytes_seen`, that a fold may pay.
///
/// Amortised: a read costs about a hundredth of the base bytes, and is repeated
/// after late bytes of a 256th of them.
pub(crate) fn usage_due(lists: Lists<'_>, late_bytes_seen: u64) -> bool {
    let news = lists.late_bytes().saturating_sub(late_bytes_seen);
    let least = (late_bytes_seen / 4).max(lists.base_bytes() / 256);
    !lists.late.is_empty() && news >= least.max(USAGE_BYTES_MIN)
}

/// The job that pays by block usage, the cheapest first.
pub(crate) fn usage_known(lists: Lists<'_>, usage: &BlockUsage, bounds: &Bounds) -> Option<Job> {
    useless(usage)
        .or_else(|| fold(lists, usage, bounds))
        .or_else(|| wasteful(lists, usage, bounds))
}

/// The job that frees disk space by block usage.
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

/// The stretch of neighbours to merge: among those whose total is large enough
/// relative to their largest block, the one whose largest block is smallest.
fn merge_window(sizes: &[u64], fan: usize, cap_bytes: u64) -> Option<Range<usize>> {
    let small = sizes.iter().filter(|&&size| size < cap_bytes / 2).count();
    // Twice the required ratio of total and largest, and the minimum number of
    // blocks. The ratio is that of `fan` equal blocks, within a factor of two. It
    // falls as blocks accumulate whose sizes never match.
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
    // The largest ratio of gain to rewritten bytes first.
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
        // The rest belongs to series without a base chunk.
        chosen.push(lists.base.len() - 1);
    }
    let pays = bounds.fold_all || gained.saturating_mul(100) >= late_bytes * FOLD_PERCENT;
    if chosen.is_empty() || !pays {
        return None;
    }
    chosen.sort_unstable();
    Some(Job::Fold(stretches(&chosen, lists.base, bounds.cap_bytes)))
}

/// Neighbouring stretches joined while they stay below the cap.
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

/// Blocks that are mostly garbage.
fn wasteful(lists: Lists<'_>, usage: &BlockUsage, bounds: &Bounds) -> Option<Job> {
    let wasteful = |dead: u64, live: u64| {
        dead > 0 && dead.saturating_mul(100) >= (dead + live).saturating_mul(bounds.garbage_percent)
    };
    for (place, share) in usage.base.iter().enumerate() {
        if !wasteful(share.dead_bytes + share.deleted_bytes, share.live_bytes) {
            continue;
        }
        // Only a fold reads the tombstones that tell which chunks are deleted.
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
