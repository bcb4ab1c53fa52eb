//! The ends of a series: its oldest and newest sample, and the number of samples.
//!
//! Tested by the series' tests and the model test.

use super::MergeSource;
use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::Result;
use crate::format::batches::Source;
use crate::series::units::Piece;
use latewood_model::{Sample, Timestamp};

impl MergeSource {
    /// The newest sample, by a reversed walk.
    pub(crate) fn last_sample(mut self) -> Result<Option<Sample>> {
        self.reverse = true;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while self.next(&mut timestamps, &mut values)? {
            let inside = timestamps.partition_point(|&at| at <= self.to);
            if let Some(place) = inside.checked_sub(1)
                && timestamps[place] >= self.from
            {
                return Ok(Some(Sample::new(timestamps[place], values[place])));
            }
        }
        Ok(None)
    }

    /// The oldest sample, by a forward walk.
    pub(crate) fn first_sample(mut self) -> Result<Option<Sample>> {
        self.reverse = false;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while self.next(&mut timestamps, &mut values)? {
            let place = timestamps.partition_point(|&at| at < self.from);
            if let Some(&at) = timestamps.get(place)
                && at <= self.to
            {
                return Ok(Some(Sample::new(at, values[place])));
            }
        }
        Ok(None)
    }

    /// The number of samples, and the oldest one. Chunks and frames wholly inside
    /// the span are counted without decoding. Returns early once `cancelled` is true.
    pub(crate) fn count(mut self, cancelled: Cancelled<'_>) -> Result<(u64, Option<Timestamp>)> {
        self.reverse = false;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        let (mut count, mut first) = (0, None);
        while !is_cancelled(cancelled) {
            if let Some((low, high, samples)) = self.upcoming_count()
                && low >= self.from
                && high <= self.to
            {
                self.skip();
                count += samples;
                first = first.or(Some(low));
                continue;
            }
            if !self.next(&mut timestamps, &mut values)? {
                break;
            }
            let start = timestamps.partition_point(|&at| at < self.from);
            let end = timestamps.partition_point(|&at| at <= self.to).max(start);
            count += (end - start) as u64;
            first = first.or(timestamps[start..end].first().copied());
        }
        Ok((count, first))
    }

    /// First and last timestamp and number of samples of the next chunk or frame,
    /// if known without decoding.
    fn upcoming_count(&mut self) -> Option<(Timestamp, Timestamp, u64)> {
        if self.open.is_none() {
            let unit = self.upcoming_unit()?;
            let (first, last, count) = match self.units.piece(unit) {
                Piece::Stored(index) => {
                    let entry = &self.stored[*index].entry;
                    (entry.first, entry.last, u64::from(entry.count))
                }
                Piece::Held(chunk) => (chunk.first(), chunk.last(), chunk.count() as u64),
                Piece::Tail | Piece::Loose => return None,
            };
            self.units.reach(unit, self.reverse).ok()?;
            if self.units.ops_of(unit).is_empty() && !self.deleted.meets(first, last) {
                return Some((first, last, count));
            }
            self.open_next().ok()?;
        }
        let (chunk, frame) = self.plain_frame()?;
        let frame = chunk.frame(frame).ok()?;
        let (first, last) = (frame.first_timestamp(), frame.last_timestamp());
        (!self.deleted.meets(first, last)).then_some((first, last, frame.count() as u64))
    }
}
