//! The parts of a series file that are no rows: header, headers of sections, footer. Tested with
//! the files.

use crate::base::error::{Error, ErrorKind, Result};
use crate::io::{Env, File};
use crate::storage::files::manifest::SeriesFileMeta;
use crc_fast::crc32_iscsi;
use std::path::Path;
use std::sync::Arc;
use zstd::bulk::Decompressor;

const MAGIC: [u8; 8] = *b"LWOODSER";
const END_MAGIC: [u8; 8] = *b"LWSEREND";
/// The format of whole files that is written; version 1 is read.
pub(super) const VERSION: u16 = 2;
/// That of files of changes.
pub(super) const VERSION_CHANGES: u16 = 3;
/// That of files of parked series, and of whole files that name removed ones.
pub(super) const VERSION_PARKED: u16 = 4;
/// In the number of rows of a section: they are ids of removed series.
pub(super) const REMOVED: u32 = 1 << 31;
/// In the number of rows of a section: they are pages, and it is the directory of them.
pub(super) const DIRECTORY: u32 = 1 << 30;
/// In the number of rows of a section: they are entries of a label block.
pub(super) const LABELS: u32 = 1 << 29;
/// In the number of rows of a section: they are hashes of keys.
pub(super) const HASHES: u32 = 1 << 28;
/// Magic, version, two bytes of zeros, partition, number, checksum.
pub(super) const HEADER_BYTES: usize = 28;
/// Stored size, uncompressed size, rows, checksum of these and the bytes.
pub(super) const SECTION_HEADER_BYTES: usize = 16;
/// Bytes of a section's header that its checksum covers.
const CHECKED_BYTES: usize = 12;
/// Rows, newest position, checksum over all headers, checksum of these, magic.
pub(super) const FOOTER_BYTES: usize = 32;
/// Behind a directory: the length of its section.
pub(super) const DIRECTORY_LEN_BYTES: usize = 4;
/// Maximum size of a section: a series may have millions of dirty buckets, not
/// more.
pub(super) const SECTION_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The header of a section, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectionHeader {
    pub(super) stored_len: u32,
    pub(super) raw_len: u32,
    /// With a flag.
    pub(super) rows: u32,
    pub(super) checksum: u32,
}

impl SectionHeader {
    /// That of a section whose bytes are `stored`.
    pub(super) fn new(stored: &[u8], raw_len: u32, rows: u32) -> Self {
        // SECTION_BYTES_MAX fits 32 bits, and so does its compressed size.
        let stored_len = stored.len() as u32;
        let mut header = Self {
            stored_len,
            raw_len,
            rows,
            checksum: 0,
        };
        header.checksum = header.checksum_with(stored);
        header
    }

    pub(super) fn from_bytes(bytes: &[u8; SECTION_HEADER_BYTES]) -> Self {
        let [stored_len, raw_len, rows, checksum] = [0, 4, 8, 12].map(|at| word_at(bytes, at));
        Self {
            stored_len,
            raw_len,
            rows,
            checksum,
        }
    }

    pub(super) fn bytes(&self) -> [u8; SECTION_HEADER_BYTES] {
        let words = [self.stored_len, self.raw_len, self.rows, self.checksum];
        let mut bytes = [0; SECTION_HEADER_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Length of the section with its header.
    pub(super) fn section_len(&self) -> u64 {
        SECTION_HEADER_BYTES as u64 + u64::from(self.stored_len)
    }

    fn checksum_with(&self, stored: &[u8]) -> u32 {
        crc32_iscsi(&[&self.bytes()[..CHECKED_BYTES], stored].concat())
    }

    /// Decompresses the bytes of the section into `raw`.
    ///
    /// # Errors
    /// `Corrupt`, without the name of the file.
    pub(super) fn decompress(
        &self,
        stored: &[u8],
        decompressor: &mut Decompressor<'_>,
        raw: &mut Vec<u8>,
    ) -> Result<()> {
        // A fuzzer skips this check.
        if !cfg!(fuzzing) && self.checksum_with(stored) != self.checksum {
            return Err(damaged("the checksum of a section does not match"));
        }
        raw.clear();
        raw.reserve(self.raw_len as usize);
        let read = decompressor.decompress_to_buffer(stored, raw);
        if read.ok() == Some(self.raw_len as usize) {
            Ok(())
        } else {
            Err(damaged("a section does not decompress"))
        }
    }
}

/// An open file whose header and footer are those that the manifest describes.
pub(super) struct Opened {
    pub(super) file: Arc<dyn File>,
    pub(super) version: u16,
    /// The checksum over all headers, as its first link and as the footer has it.
    pub(super) chain: u32,
    pub(super) closed_chain: u32,
}

impl Opened {
    pub(super) fn new(env: &Env, path: &Path, meta: &SeriesFileMeta) -> Result<Self> {
        let failed = |error| Error::io("cannot open a series file", path, error);
        let file = env.disk.open(path).map_err(failed)?;
        let len_bytes = file.len_bytes().map_err(failed)?;
        if len_bytes != meta.len_bytes || len_bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(damaged("its length does not match the manifest").at(path));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_at(&mut header, 0).map_err(failed)?;
        let version = u16::from_le_bytes([header[8], header[9]]);
        if header[..8] == MAGIC && version > VERSION_PARKED {
            let text = format!(
                "the series file has format version {version}, this build knows version {VERSION_PARKED}"
            );
            return Err(Error::new(ErrorKind::Unsupported, text).at(path));
        }
        if version == 0 || header != header_of(version, meta.number, meta.partition) {
            return Err(damaged("its header does not match the manifest").at(path));
        }
        let mut footer = [0; FOOTER_BYTES];
        let at = len_bytes - FOOTER_BYTES as u64;
        file.read_at(&mut footer, at).map_err(failed)?;
        let closed_chain = word_at(&footer, 16);
        let expected = footer_of(meta.rows, meta.position, closed_chain);
        if footer != expected || word_at(&footer, 20) != meta.checksum {
            return Err(damaged("its footer does not match the manifest").at(path));
        }
        Ok(Self {
            file,
            version,
            chain: crc32_iscsi(&header),
            closed_chain,
        })
    }
}

impl SeriesFileMeta {
    /// The description of the file at `path` by its own header and footer, for
    /// callers without a manifest.
    ///
    /// # Errors
    /// `Corrupt` if it is truncated, `Io`. Who reads the file verifies the
    /// description.
    pub(crate) fn of_file(env: &Env, path: &Path) -> Result<Self> {
        let failed = |error| Error::io("cannot open a series file", path, error);
        let file = env.disk.open(path).map_err(failed)?;
        let len_bytes = file.len_bytes().map_err(failed)?;
        if len_bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(damaged("it is truncated").at(path));
        }
        let (mut header, mut footer) = ([0; HEADER_BYTES], [0; FOOTER_BYTES]);
        file.read_at(&mut header, 0).map_err(failed)?;
        file.read_at(&mut footer, len_bytes - FOOTER_BYTES as u64)
            .map_err(failed)?;
        let long = |bytes: &[u8], at: usize| {
            u64::from(word_at(bytes, at)) | u64::from(word_at(bytes, at + 4)) << 32
        };
        Ok(Self {
            number: long(&header, 16),
            partition: word_at(&header, 12),
            len_bytes,
            rows: long(&footer, 0),
            position: long(&footer, 8),
            checksum: word_at(&footer, 20),
        })
    }
}

pub(super) fn header_of(version: u16, number: u64, partition: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&partition.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32_iscsi(&header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
}

pub(super) fn footer_of(rows: u64, position: u64, chain: u32) -> [u8; FOOTER_BYTES] {
    let mut footer = [0; FOOTER_BYTES];
    footer[..8].copy_from_slice(&rows.to_le_bytes());
    footer[8..16].copy_from_slice(&position.to_le_bytes());
    footer[16..20].copy_from_slice(&chain.to_le_bytes());
    let checksum = crc32_iscsi(&footer[..20]);
    footer[20..24].copy_from_slice(&checksum.to_le_bytes());
    footer[24..].copy_from_slice(&END_MAGIC);
    footer
}

/// The checksum over all headers, with `header` added.
pub(super) fn chained(chain: u32, header: &[u8]) -> u32 {
    crc32_iscsi(&[&chain.to_le_bytes(), header].concat())
}

pub(super) fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]))
}

#[cold]
pub(super) fn damaged(what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("the series file is damaged: {what}"),
    )
}
