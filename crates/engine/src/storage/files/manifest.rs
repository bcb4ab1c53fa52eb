//! The manifest: the list of the files of a database.
//!
//! It is small. Each change writes a new one under a temporary name and renames it,
//! so a crash leaves the old or the new one, whole. It holds its bytes twice, so
//! one damaged page does not destroy the database. A file that it does not name is
//! garbage. The bytes are described in `docs/format/manifest.md`; tested below, by
//! the golden file and by the fuzz target `manifest`.

#[cfg(test)]
mod tests;

use crate::base::error::{Error, ErrorKind, Result};
use crate::storage::block::{BlockMeta, Family};
use crate::storage::files::bytes::{Put, Take};
use crc_fast::crc32_iscsi;
use latewood_model::Timestamp;
use latewood_model::limits::SERIES_MAX;
use std::collections::{BTreeMap, BTreeSet};

const MAGIC: [u8; 8] = *b"LWOODMAN";
const VERSION: u16 = 1;
/// Magic, version, two bytes of zeros, checksum.
const HEADER_BYTES: usize = 16;
/// Counters, and sums over all files, are at most this, so that they can be added to.
const COUNT_MAX: u64 = u64::MAX >> 1;
/// Partition numbers are below this: ids are 32 bits wide.
const PARTITIONS_MAX: u64 = 1 << (u32::BITS - crate::base::partition::PARTITION_BITS);

/// The files of the database, and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Number of times everything was removed.
    pub(crate) epoch: u64,
    /// The newest flush included.
    pub(crate) flush: u64,
    /// The number of the next file.
    pub(crate) next_file: u64,
    /// The id of the next series: no id below it is given again.
    pub(crate) next_id: u64,
    /// The sequence number of the first group of the log that is needed.
    pub(crate) log_start: u64,
    /// The oldest timestamp that a reader sees.
    pub(crate) floor: Timestamp,
    /// The partitions that have files.
    pub(crate) partitions: BTreeMap<u32, PartitionFiles>,
}

/// The files of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartitionFiles {
    /// The file of all its series.
    pub(crate) series: Option<SeriesFileMeta>,
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
    /// Number of series in it.
    pub(crate) rows: u64,
    /// The newest position of a row.
    pub(crate) position: u64,
    /// Checksum of the last bytes of the file, which cover every byte through their
    /// checksums.
    pub(crate) checksum: u32,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            epoch: 0,
            flush: 0,
            next_file: 1,
            next_id: 0,
            log_start: 1,
            floor: Timestamp::MIN,
            partitions: BTreeMap::new(),
        }
    }
}

impl Manifest {
    /// The files of `partition`, added if it has none.
    pub(crate) fn partition(&mut self, partition: u32) -> &mut PartitionFiles {
        self.partitions.entry(partition).or_default()
    }

    /// All blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &BlockMeta> {
        let partitions = self.partitions.values();
        partitions.flat_map(|files| files.base.iter().chain(&files.late))
    }

    /// All series files.
    pub(crate) fn series_files(&self) -> impl Iterator<Item = &SeriesFileMeta> {
        self.partitions
            .values()
            .filter_map(|files| files.series.as_ref())
    }

    /// The minimum sequence number of the next group of the log: files hold
    /// everything that series received up to there.
    pub(crate) fn log_next_min(&self) -> u64 {
        let positions = self.series_files().map(|file| file.position);
        let newest = positions.max().unwrap_or(0);
        newest.saturating_add(1).max(self.log_start)
    }

    /// The bytes of a manifest file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Put::default();
        for number in [
            self.epoch,
            self.flush,
            self.next_file,
            self.next_id,
            self.log_start,
        ] {
            body.number(number);
        }
        body.signed(self.floor);
        body.number(self.partitions.len() as u64);
        for (partition, files) in &self.partitions {
            body.number(u64::from(*partition));
            files.put(&mut body);
        }
        let mut header = Put::default();
        header.raw(&MAGIC);
        header.raw(&VERSION.to_le_bytes());
        header.raw(&[0; 2]);
        let checksum = checksum_of(&header.0, &body.0);
        header.word(checksum);
        header.raw(&body.0);
        header.0.repeat(2)
    }

    /// Decodes a manifest file: returns the first of its copies that is whole.
    ///
    /// # Errors
    /// `Unsupported` for a later version, `Corrupt` if neither copy is whole.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        decode_copy(first).or_else(|error| decode_copy(second).map_err(|_| error))
    }

    /// As [`Manifest::decode`], but both copies must be whole.
    ///
    /// # Errors
    /// Those of [`Manifest::decode`], and `Corrupt` if one copy is damaged.
    pub(crate) fn verify(bytes: &[u8]) -> Result<Self> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let manifest = decode_copy(first)?;
        if first == second {
            Ok(manifest)
        } else {
            Err(damaged("its second copy differs"))
        }
    }

    /// Reads the fields of one copy.
    pub(crate) fn take(bytes: &mut Take<'_>) -> Option<Self> {
        let mut manifest = Self {
            epoch: bytes.number()?,
            flush: bytes.number()?,
            next_file: bytes.number()?,
            next_id: bytes.number()?,
            log_start: bytes.number()?,
            floor: bytes.signed()?,
            partitions: BTreeMap::new(),
        };
        for _ in 0..bytes.count()? {
            let partition = bytes.number().filter(|&number| number < PARTITIONS_MAX)? as u32;
            let last = manifest.partitions.last_key_value();
            if last.is_some_and(|(&last, _)| last >= partition) {
                return None;
            }
            let files = PartitionFiles::take(bytes, partition)?;
            manifest.partitions.insert(partition, files);
        }
        bytes.is_empty().then_some(manifest)
    }

    /// Why no database wrote this manifest, whatever the checksums say.
    pub(crate) fn fault(&self) -> Option<String> {
        let (blocks, files) = (|| self.blocks(), || self.series_files());
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let positions = files().map(|file| file.position);
        let len_bytes = files().map(|file| file.len_bytes);
        let len_bytes = &mut len_bytes.chain(blocks().map(|block| block.len_bytes));
        let rows = sum(&mut files().map(|file| file.rows));
        let numbers = [
            ("epoch", self.epoch),
            ("newest flush", self.flush),
            ("next file", self.next_file),
            ("oldest group needed", self.log_start),
            ("newest position", positions.max().unwrap_or(0)),
            ("number of series in files", rows),
            ("number of bytes of files", sum(len_bytes)),
            (
                "number of samples",
                sum(&mut blocks().map(|block| block.samples)),
            ),
            (
                "number of entries",
                sum(&mut blocks().map(|block| block.entries)),
            ),
            (
                "number of series in blocks",
                sum(&mut blocks().map(|block| block.series)),
            ),
        ];
        let numbers = numbers.map(|(what, number)| (what, number, COUNT_MAX));
        let next_id = ("next series", self.next_id, u64::from(SERIES_MAX));
        let mut numbers = numbers.into_iter().chain([next_id]);
        if let Some((what, number, max)) = numbers.find(|&(_, number, max)| number > max) {
            return Some(format!("its {what} is {number}, which is beyond {max}"));
        }
        if self.log_start == 0 {
            return Some("its oldest group needed is 0".to_owned());
        }
        if let Some(block) = blocks().find(|block| block.first > block.last) {
            return Some(format!("its block {} ends before it begins", block.number));
        }
        let mut seen = BTreeSet::new();
        let names = blocks().map(|block| block.number);
        let mut names = names.chain(files().map(|file| file.number));
        let wrong = names.find(|&name| name >= self.next_file || !seen.insert(name))?;
        Some(format!(
            "it names file {wrong} twice or beyond its next file"
        ))
    }
}

impl PartitionFiles {
    fn put(&self, out: &mut Put) {
        out.byte(u8::from(self.series.is_some()));
        if let Some(file) = &self.series {
            for number in [file.number, file.len_bytes, file.rows, file.position] {
                out.number(number);
            }
            out.word(file.checksum);
        }
        for list in [&self.base, &self.late] {
            out.number(list.len() as u64);
            list.iter().for_each(|block| put_block(out, block));
        }
    }

    fn take(bytes: &mut Take<'_>, partition: u32) -> Option<Self> {
        let series = match bytes.byte()? {
            0 => None,
            1 => Some(SeriesFileMeta {
                number: bytes.number()?,
                partition,
                len_bytes: bytes.number()?,
                rows: bytes.number()?,
                position: bytes.number()?,
                checksum: bytes.word()?,
            }),
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
        })
    }
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

fn decode_copy(copy: &[u8]) -> Result<Manifest> {
    let Some((header, body)) = copy.split_at_checked(HEADER_BYTES) else {
        return Err(damaged("it is too short"));
    };
    if header[..8] != MAGIC {
        return Err(damaged("its magic bytes are wrong"));
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version > VERSION {
        let message = format!(
            "the manifest has format version {version}, this build knows version {VERSION}"
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let checksum = u32::from_le_bytes([12, 13, 14, 15].map(|at| header[at]));
    if version != VERSION || checksum != checksum_of(&header[..12], body) {
        return Err(damaged("its checksum does not match"));
    }
    let manifest = Manifest::take(&mut Take(body));
    let manifest = manifest.ok_or_else(|| damaged("its fields are invalid"))?;
    match manifest.fault() {
        None => Ok(manifest),
        Some(fault) => Err(damaged(&fault)),
    }
}

fn checksum_of(header: &[u8], body: &[u8]) -> u32 {
    crc32_iscsi(&[header, body].concat())
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("the manifest is damaged: {what}"),
    )
}
