//! The index of a block: its symbols, and one series after the other.
//!
//! Format: version 2 of Prometheus' `tsdb/docs/format/index.md`. The symbols are held, series are read
//! as they come; checksums of both are verified. What needs no search is not read.

use super::chunk::signed;
use crc_fast::{CrcAlgorithm, checksum};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

/// The first bytes of an index of the version that is read.
const HEAD: [u8; 5] = [0xba, 0xaa, 0xd7, 0x00, 2];
/// Bytes of the table at the end: six places and a checksum.
const TABLE_BYTES: u64 = 52;
/// Bytes of one series, and of all symbols.
const SERIES_BYTES_MAX: u64 = 64 << 20;
const SYMBOLS_BYTES_MAX: u64 = 1 << 30;
/// Series begin at multiples of it.
const ALIGNMENT: u64 = 16;

/// Why a file cannot be read.
pub(super) type Why = String;

/// Where the samples of a part of a series lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkPlace {
    /// The file, counted from 0.
    pub(super) segment: usize,
    pub(super) offset: u64,
}

/// A series of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series {
    /// What tombstones call it.
    pub(super) reference: u64,
    pub(super) labels: Vec<(String, String)>,
    pub(super) chunks: Vec<ChunkPlace>,
}

/// An index under way.
pub(super) struct Index<R> {
    file: BufReader<R>,
    symbols: Vec<Box<str>>,
    at: u64,
    end: u64,
}

/// Bytes that are taken from the front.
pub(super) struct Taken<'a>(pub(super) &'a [u8]);

impl<'a> Taken<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn uvarint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.bytes(1)?[0]);
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn varint(&mut self) -> Option<i64> {
        self.uvarint().map(signed)
    }

    fn be_u32(&mut self) -> Option<u32> {
        let bytes = self.bytes(4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    fn be_u64(&mut self) -> Option<u64> {
        let bytes = self.bytes(8)?.try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    }
}

/// What stands before the checksum at the end of `bytes`, if that is right.
pub(super) fn checked(bytes: &[u8]) -> Result<&[u8], Why> {
    let (body, sum) = bytes.split_last_chunk().ok_or("it is cut off")?;
    let found = checksum(CrcAlgorithm::Crc32Iscsi, body);
    if found == u64::from(u32::from_be_bytes(*sum)) {
        Ok(body)
    } else {
        Err("the checksum is wrong".to_owned())
    }
}

impl Index<File> {
    /// Opens an index and reads its symbols.
    pub(super) fn open(path: &Path) -> Result<Self, Why> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        Self::new(file, length)
    }
}

impl<R: Read + Seek> Index<R> {
    /// The same of what stands at the beginning and has `length` bytes.
    pub(super) fn new(file: R, length: u64) -> Result<Self, Why> {
        let mut index = Self {
            file: BufReader::with_capacity(1 << 20, file),
            symbols: Vec::new(),
            at: 0,
            end: 0,
        };
        if index.read(0, HEAD.len() as u64)? != HEAD {
            return Err("expected an index of version 2".to_owned());
        }
        let table_at = length.checked_sub(TABLE_BYTES).ok_or("it is cut off")?;
        let table = index.read(table_at, TABLE_BYTES)?;
        let mut table = Taken(checked(&table)?);
        let mut place = || table.be_u64().ok_or("it is cut off");
        let (symbols_at, series_at) = (place()?, place()?);
        // Whatever follows the series: a section that is missing has the place 0.
        let behind = [place()?, place()?, place()?, place()?];
        let behind = behind.into_iter().filter(|place| *place > series_at);
        index.end = behind.min().unwrap_or(table_at).min(table_at);
        index.read_symbols(symbols_at)?;
        index.at = series_at;
        Ok(index)
    }

    /// The next series; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Series>, Why> {
        self.at = self.at.next_multiple_of(ALIGNMENT);
        while self.at < self.end {
            let begin = self.at;
            let length = self.length_at(begin)?;
            let Some((length, prefix)) = length else {
                // Between sections there may be more zeros than one place.
                self.at += ALIGNMENT;
                continue;
            };
            if length > SERIES_BYTES_MAX {
                return Err(format!("a series of {length} bytes at {begin}"));
            }
            let bytes = self.read(begin + prefix, length + 4)?;
            self.at = (begin + prefix + length + 4).next_multiple_of(ALIGNMENT);
            let body = checked(&bytes).map_err(|why| format!("series at {begin}: {why}"))?;
            let series = self.series(begin / ALIGNMENT, body);
            return series
                .map(Some)
                .ok_or_else(|| format!("series at {begin}: it is invalid"));
        }
        Ok(None)
    }

    /// The length that a series begins with, and the bytes of that; `None` for zero.
    fn length_at(&mut self, at: u64) -> Result<Option<(u64, u64)>, Why> {
        let most = 10.min(self.end - at);
        let bytes = self.read(at, most)?;
        let mut taken = Taken(&bytes);
        let length = taken
            .uvarint()
            .ok_or_else(|| format!("no length at {at}"))?;
        let prefix = most - taken.0.len() as u64;
        Ok((length > 0).then_some((length, prefix)))
    }

    fn series(&self, reference: u64, body: &[u8]) -> Option<Series> {
        let mut body = Taken(body);
        let symbol = |number: u64| {
            let number = usize::try_from(number).ok()?;
            self.symbols
                .get(number)
                .map(|symbol| String::from(&**symbol))
        };
        let mut labels = Vec::new();
        for _ in 0..body.uvarint()? {
            labels.push((symbol(body.uvarint()?)?, symbol(body.uvarint()?)?));
        }
        let mut chunks = Vec::new();
        let mut place = 0_u64;
        for number in 0..body.uvarint()? {
            // The times are in the chunks too.
            if number == 0 {
                body.varint()?;
            } else {
                body.uvarint()?;
            }
            body.uvarint()?;
            place = match number {
                0 => body.uvarint()?,
                _ => place.wrapping_add(body.varint()? as u64),
            };
            chunks.push(ChunkPlace {
                segment: usize::try_from(place >> 32).ok()?,
                offset: place & u64::from(u32::MAX),
            });
        }
        Some(Series {
            reference,
            labels,
            chunks,
        })
    }

    fn read_symbols(&mut self, at: u64) -> Result<(), Why> {
        let head = self.read(at, 4)?;
        let length = Taken(&head).be_u32().map_or(0, u64::from);
        if length > SYMBOLS_BYTES_MAX {
            return Err(format!("symbols of {length} bytes"));
        }
        let bytes = self.read(at + 4, length + 4)?;
        let body = checked(&bytes).map_err(|why| format!("symbols: {why}"))?;
        let mut body = Taken(body);
        let count = body.be_u32().ok_or("symbols are cut off")?;
        for _ in 0..count {
            let symbol = body.uvarint().and_then(|length| {
                let text = body.bytes(usize::try_from(length).ok()?)?;
                std::str::from_utf8(text).ok()
            });
            self.symbols
                .push(symbol.ok_or("a symbol is not UTF-8")?.into());
        }
        Ok(())
    }

    fn read(&mut self, at: u64, count: u64) -> Result<Vec<u8>, Why> {
        let here = self
            .file
            .stream_position()
            .map_err(|error| error.to_string())?;
        // Relative, so that what is in the buffer stays.
        let by = (at as i64).wrapping_sub(here as i64);
        let moved = self.file.seek_relative(by);
        moved.map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let read = self.file.by_ref().take(count).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        if bytes.len() as u64 != count {
            return Err(format!("it ends before {count} bytes at {at}"));
        }
        Ok(bytes)
    }
}
