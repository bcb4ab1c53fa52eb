//! The files of one partition in the manifest. Tested with it.

use crate::storage::block::{BlockMeta, Family};
use crate::storage::files::bytes::{Put, Take};

/// Files of changes of a series file, at most: a start opens each, and a checkpoint names it.
pub(super) const CHANGES_MAX: usize = 16;
/// Their rows are together at most this part of those of the file they change.
const CHANGES_SHARE: u64 = 2;

/// What the files of a list are.
pub(super) mod kind {
    pub(crate) const SERIES: u8 = 1;
    pub(crate) const BASE: u8 = 2;
    pub(crate) const LATE: u8 = 3;
    pub(crate) const CHANGES: u8 = 4;
    pub(crate) const PARKED: u8 = 5;
    /// A build that does not know a kind with this bit passes over the list, and loses its files
    /// with the next manifest.
    pub(crate) const DISPENSABLE: u8 = 1 << 7;
}

/// The files of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartitionFiles {
    /// The file of all its series, but for those that are parked.
    pub(crate) series: Option<SeriesFileMeta>,
    /// What changed since, in this order.
    pub(crate) changes: Vec<ChangesMeta>,
    /// The files of parked series, in the order of their numbers.
    pub(crate) parked: Vec<SeriesFileMeta>,
    /// Its series, awake or parked, where there are files of parked ones; else 0. Which of these
    /// files still count for an id, the manifest does not say.
    pub(crate) living: u64,
    /// In this order the chunks of a series ascend over all blocks.
    pub(crate) base: Vec<BlockMeta>,
    /// In arrival order.
    pub(crate) late: Vec<BlockMeta>,
}

/// A series file as the manifest describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesFileMeta {
    /// The number in its file name.
    pub(crate) number: u64,
    /// The partition of all its series.
    pub(crate) partition: u32,
    /// Length of the file.
    pub(crate) len_bytes: u64,
    /// Number of series in it; in a file of changes removed ones are included.
    pub(crate) rows: u64,
    /// The newest position of a row.
    pub(crate) position: u64,
    /// Checksum of the last bytes of the file, which cover every byte through their
    /// checksums.
    pub(crate) checksum: u32,
}

/// A file of changes of a series file as the manifest describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangesMeta {
    pub(crate) file: SeriesFileMeta,
    /// Series of the partition once it is applied.
    pub(crate) living: u64,
}

impl PartitionFiles {
    /// The files of its series, in the order in which they apply, which is that of their numbers.
    pub(crate) fn series_files(&self) -> impl Iterator<Item = &SeriesFileMeta> {
        let mut parked = self.parked.iter().peekable();
        let mut others = self.awake_files().peekable();
        std::iter::from_fn(move || {
            let next = others.peek().map_or(u64::MAX, |file| file.number);
            let before = parked.next_if(|file| file.number < next);
            before.or_else(|| others.next())
        })
    }

    /// Those that hold no parked series.
    pub(crate) fn awake_files(&self) -> impl Iterator<Item = &SeriesFileMeta> {
        let changes = self.changes.iter().map(|changes| &changes.file);
        self.series.iter().chain(changes)
    }

    /// Whether both kinds of files stand in the order of their numbers.
    pub(super) fn is_in_order(&self) -> bool {
        self.parked.is_sorted_by_key(|file| file.number)
            && self.awake_files().is_sorted_by_key(|file| file.number)
    }

    /// Series in its files, awake or parked.
    pub(crate) fn series_count(&self) -> u64 {
        if !self.parked.is_empty() {
            return self.living;
        }
        let whole = self.series.map_or(0, |file| file.rows);
        self.changes.last().map_or(whole, |changes| changes.living)
    }

    /// Whether a file of `rows` changes should follow instead of a whole one: that must have at
    /// least `len_bytes_min`. Together the changes stay few: a start reads all of them.
    pub(crate) fn takes_changes(&self, rows: u64, len_bytes_min: u64) -> bool {
        let held: u64 = self.changes.iter().map(|changes| changes.file.rows).sum();
        let all = held.saturating_add(rows).saturating_mul(CHANGES_SHARE);
        let fits = |whole: &SeriesFileMeta| whole.len_bytes >= len_bytes_min && all <= whole.rows;
        self.changes.len() < CHANGES_MAX && self.series.as_ref().is_some_and(fits)
    }

    pub(super) fn put(&self, out: &mut Put) {
        let mut lists = Vec::new();
        if let Some(file) = &self.series {
            let mut list = Put::default();
            put_series_file(&mut list, file);
            lists.push((kind::SERIES, list));
        }
        for (kind, blocks) in [(kind::BASE, &self.base), (kind::LATE, &self.late)] {
            let mut list = Put::default();
            blocks.iter().for_each(|block| put_block(&mut list, block));
            if !blocks.is_empty() {
                lists.push((kind, list));
            }
        }
        if !self.changes.is_empty() {
            let mut list = Put::default();
            for changes in &self.changes {
                put_series_file(&mut list, &changes.file);
                list.number(changes.living);
            }
            lists.push((kind::CHANGES, list));
        }
        if !self.parked.is_empty() {
            let mut list = Put::default();
            list.number(self.living);
            for file in &self.parked {
                put_series_file(&mut list, file);
            }
            lists.push((kind::PARKED, list));
        }
        out.number(lists.len() as u64);
        for (kind, list) in lists {
            out.byte(kind);
            out.string(&list.0);
        }
    }

    /// Reads a list of files, if its kind is known.
    pub(super) fn take_list(&mut self, kind: u8, list: &[u8], partition: u32) -> Option<()> {
        let mut bytes = Take(list);
        match kind {
            kind::SERIES => self.series = Some(take_series_file(&mut bytes, partition)?),
            kind::CHANGES => self.changes = take_changes(&mut bytes, partition)?,
            kind::PARKED => {
                self.living = bytes.number()?;
                self.parked = take_parked(&mut bytes, partition)?;
            }
            kind::BASE => self.base = take_blocks(&mut bytes, partition, Family::Base)?,
            _ => self.late = take_blocks(&mut bytes, partition, Family::Late)?,
        }
        bytes.is_empty().then_some(())
    }

    /// The same as in version 1.
    pub(super) fn take_version_1(bytes: &mut Take<'_>, partition: u32) -> Option<Self> {
        let series = match bytes.byte()? {
            0 => None,
            1 => Some(take_series_file(bytes, partition)?),
            _ => return None,
        };
        let mut list = |family| {
            let count = bytes.count()?;
            let mut take = |_| take_block(bytes, partition, family);
            (0..count).map(&mut take).collect::<Option<Vec<_>>>()
        };
        Some(Self {
            series,
            base: list(Family::Base)?,
            late: list(Family::Late)?,
            ..Self::default()
        })
    }
}

fn put_series_file(out: &mut Put, file: &SeriesFileMeta) {
    for number in [file.number, file.len_bytes, file.rows, file.position] {
        out.number(number);
    }
    out.word(file.checksum);
}

fn take_series_file(bytes: &mut Take<'_>, partition: u32) -> Option<SeriesFileMeta> {
    Some(SeriesFileMeta {
        number: bytes.number()?,
        partition,
        len_bytes: bytes.number()?,
        rows: bytes.number()?,
        position: bytes.number()?,
        checksum: bytes.word()?,
    })
}

fn take_changes(bytes: &mut Take<'_>, partition: u32) -> Option<Vec<ChangesMeta>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        all.push(ChangesMeta {
            file: take_series_file(bytes, partition)?,
            living: bytes.number()?,
        });
    }
    Some(all)
}

/// At least one: an empty list is left out.
fn take_parked(bytes: &mut Take<'_>, partition: u32) -> Option<Vec<SeriesFileMeta>> {
    let mut all = vec![take_series_file(bytes, partition)?];
    while !bytes.is_empty() {
        all.push(take_series_file(bytes, partition)?);
    }
    Some(all)
}

fn take_blocks(bytes: &mut Take<'_>, partition: u32, family: Family) -> Option<Vec<BlockMeta>> {
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        blocks.push(take_block(bytes, partition, family)?);
    }
    Some(blocks)
}

fn put_block(out: &mut Put, block: &BlockMeta) {
    out.number(block.number);
    out.number(block.len_bytes);
    out.signed(block.first);
    out.step(block.first, block.last);
    for number in [block.samples, block.entries, block.series] {
        out.number(number);
    }
    out.word(block.checksum);
}

fn take_block(bytes: &mut Take<'_>, partition: u32, family: Family) -> Option<BlockMeta> {
    let number = bytes.number()?;
    let len_bytes = bytes.number()?;
    let first = bytes.signed()?;
    Some(BlockMeta {
        number,
        partition,
        family,
        len_bytes,
        first,
        last: bytes.step(first)?,
        samples: bytes.number()?,
        entries: bytes.number()?,
        series: bytes.number()?,
        checksum: bytes.word()?,
    })
}
