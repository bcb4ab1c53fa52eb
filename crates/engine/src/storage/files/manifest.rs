//! The manifest: the list of the files of a database.
//!
//! It is small. Each change writes a new one under a temporary name and renames it,
//! so a crash leaves the old or the new one, whole. It holds its bytes twice, so
//! one damaged page does not destroy the database. A file that it does not name is
//! garbage. The bytes are described in `docs/format/manifest.md`; tested below, by
//! the golden file and by the fuzz target `manifest`.

mod partition;
#[cfg(test)]
mod tests;

use crate::base::error::{Error, ErrorKind, Result};
use crate::storage::block::BlockMeta;
use crate::storage::files::bytes::{Put, Take};
use crc_fast::crc32_iscsi;
use latewood_model::{SeriesId, Timestamp};
use partition::kind;
pub(crate) use partition::{ChangesMeta, PartitionFiles, SeriesFileMeta};
use std::collections::{BTreeMap, BTreeSet};

const MAGIC: [u8; 8] = *b"LWOODMAN";
/// The format that is written; version 1 is read.
const VERSION: u16 = 2;
/// Magic, version, two bytes of zeros, checksum.
const HEADER_BYTES: usize = 16;
/// Counters, and sums over all files, are at most this, so that they can be added to.
const COUNT_MAX: u64 = u64::MAX >> 1;

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
    /// For hashes of keys that all copies of the database agree on; drawn once. 0: not yet, as in
    /// version 1.
    pub(crate) key_seed: u64,
    /// The partitions that have files.
    pub(crate) partitions: BTreeMap<u32, PartitionFiles>,
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
            key_seed: 0,
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
            .flat_map(PartitionFiles::series_files)
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
        body.raw(&self.key_seed.to_le_bytes());
        body.number(self.partitions.len() as u64);
        for (partition, files) in &self.partitions {
            body.number(u64::from(*partition));
            files.put(&mut body);
        }
        // Files of no partition: no kind is known yet.
        body.number(0);
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

    /// Reads the fields of one copy of this version.
    ///
    /// # Errors
    /// The kind of a list that is neither known nor dispensable; `None` for invalid fields.
    pub(crate) fn take(bytes: &[u8], version: u16) -> std::result::Result<Self, Option<u8>> {
        let mut copy = Copy {
            bytes: Take(bytes),
            version,
            unknown: None,
        };
        copy.manifest().ok_or(copy.unknown)
    }

    /// Why no database wrote this manifest, whatever the checksums say.
    pub(crate) fn fault(&self) -> Option<String> {
        let (blocks, files) = (|| self.blocks(), || self.series_files());
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let positions = files().map(|file| file.position);
        let len_bytes = files().map(|file| file.len_bytes);
        let len_bytes = &mut len_bytes.chain(blocks().map(|block| block.len_bytes));
        let partitions = self.partitions.values();
        let changes = partitions.flat_map(|files| &files.changes);
        let rows = files().map(|file| file.rows);
        let rows = rows.chain(changes.map(|changes| changes.living));
        let living = self.partitions.values().map(|files| files.living);
        let rows = sum(&mut rows.chain(living));
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
        let next_id = ("next series", self.next_id, SeriesId::MAX.0);
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
        let has_nothing_to_change =
            |files: &&PartitionFiles| files.series.is_none() && !files.changes.is_empty();
        if self
            .partitions
            .values()
            .any(|files| has_nothing_to_change(&files))
        {
            return Some("it has changes of a series file that it does not name".to_owned());
        }
        let mut all = self.partitions.iter();
        if let Some((partition, _)) = all.find(|(_, files)| !files.is_in_order()) {
            return Some(format!(
                "its series files of partition {partition} are not in the order of their numbers"
            ));
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

/// A copy that is being read.
struct Copy<'a> {
    bytes: Take<'a>,
    version: u16,
    /// A kind of files that must be known and is not.
    unknown: Option<u8>,
}

impl Copy<'_> {
    fn manifest(&mut self) -> Option<Manifest> {
        let bytes = &mut self.bytes;
        let mut manifest = Manifest {
            epoch: bytes.number()?,
            flush: bytes.number()?,
            next_file: bytes.number()?,
            next_id: bytes.number()?,
            log_start: bytes.number()?,
            floor: bytes.signed()?,
            ..Manifest::default()
        };
        if self.version > 1 {
            manifest.key_seed = bytes.long()?;
        }
        for _ in 0..bytes.count()? {
            let partition = u32::try_from(self.bytes.number()?).ok()?;
            let last = manifest.partitions.last_key_value();
            if last.is_some_and(|(&last, _)| last >= partition) {
                return None;
            }
            let files = match self.version {
                1 => PartitionFiles::take_version_1(&mut self.bytes, partition)?,
                _ => self.files(partition)?,
            };
            manifest.partitions.insert(partition, files);
        }
        if self.version > 1 {
            self.lists(|_, _| None)?;
        }
        self.bytes.is_empty().then_some(manifest)
    }

    fn files(&mut self, partition: u32) -> Option<PartitionFiles> {
        let mut files = PartitionFiles::default();
        self.lists(|kind, list| match kind {
            kind::SERIES..=kind::PARKED => Some(files.take_list(kind, list, partition)),
            _ => None,
        })?;
        Some(files)
    }

    /// Gives each list to `take`, which answers `None` to a kind that it does not know.
    fn lists(&mut self, mut take: impl FnMut(u8, &[u8]) -> Option<Option<()>>) -> Option<()> {
        let mut last = 0;
        for _ in 0..self.bytes.count()? {
            let kind = self.bytes.byte().filter(|&kind| kind > last)?;
            last = kind;
            match take(kind, self.bytes.string()?) {
                Some(taken) => taken?,
                None if kind & kind::DISPENSABLE != 0 => {}
                None => {
                    self.unknown = Some(kind);
                    return None;
                }
            }
        }
        Some(())
    }
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
    if version == 0 || checksum != checksum_of(&header[..12], body) {
        return Err(damaged("its checksum does not match"));
    }
    let manifest = Manifest::take(body, version).map_err(|unknown| match unknown {
        None => damaged("its fields are invalid"),
        Some(kind) => {
            let message =
                format!("the manifest names files of kind {kind}, which this build does not know");
            Error::new(ErrorKind::Unsupported, message)
        }
    })?;
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
