//! Continuing a replay after a hole in the log. Tested by `tests/log_quarantine.rs`.
//!
//! A hole is a run of groups that were durable and are not there, or not as
//! they were written. Groups are self-contained and say their sequence, so
//! those behind a hole are applied as ever: numbers of series are not used
//! twice in what the log still needs, hence no sample can come to a series it
//! was not written to. What the lost groups said is missing, deletions
//! included; `docs/durability.md` tells operators what that means. The sink
//! hears of the hole before anything behind it, and what stands in its place
//! goes to quarantine.

use crate::base::error::Result;
use crate::log::found::FoundSegment;
use crate::log::group::HEADER_BYTES;
use crate::log::reader::SegmentReader;
use crate::log::report::LogHole;
use crate::log::segment::{DATA_OFFSET, SegmentHeader};
use crate::log::walk::Walk;

impl Walk<'_, '_> {
    /// Goes on behind a hole at `offset` of a segment that is being read. The
    /// offset of the next group, or `None` where this segment has none.
    pub(crate) fn skip_hole(
        &mut self,
        segment: &FoundSegment,
        header: &SegmentHeader,
        reader: &mut SegmentReader,
        offset: u64,
    ) -> Result<Option<u64>> {
        let next = reader
            .next_group(offset, header.salt, self.expected)
            .map_err(|error| segment.failed(error))?
            // What a later segment took over was cut once.
            .filter(|(_, group)| group.sequence < segment.limit);
        // A segment that was cut may end before its first group.
        let end = reader.len_bytes().max(offset);
        let (at, sequence) = match next {
            Some((at, group)) => (at, group.sequence),
            None if segment.limit == u64::MAX => (end, self.expected),
            None => (end, segment.limit),
        };
        let hole = LogHole {
            segment: segment.path.clone(),
            offset,
            len_bytes: at - offset,
            first: self.expected,
            groups: sequence - self.expected,
            kept_as: None,
        };
        self.note_hole(hole, Some(segment))?;
        self.expected = sequence;
        Ok(next.map(|(at, _)| at))
    }

    /// Goes on with the started segment behind sequences that are nowhere.
    pub(crate) fn skip_gap(&mut self, segment: &FoundSegment, first_sequence: u64) -> Result<()> {
        let hole = LogHole {
            segment: segment.path.clone(),
            offset: DATA_OFFSET,
            len_bytes: 0,
            first: self.expected,
            groups: first_sequence - self.expected,
            kept_as: None,
        };
        self.note_hole(hole, None)?;
        self.expected = first_sequence;
        Ok(())
    }

    /// Moves a segment without a header away; `last` is the highest sequence
    /// seen in it.
    pub(crate) fn quarantine_segment(&mut self, segment: &FoundSegment, last: u64) -> Result<()> {
        let len_bytes = segment.reader()?.len_bytes();
        let end = match last {
            // Nothing in it can be read: it had all up to the next segment.
            0 if segment.limit < u64::MAX && !self.ended => segment.limit,
            0 => self.expected,
            _ => last.saturating_add(1).min(segment.limit),
        };
        let end = end.max(self.expected);
        let hole = LogHole {
            segment: segment.path.clone(),
            offset: 0,
            len_bytes,
            first: self.expected,
            groups: end - self.expected,
            kept_as: self.quarantine(|quarantine| quarantine.take(&segment.path))?,
        };
        self.note_hole(hole, None)?;
        self.expected = end;
        Ok(())
    }

    /// Reports a hole, unless nothing in it is needed, and keeps a copy of
    /// what stands there in `copied`.
    fn note_hole(&mut self, mut hole: LogHole, copied: Option<&FoundSegment>) -> Result<()> {
        let trimmed = self.start.saturating_sub(hole.first).min(hole.groups);
        if hole.groups > 0 && trimmed == hole.groups {
            return Ok(());
        }
        hole.first += trimmed;
        hole.groups -= trimmed;
        if let Some(segment) = copied
            && hole.len_bytes >= HEADER_BYTES as u64
        {
            let (offset, len) = (hole.offset, hole.len_bytes);
            hole.kept_as = self.quarantine(|quarantine| {
                quarantine.copy(&*segment.file, &segment.path, offset, len)
            })?;
        }
        self.lost_from.get_or_insert(hole.first);
        self.dispatcher.hole(hole.first, hole.groups)?;
        self.report.holes.push(hole);
        Ok(())
    }
}
