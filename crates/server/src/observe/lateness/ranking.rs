//! Names with the most late samples: a bounded table.
//!
//! A name gets a row while there is room. After that it is a candidate: candidates are counted in
//! a small table of places in which names that meet cancel each other out (Boyer and Moore, "MJRTY:
//! A Fast Majority Vote Algorithm", 1981). One that comes more often than the row with the fewest
//! late samples in the last hour takes its place; that row joins the others. Counts of candidates
//! are halved with each block. So a name that comes once costs a row nothing, and a frequent one is
//! found whatever else comes or came.
//!
//! Invariant: each late sample is in a row or in the others. A row counts from when its name got
//! it; what came before is in the others.

use super::ages::{LateAges, LateSum};
use super::{HOUR_MINUTES, MINUTES};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Rows of a table.
pub(crate) const ROWS_MAX: usize = 64;
/// Minutes of a block of a row.
pub(crate) const BLOCK_MINUTES: i64 = 10;
const BLOCKS: usize = MINUTES / BLOCK_MINUTES as usize;
const HOUR_BLOCKS: i64 = HOUR_MINUTES as i64 / BLOCK_MINUTES;
const CANDIDATES: usize = 1024;
/// Longer names count as others: a row shows all of its name.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    places: HashMap<Box<[u8]>, usize, RandomState>,
    rows: Vec<Row>,
    /// How many rows were made.
    made: u64,
    /// The row of the last sample.
    last: usize,
    others: Blocks,
    candidates: Candidates,
}

#[derive(Debug)]
struct Row {
    name: Box<[u8]>,
    blocks: Blocks,
    /// Which row it is of all that were made.
    number: u64,
    /// Its late samples since it has a row.
    total: u64,
    /// How often it came as a candidate, and in which block.
    credit: (i64, u64),
}

/// A ring of blocks.
#[derive(Debug, Default)]
struct Blocks([(i64, LateAges); BLOCKS]);

/// Names without a row.
#[derive(Debug, Default)]
struct Candidates {
    /// The block they are counted in.
    block: i64,
    /// Fewer late samples than any row has, as far as is known.
    least: u64,
    /// A hash of the name and its count; empty until there is one.
    places: Vec<(u64, u64)>,
    hasher: RandomState,
}

/// A row as it is read.
#[derive(Debug)]
pub(crate) struct RankedRow {
    pub(crate) name: Box<[u8]>,
    /// Its late samples; others of it are not counted.
    pub(crate) sum: LateSum,
    /// Which row it is of all that were made: one that lost its place and came back is another.
    pub(crate) number: u64,
    /// The late ones since it has this row, in whatever time.
    pub(crate) total: u64,
}

impl Ranking {
    /// Counts late samples of `name` in a minute.
    #[inline]
    pub(super) fn note(
        &mut self,
        name: &[u8],
        mut ages_ms: impl Iterator<Item = u64>,
        minute: i64,
    ) {
        let block = block_of(minute);
        while let Some(age_ms) = ages_ms.next() {
            let row = self.rows.get(self.last);
            if row.is_none_or(|row| *row.name != *name) {
                let place = self.places.get(name).copied();
                match place.or_else(|| self.admit(name, block)) {
                    Some(place) => self.last = place,
                    None => {
                        self.others.of(block).note(age_ms);
                        continue;
                    }
                }
            }
            let Row { blocks, total, .. } = &mut self.rows[self.last];
            let ages = blocks.of(block);
            let before = ages.late();
            ages.note(age_ms);
            ages_ms.by_ref().for_each(|age_ms| ages.note(age_ms));
            *total += ages.late() - before;
        }
    }

    /// Forgets all names. No later row has the number of one before.
    pub(super) fn clear(&mut self) {
        *self = Self {
            made: self.made,
            ..Self::default()
        };
    }

    /// A row for a name that has none, if it may have one.
    fn admit(&mut self, name: &[u8], block: i64) -> Option<usize> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let number = self.made;
        let row = |credit| Row {
            name: name.into(),
            blocks: Blocks::default(),
            number,
            total: 0,
            credit: (block, credit),
        };
        if self.rows.len() < ROWS_MAX {
            self.places.insert(name.into(), self.rows.len());
            self.rows.push(row(0));
            self.made += 1;
            return Some(self.rows.len() - 1);
        }
        let credit = self.candidates.count(name, block);
        if credit <= self.candidates.least {
            return None;
        }
        let ranks = self.rows.iter().map(|row| row.rank(block));
        let (place, least) = ranks.enumerate().min_by_key(|(_, rank)| *rank)?;
        self.candidates.least = least;
        if credit <= least {
            return None;
        }
        let gone = std::mem::replace(&mut self.rows[place], row(credit));
        self.made += 1;
        self.places.remove(&gone.name);
        self.places.insert(name.into(), place);
        self.others.merge(&gone.blocks, block);
        Some(place)
    }

    /// The rows of the blocks that the last `minutes` touch, and the others.
    pub(super) fn read(&self, minute: i64, minutes: usize) -> (Vec<RankedRow>, LateSum) {
        let first = block_of(minute - minutes as i64 + 1);
        let span = first..=block_of(minute);
        let rows = self.rows.iter().map(|row| RankedRow {
            name: row.name.clone(),
            sum: row.blocks.sum(&span),
            number: row.number,
            total: row.total,
        });
        let mut rows: Vec<_> = rows.filter(|row| row.sum.late > 0).collect();
        rows.sort_by(|a, b| b.sum.late.cmp(&a.sum.late).then(a.name.cmp(&b.name)));
        (rows, self.others.sum(&span))
    }

    /// Bytes of memory beside its own.
    pub(super) fn len_bytes(&self) -> usize {
        let rows = self.rows.iter();
        let rows = rows.map(|row| 2 * row.name.len() + row.blocks.len_bytes());
        self.rows.capacity() * size_of::<Row>()
            + self.places.capacity() * size_of::<(Box<[u8]>, usize)>()
            + self.candidates.places.capacity() * size_of::<(u64, u64)>()
            + self.others.len_bytes()
            + rows.sum::<usize>()
    }
}

impl Row {
    /// Its late samples of the last hour, and those that came in it before it had a row. What was
    /// counted while the clock was ahead is not of it.
    fn rank(&self, block: i64) -> u64 {
        let hour = block - HOUR_BLOCKS + 1..=block;
        let blocks = self.blocks.0.iter().filter(|(at, _)| hour.contains(at));
        let late: u64 = blocks.map(|(_, ages)| ages.late()).sum();
        let credit = Some(self.credit.1).filter(|_| hour.contains(&self.credit.0));
        late + credit.unwrap_or(0)
    }
}

impl Blocks {
    #[inline]
    fn of(&mut self, block: i64) -> &mut LateAges {
        let (at, ages) = &mut self.0[block.rem_euclid(BLOCKS as i64) as usize];
        if *at != block {
            *at = block;
            ages.clear();
        }
        ages
    }

    /// Adds the blocks of `other` that are kept in `block`.
    fn merge(&mut self, other: &Self, block: i64) {
        for (at, ages) in &other.0 {
            if ages.late() > 0 && (block - BLOCKS as i64 + 1..=block).contains(at) {
                self.of(*at).merge(ages);
            }
        }
    }

    fn sum(&self, span: &std::ops::RangeInclusive<i64>) -> LateSum {
        let mut sum = LateSum::default();
        let blocks = self.0.iter().filter(|(at, _)| span.contains(at));
        blocks.for_each(|(_, ages)| sum.add(ages));
        sum
    }

    fn len_bytes(&self) -> usize {
        self.0.iter().map(|(_, ages)| ages.len_bytes()).sum()
    }
}

impl Candidates {
    /// How often `name` came in this block, and half as often in the one before it, at least.
    fn count(&mut self, name: &[u8], block: i64) -> u64 {
        if self.block != block {
            let age = self.block.abs_diff(block).min(63);
            self.block = block;
            // Rows lose what is too old, and so do candidates.
            self.least = 0;
            self.places.iter_mut().for_each(|(_, count)| *count >>= age);
        }
        if self.places.is_empty() {
            self.places.resize(CANDIDATES, (0, 0));
        }
        let hash = self.hasher.hash_one(name);
        let (held, count) = &mut self.places[hash as usize % CANDIDATES];
        match (*held == hash, *count) {
            (true, _) => *count += 1,
            (false, 0) => (*held, *count) = (hash, 1),
            (false, _) => {
                *count -= 1;
                return 0;
            }
        }
        *count
    }
}

fn block_of(minute: i64) -> i64 {
    minute.div_euclid(BLOCK_MINUTES)
}
