//! The parts of a block file that have a fixed size: header, root, footer.
//!
//! Each part holds the checksums of the parts it points to, so the footer's own
//! checksum covers the whole file: footer -> header and root -> index pages ->
//! chunks. Parsing checks every number against the file's length.
//! `docs/format/block.md` has the tables.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::{PARTITION_BITS, first_of};
use crate::storage::block::{BlockMeta, Family};
use crc_fast::crc32_iscsi;
use latewood_model::{SeriesId, Timestamp};

/// Size of the header, in every version.
pub(crate) const HEADER_BYTES: usize = 32;
pub(crate) const FOOTER_BYTES: usize = 88;
/// Size of a page's row in the root.
pub(crate) const PAGE_REF_BYTES: usize = 36;
/// Maximum size of an index page.
pub(crate) const PAGE_BYTES_MAX: usize = 16 * 1024;

const MAGIC: [u8; 8] = *b"LWOODBLK";
const END_MAGIC: [u8; 8] = *b"LWBLKEND";
/// The format of blocks whose ids fit 32 bits.
const VERSION: u16 = 1;
/// The same for the others: of ids, header, root and footer have the lower half only, and the
/// partition says the rest. A build that knows version 1 alone would take them for damaged.
const VERSION_WIDE: u16 = 2;
/// Partitions of ids that fit 32 bits.
const NARROW_PARTITIONS: u32 = 1 << (u32::BITS - PARTITION_BITS);
/// Timestamps are milliseconds.
const UNIT_MS: u8 = 0;

/// Whether `bytes` have the stored checksum. Always true in a fuzz build, because a
/// fuzzer cannot produce a matching checksum.
pub(crate) fn is_whole(bytes: &[u8], checksum: u32) -> bool {
    cfg!(fuzzing) || crc32_iscsi(bytes) == checksum
}

#[cold]
pub(crate) fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the block is damaged: {what}"))
}

/// A cursor over fields of a fixed width; the caller has checked the length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        let (head, rest) = self.0.split_at(N.min(self.0.len()));
        field[..head.len()].copy_from_slice(head);
        self.0 = rest;
        field
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.bytes())
    }
}

fn version_of(partition: u32) -> u16 {
    if partition < NARROW_PARTITIONS {
        VERSION
    } else {
        VERSION_WIDE
    }
}

/// The lower half of an id, as stored.
fn low_half(id: SeriesId) -> [u8; 4] {
    (id.0 as u32).to_le_bytes()
}

/// The id with this lower half and the upper one of another.
fn with_half_of(other: SeriesId, low: u32) -> SeriesId {
    SeriesId(other.0 & !u64::from(u32::MAX) | u64::from(low))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) family: Family,
    pub(crate) partition: u32,
    pub(crate) number: u64,
}

impl Header {
    pub(crate) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&version_of(self.partition).to_le_bytes());
        bytes[10] = self.family.number();
        bytes[11] = UNIT_MS;
        bytes[12..16].copy_from_slice(&self.partition.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        let checksum = crc32_iscsi(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// `Unsupported` for a later version, `Corrupt` if the bytes are not a header.
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self> {
        let mut fields = Fields(&bytes[..]);
        if fields.bytes::<8>() != MAGIC {
            return Err(corrupt("its first magic bytes are wrong"));
        }
        let version = u16::from_le_bytes(fields.bytes());
        let [family, unit] = fields.bytes();
        let (partition, number, spare) = (fields.u32(), fields.u64(), fields.u32());
        if !is_whole(&bytes[..28], fields.u32()) {
            return Err(corrupt("its header fails its checksum"));
        }
        if !(VERSION..=VERSION_WIDE).contains(&version) {
            let message = format!(
                "the block has format version {version}, this build knows version {VERSION_WIDE}"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        match Family::from_number(family) {
            Some(family) if unit == UNIT_MS && spare == 0 && version == version_of(partition) => {
                Ok(Self {
                    family,
                    partition,
                    number,
                })
            }
            _ => Err(corrupt("its header is invalid")),
        }
    }
}

/// The place of an index page and what it covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRef {
    /// Series of its first entry.
    pub(crate) first_id: SeriesId,
    pub(crate) len_bytes: u32,
    pub(crate) checksum: u32,
    /// Oldest and newest timestamp of its entries.
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// Offset of its first chunk in the file.
    pub(crate) chunks_offset: u64,
    /// Offset of the page in the file; not stored, because pages are end to end.
    pub(crate) offset: u64,
}

impl PageRef {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&low_half(self.first_id));
        out.extend_from_slice(&self.len_bytes.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.last.to_le_bytes());
        out.extend_from_slice(&self.chunks_offset.to_le_bytes());
    }
}

/// Reads the root: the rows of all pages.
///
/// # Errors
/// `Corrupt` if it contradicts itself or the footer.
pub(crate) fn parse_root(bytes: &[u8], footer: &Footer) -> Result<Vec<PageRef>> {
    if !is_whole(bytes, footer.root_checksum) {
        return Err(corrupt("its root fails its checksum"));
    }
    let mut pages: Vec<PageRef> = Vec::with_capacity(bytes.len() / PAGE_REF_BYTES);
    let mut offset = footer.index_offset;
    for row in bytes.chunks_exact(PAGE_REF_BYTES) {
        let mut fields = Fields(row);
        let page = PageRef {
            first_id: with_half_of(footer.first_id, fields.u32()),
            len_bytes: fields.u32(),
            checksum: fields.u32(),
            first: fields.i64(),
            last: fields.i64(),
            chunks_offset: fields.u64(),
            offset,
        };
        let (low, chunks_low) = match pages.last() {
            Some(before) => (before.first_id, before.chunks_offset),
            None => (footer.first_id, HEADER_BYTES as u64),
        };
        let sound = (1..=PAGE_BYTES_MAX as u32).contains(&page.len_bytes)
            && (low..=footer.last_id).contains(&page.first_id)
            && (chunks_low..=footer.index_offset).contains(&page.chunks_offset)
            && page.first <= page.last;
        if !sound {
            return Err(corrupt("its root is invalid"));
        }
        offset += u64::from(page.len_bytes);
        pages.push(page);
    }
    let starts = pages.first();
    let sound = starts.is_some_and(|page| {
        page.first_id == footer.first_id && page.chunks_offset == HEADER_BYTES as u64
    });
    if !sound || offset != footer.root_offset {
        return Err(corrupt("its root is invalid"));
    }
    Ok(pages)
}

/// The footer of a block: its totals and the place of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Where the chunks end and the index pages begin.
    pub(crate) index_offset: u64,
    /// Where the index pages end and the root begins.
    pub(crate) root_offset: u64,
    pub(crate) root_checksum: u32,
    /// Number of index pages.
    pub(crate) pages: u32,
    pub(crate) entries: u64,
    pub(crate) series: u64,
    pub(crate) samples: u64,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) first_id: SeriesId,
    pub(crate) last_id: SeriesId,
    pub(crate) header_checksum: u32,
}

impl Footer {
    /// The encoded footer and its checksum.
    pub(crate) fn encode(&self) -> ([u8; FOOTER_BYTES], u32) {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(&self.index_offset.to_le_bytes());
        out.extend_from_slice(&self.root_offset.to_le_bytes());
        out.extend_from_slice(&self.root_checksum.to_le_bytes());
        out.extend_from_slice(&self.pages.to_le_bytes());
        out.extend_from_slice(&self.entries.to_le_bytes());
        out.extend_from_slice(&self.series.to_le_bytes());
        out.extend_from_slice(&self.samples.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.last.to_le_bytes());
        out.extend_from_slice(&low_half(self.first_id));
        out.extend_from_slice(&low_half(self.last_id));
        out.extend_from_slice(&self.header_checksum.to_le_bytes());
        let checksum = crc32_iscsi(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&END_MAGIC);
        let mut bytes = [0; FOOTER_BYTES];
        bytes.copy_from_slice(&out);
        (bytes, checksum)
    }

    /// Reads the footer of a file of `len_bytes` with series of `partition`, and its checksum.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a footer or state another length.
    pub(crate) fn parse(
        bytes: &[u8; FOOTER_BYTES],
        len_bytes: u64,
        partition: u32,
    ) -> Result<(Self, u32)> {
        let mut fields = Fields(&bytes[..]);
        let footer = Self {
            index_offset: fields.u64(),
            root_offset: fields.u64(),
            root_checksum: fields.u32(),
            pages: fields.u32(),
            entries: fields.u64(),
            series: fields.u64(),
            samples: fields.u64(),
            first: fields.i64(),
            last: fields.i64(),
            first_id: with_half_of(first_of(partition), fields.u32()),
            last_id: with_half_of(first_of(partition), fields.u32()),
            header_checksum: fields.u32(),
        };
        let checksum = fields.u32();
        if fields.bytes::<8>() != END_MAGIC {
            return Err(corrupt("its last magic bytes are wrong"));
        }
        if !is_whole(&bytes[..76], checksum) {
            return Err(corrupt("its footer fails its checksum"));
        }
        let root_bytes = u64::from(footer.pages) * PAGE_REF_BYTES as u64;
        let end = footer.root_offset.checked_add(root_bytes);
        let sound = footer.index_offset >= HEADER_BYTES as u64
            && footer.index_offset <= footer.root_offset
            && end.and_then(|end| end.checked_add(FOOTER_BYTES as u64)) == Some(len_bytes)
            && footer.first <= footer.last
            && footer.first_id <= footer.last_id;
        if sound {
            Ok((footer, checksum))
        } else {
            Err(corrupt("its footer is invalid"))
        }
    }

    /// The description of the block for the manifest.
    pub(crate) fn meta(&self, header: Header, checksum: u32) -> BlockMeta {
        BlockMeta {
            number: header.number,
            partition: header.partition,
            family: header.family,
            len_bytes: self.root_offset
                + u64::from(self.pages) * PAGE_REF_BYTES as u64
                + FOOTER_BYTES as u64,
            first: self.first,
            last: self.last,
            samples: self.samples,
            entries: self.entries,
            series: self.series,
            checksum,
        }
    }
}
