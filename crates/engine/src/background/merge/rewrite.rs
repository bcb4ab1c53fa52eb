//! Blocks into blocks: stretches of base blocks, with what lies over them
//! folded in, and stretches of late blocks.
//!
//! A walk over all inputs at once, series by series; of one series no more than
//! a window is in memory. Series that are gone and samples that are too old
//! stay behind. Nothing here holds a lock or changes what is published.

use crate::background::merge::cursor::{Cursor, next_id};
use crate::background::merge::fold::Folder;
use crate::background::merge::join::block_shape;
use crate::background::merge::living::Living;
use crate::background::merge::output::{Outputs, Slot, Slots};
use crate::background::merge::overlays::SeriesOverlays;
use crate::background::merge::regions::{Region, regions};
use crate::base::error::Result;
use crate::series::Facts;
use crate::series::overlay::overlay_chunks;
use crate::storage::block::{Block, BlockMeta, Entry, Family, Kind};
use latewood_codec::Encoder;
use latewood_model::{SeriesId, Timestamp};
use std::ops::Range;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// What to rewrite of one partition.
pub(crate) struct Rewrite<'a> {
    pub(crate) partition: u32,
    pub(crate) living: &'a Living,
    /// All base blocks, in list order.
    pub(crate) base: &'a [Arc<Block>],
    /// Late blocks to fold: all there are, or none.
    pub(crate) late: &'a [Arc<Block>],
}

/// A stretch of base blocks and where its outputs begin, but for the first.
pub(crate) struct Stretch {
    pub(crate) places: Range<usize>,
    pub(crate) borders: Vec<Timestamp>,
}

/// What was written.
pub(crate) struct Rewritten {
    /// In place of each stretch.
    pub(crate) base: Vec<Vec<BlockMeta>>,
    /// In place of the late blocks: what lies over other base blocks.
    pub(crate) late: Option<BlockMeta>,
}

struct Group {
    places: Range<usize>,
    cursors: Vec<Cursor>,
    slots: Slots,
    /// Of the current series: which cursor has it, and the entry.
    entries: Vec<(usize, Entry)>,
}

impl Rewrite<'_> {
    /// Writes new blocks for the stretches, which ascend.
    ///
    /// # Errors
    /// `Io` and `Corrupt` where a block cannot be read, `Io` where one cannot
    /// be written.
    pub(crate) fn base(
        &self,
        stretches: &[Stretch],
        outputs: &mut Outputs<'_>,
    ) -> Result<Rewritten> {
        let groups = stretches.iter().map(|stretch| self.group(stretch));
        let mut groups = groups.collect::<Result<Vec<Group>>>()?;
        let late: Result<Vec<Cursor>> = self.late.iter().map(Cursor::new).collect();
        let mut late = late?;
        let mut left = Slot::new(self.partition, Family::Late);
        let mut encoder = Encoder::new();
        let all = |groups: &[Group], late: &[Cursor]| {
            let cursors = groups.iter().flat_map(|group| &group.cursors);
            next_id(cursors.chain(late))
        };
        while let Some(id) = all(&groups, &late) {
            for group in &mut groups {
                group.take(id)?;
            }
            let overlays = take_overlays(&mut late, id)?;
            let Some(facts) = self.living.get(id) else {
                continue;
            };
            if overlays.is_empty() {
                for group in &mut groups {
                    let span = (Timestamp::MIN, Timestamp::MAX);
                    group.fold(id, facts, span, &overlays, &mut encoder, outputs)?;
                }
                continue;
            }
            let regions = self.regions(id, &groups)?;
            for (index, group) in groups.iter_mut().enumerate() {
                if let Some(span) = span_of(&regions, &group.places, index == 0) {
                    group.fold(id, facts, span, &overlays, &mut encoder, outputs)?;
                }
            }
            for region in &regions {
                let is_folded = |group: &Group| group.places.contains(&region.place);
                if !groups.iter().any(is_folded) {
                    let span = (region.from, region.to);
                    write_late(&mut left, id, facts, span, &overlays, &mut encoder, outputs)?;
                }
            }
        }
        let base = groups.into_iter().map(|group| group.slots.finish());
        Ok(Rewritten {
            base: base.collect::<Result<_>>()?,
            late: left.finish()?,
        })
    }

    /// Merges a stretch of late blocks into one, if anything is left.
    ///
    /// # Errors
    /// As [`Rewrite::base`].
    pub(crate) fn late(&self, outputs: &mut Outputs<'_>) -> Result<Option<BlockMeta>> {
        let cursors: Result<Vec<Cursor>> = self.late.iter().map(Cursor::new).collect();
        let mut cursors = cursors?;
        let mut slot = Slot::new(self.partition, Family::Late);
        let mut encoder = Encoder::new();
        while let Some(id) = next_id(&cursors) {
            let overlays = take_overlays(&mut cursors, id)?;
            if let Some(facts) = self.living.get(id) {
                let span = (Timestamp::MIN, Timestamp::MAX);
                write_late(&mut slot, id, facts, span, &overlays, &mut encoder, outputs)?;
            }
        }
        slot.finish()
    }

    fn group(&self, stretch: &Stretch) -> Result<Group> {
        let blocks = self.base[stretch.places.clone()].iter();
        Ok(Group {
            places: stretch.places.clone(),
            cursors: blocks.map(Cursor::new).collect::<Result<_>>()?,
            slots: Slots::new(self.partition, stretch.borders.clone()),
            entries: Vec::new(),
        })
    }

    /// The regions of a series over all base blocks.
    fn regions(&self, id: SeriesId, groups: &[Group]) -> Result<Vec<Region>> {
        let mut firsts = Vec::new();
        for (place, block) in self.base.iter().enumerate() {
            let first = match groups.iter().find(|group| group.places.contains(&place)) {
                Some(group) => group.first_in(place),
                None => first_of(block, id)?,
            };
            firsts.extend(first.map(|first| (place, first)));
        }
        Ok(regions(&firsts))
    }
}

impl Group {
    fn take(&mut self, id: SeriesId) -> Result<()> {
        self.entries.clear();
        for (index, cursor) in self.cursors.iter_mut().enumerate() {
            let entries = cursor.take(id)?;
            self.entries
                .extend(entries.into_iter().map(|entry| (index, entry)));
        }
        Ok(())
    }

    /// The first timestamp of the current series in the block at `place`.
    fn first_in(&self, place: usize) -> Option<Timestamp> {
        let cursor = place - self.places.start;
        let entry = self.entries.iter().find(|(index, _)| *index == cursor);
        entry.map(|(_, entry)| entry.first)
    }

    /// Refuses chunks of the current series that do not ascend over all base blocks,
    /// where those of the other blocks end before `span` and begin behind it.
    fn check_order(&self, span: (Timestamp, Timestamp)) -> Result<()> {
        let mut before = None;
        for (cursor, entry) in &self.entries {
            if before.is_some_and(|before| entry.first <= before) || entry.last > span.1 {
                let block = &self.cursors[*cursor].block;
                return Err(block.damaged(entry, "overlaps those of another block"));
            }
            before = Some(entry.last);
        }
        Ok(())
    }

    /// Folds the overlays of `span` into the chunks of the current series.
    fn fold(
        &mut self,
        id: SeriesId,
        facts: Facts,
        span: (Timestamp, Timestamp),
        overlays: &SeriesOverlays,
        encoder: &mut Encoder,
        outputs: &mut Outputs<'_>,
    ) -> Result<()> {
        self.check_order(span)?;
        let mut folder = Folder::new(facts.shape, facts.floor, encoder);
        let (mut from, mut next) = (span.0, 0);
        for end in overlays.windows(span.0, span.1) {
            let mut to = end.max(from);
            let rest = &self.entries[next..];
            let chunks = rest.partition_point(|(_, entry)| entry.first <= to);
            if let Some(last) = chunks.checked_sub(1) {
                // A chunk lies in one window.
                to = to.max(rest[last].1.last);
            }
            let (ops, deleted) = overlays.read(from.max(facts.floor), to)?;
            folder.window(ops, deleted)?;
            for place in next..next + chunks {
                let (cursor, entry) = self.entries[place];
                if folder.drops(entry.first, entry.last) {
                    continue;
                }
                let chunk = self.cursors[cursor].chunk(&entry)?;
                let following = self.entries[place + 1..next + chunks].first();
                let until = following.map_or(to, |(_, next)| next.first.saturating_sub(1));
                folder.chunk(&chunk, until)?;
                for chunk in folder.take_done() {
                    outputs.base_chunk(&mut self.slots, id, &chunk)?;
                }
            }
            next += chunks;
            match to.checked_add(1) {
                Some(start) if start <= span.1 => from = start,
                _ => break,
            }
        }
        for chunk in folder.finish()? {
            outputs.base_chunk(&mut self.slots, id, &chunk)?;
        }
        Ok(())
    }
}

/// The regions of a group's blocks, side by side as they are. The `first` group
/// takes what belongs to no block.
fn span_of(
    regions: &[Region],
    places: &Range<usize>,
    first: bool,
) -> Option<(Timestamp, Timestamp)> {
    let mut of_group = regions
        .iter()
        .filter(|region| places.contains(&region.place));
    match of_group.next() {
        Some(region) => {
            let last = of_group.next_back().unwrap_or(region);
            Some((region.from, last.to))
        }
        None => (first && regions.is_empty()).then_some((Timestamp::MIN, Timestamp::MAX)),
    }
}

/// The first timestamp that a block has of a series.
pub(crate) fn first_of(block: &Block, id: SeriesId) -> Result<Option<Timestamp>> {
    let mut first = None;
    block.find(id, Timestamp::MIN, Timestamp::MAX, |entry| {
        first = first.or(Some(entry.first));
    })?;
    Ok(first)
}

fn take_overlays(late: &mut [Cursor], id: SeriesId) -> Result<SeriesOverlays> {
    let mut overlays = SeriesOverlays::default();
    for cursor in late {
        let entries = cursor.take(id)?;
        overlays.add(&cursor.block, entries);
    }
    Ok(overlays)
}

/// Writes what is left of the overlays in `span`.
fn write_late(
    slot: &mut Slot,
    id: SeriesId,
    facts: Facts,
    span: (Timestamp, Timestamp),
    overlays: &SeriesOverlays,
    encoder: &mut Encoder,
    outputs: &mut Outputs<'_>,
) -> Result<()> {
    let mut from = span.0.max(facts.floor);
    if from > span.1 {
        return Ok(());
    }
    for end in overlays.windows(from, span.1) {
        let (ops, deleted) = overlays.read(from, end)?;
        // Operations under a deletion are gone already, so it may come first.
        for (from, to) in deleted.iter() {
            outputs.tombstone(slot, id, from, to)?;
        }
        for (policy, chunk) in overlay_chunks(&ops, block_shape(facts.shape), encoder)? {
            outputs.chunk(slot, id, Kind::Overlay(policy), &chunk)?;
        }
        from = end.saturating_add(1);
    }
    Ok(())
}
