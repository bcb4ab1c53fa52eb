//! Reading groups out of a segment file in bounded memory.
//!
//! A [`SegmentReader`] holds one window of the file and moves it on with big
//! reads. It answers whether a valid group stands at an offset, and, where a
//! group is missing, what groups behind the hole claim was durable: those
//! claims tell damage from a torn tail ([`crate::log::recover`]).

use crate::io::File;
use crate::log::group::{GroupHeader, HEADER_BYTES};
use crate::log::segment::DATA_OFFSET;
use crc_fast::crc32_iscsi;
use latewood_model::limits::LOG_GROUP_BYTES_MAX;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Bytes per read.
const READ_BYTES: usize = 4 * 1024 * 1024;
/// Where a group header has its sequence.
const SEQUENCE_OFFSET: usize = 8;
/// Zeros that are looked for at a time.
const ZEROS: usize = 64;

/// Groups of one segment file.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    file: Arc<dyn File>,
    len_bytes: u64,
    /// File offset of the first byte of `window`.
    window_offset: u64,
    window: Vec<u8>,
}

/// What groups behind a hole say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// The newest sequence any of them says was durable.
    pub(crate) synced: u64,
    /// How many valid groups were found.
    pub(crate) groups: u64,
    /// The highest sequence among them.
    pub(crate) last: u64,
}

impl SegmentReader {
    /// A reader of `file`, with the length it has now.
    pub(crate) fn new(file: Arc<dyn File>) -> io::Result<Self> {
        Ok(Self {
            len_bytes: file.len_bytes()?,
            file,
            window_offset: 0,
            window: Vec::new(),
        })
    }

    /// Length of the file when the reader was made.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Whether there is a byte that is not zero. Linear in the file.
    pub(crate) fn holds_anything(&mut self) -> io::Result<bool> {
        let mut offset = 0;
        while let Some(bytes) = self.bytes(offset, 1)? {
            if bytes.iter().any(|&byte| byte != 0) {
                return Ok(true);
            }
            offset += bytes.len() as u64;
        }
        Ok(false)
    }

    /// The bytes from `offset` on, at least `needed` of them, or `None` where
    /// the file ends earlier.
    fn bytes(&mut self, offset: u64, needed: usize) -> io::Result<Option<&[u8]>> {
        let left = self.len_bytes.saturating_sub(offset);
        if left < needed as u64 {
            return Ok(None);
        }
        let window_end = self.window_offset + self.window.len() as u64;
        if offset < self.window_offset || offset + needed as u64 > window_end {
            let wanted = left.min(needed.max(READ_BYTES) as u64);
            // At most a group or READ_BYTES: fits.
            self.window.resize(wanted as usize, 0);
            self.window_offset = offset;
            self.file.read_at(&mut self.window, offset)?;
        }
        // Inside the window, which is in memory.
        Ok(Some(&self.window[(offset - self.window_offset) as usize..]))
    }

    /// The valid group of `sequence` at `offset`, if there is one.
    pub(crate) fn group(
        &mut self,
        offset: u64,
        salt: u32,
        sequence: u64,
    ) -> io::Result<Option<(GroupHeader, &[u8])>> {
        let Some(header) = self.peek(offset)? else {
            return Ok(None);
        };
        let len = HEADER_BYTES + header.payload_bytes as usize;
        if header.sequence != sequence || header.payload_bytes as usize > LOG_GROUP_BYTES_MAX {
            return Ok(None);
        }
        let Some(bytes) = self.bytes(offset, len)? else {
            return Ok(None);
        };
        let Some((stored, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let payload = &rest[..header.payload_bytes as usize];
        Ok(header
            .verify(stored, payload, salt)
            .then_some((header, payload)))
    }

    /// Whatever valid groups of `salt` stand at or behind `offset`, with
    /// sequences from `sequence` on. Looks at every byte: linear in the rest of
    /// the file, and only done at the end of the log or at a hole.
    pub(crate) fn claims_behind(
        &mut self,
        mut offset: u64,
        salt: u32,
        sequence: u64,
    ) -> io::Result<Claims> {
        let mut claims = Claims::default();
        while let Some((at, header)) = self.next_group(offset, salt, sequence)? {
            claims.synced = claims.synced.max(header.synced());
            claims.groups += 1;
            claims.last = claims.last.max(header.sequence);
            offset = at + HEADER_BYTES as u64 + u64::from(header.payload_bytes);
        }
        Ok(claims)
    }

    /// The first valid group of `salt` at or behind `offset` with a sequence
    /// from `sequence` on, and where it stands. Linear in the bytes before it.
    pub(crate) fn next_group(
        &mut self,
        mut offset: u64,
        salt: u32,
        sequence: u64,
    ) -> io::Result<Option<(u64, GroupHeader)>> {
        // No more groups than this fit behind `offset`.
        let last = sequence.saturating_add(self.len_bytes / HEADER_BYTES as u64);
        while let Some(bytes) = self.bytes(offset, HEADER_BYTES)? {
            let skip = candidate(bytes, &(sequence..=last));
            let Some(skip) = skip else {
                // The last bytes of the window may begin a header.
                offset += (bytes.len() - HEADER_BYTES + 1) as u64;
                continue;
            };
            offset += skip as u64;
            let candidate = self.peek(offset)?.map_or(0, |header| header.sequence);
            if let Some((header, _)) = self.group(offset, salt, candidate)? {
                return Ok(Some((offset, header)));
            }
            offset += 1;
        }
        Ok(None)
    }

    /// The salt of a segment whose header is lost, as its first two groups
    /// imply it, with the sequence of the first. One group alone proves
    /// nothing and cannot claim its own segment durable either.
    pub(crate) fn implied_salt(&mut self) -> io::Result<Option<(u32, u64)>> {
        let Some(first) = self.peek(DATA_OFFSET)? else {
            return Ok(None);
        };
        let len = HEADER_BYTES + first.payload_bytes as usize;
        if first.payload_bytes as usize > LOG_GROUP_BYTES_MAX {
            return Ok(None);
        }
        let Some(bytes) = self.bytes(DATA_OFFSET, len)? else {
            return Ok(None);
        };
        let stored = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let unsalted = first.encode(crc32_iscsi(&bytes[HEADER_BYTES..len]), 0);
        let computed = u32::from_le_bytes([unsalted[4], unsalted[5], unsalted[6], unsalted[7]]);
        let salt = stored ^ computed;
        let Some(second) = first.sequence.checked_add(1) else {
            return Ok(None);
        };
        let second = self.group(DATA_OFFSET + len as u64, salt, second)?;
        Ok(second.map(|_| (salt, first.sequence)))
    }

    fn peek(&mut self, offset: u64) -> io::Result<Option<GroupHeader>> {
        let bytes = self.bytes(offset, HEADER_BYTES)?;
        Ok(bytes
            .and_then(|bytes| bytes.first_chunk::<HEADER_BYTES>())
            .and_then(GroupHeader::peek))
    }
}

/// Where the first header with a sequence among `sequences` may begin.
///
/// What a segment has not used yet is zero and is nearly all that is searched:
/// where a sequence would be zero, which none is, all that can only lead to zero
/// again is skipped.
fn candidate(bytes: &[u8], sequences: &RangeInclusive<u64>) -> Option<usize> {
    let last = bytes.len().checked_sub(HEADER_BYTES)?;
    let mut at = 0;
    while at <= last {
        let rest = &bytes[at + SEQUENCE_OFFSET..];
        let stored = u64::from_le_bytes(*rest.first_chunk()?);
        if sequences.contains(&stored) {
            return Some(at);
        }
        let is_zero = |ahead: &[u8; ZEROS]| ahead.iter().all(|&byte| byte == 0);
        at += match rest.first_chunk() {
            Some(ahead) if stored == 0 && is_zero(ahead) => ZEROS - size_of::<u64>() + 1,
            _ => 1,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_found_at_every_offset_and_none_in_zeros() {
        for at in 0..3 * ZEROS {
            for sequence in [1_u64, 255, 256, 1 << 20] {
                let mut bytes = vec![0; at + HEADER_BYTES];
                assert_eq!(candidate(&bytes, &(1..=u64::MAX)), None);
                bytes[at + SEQUENCE_OFFSET..][..8].copy_from_slice(&sequence.to_le_bytes());
                let found = candidate(&bytes, &(sequence..=sequence + 10));
                assert_eq!(found, Some(at), "{sequence} at {at}");
            }
        }
    }
}
