//! Deltas over their common divisor, patched frame of reference, restarts.
//!
//! Every block of 128 timestamps can be decoded alone. A directory before the
//! blocks gives their start in time and in bytes, so a search decodes one block.
//! Dividing by the greatest common divisor makes whole seconds or minutes as
//! cheap as if they were counted in that unit; gaps become patches.
//!
//! Layout: varint divisor; for each block: varint smallest delta, and unless it
//! is the last: varint distance to the next block's first timestamp (divided),
//! varint length in bytes; then the blocks (see `pfor`), each one delta short
//! of its timestamps.

use crate::Error;
use crate::codings::Found;
use crate::pfor::{self, BLOCK, Block};
use crate::varint::{Reader, put_varint};

/// Deltas that a search unpacks at once.
const GROUP: usize = 32;
/// Most blocks a frame can have.
const BLOCKS_MAX: usize = crate::FRAME_SAMPLES_MAX.div_ceil(BLOCK);

/// Appends two or more timestamps. `scratch` holds one delta per sample, `payload` the blocks.
pub(crate) fn encode(
    timestamps: &[i64],
    scratch: &mut [u64],
    payload: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let deltas = &mut scratch[..timestamps.len() - 1];
    for (delta, pair) in deltas.iter_mut().zip(timestamps.windows(2)) {
        *delta = pair[1].wrapping_sub(pair[0]) as u64;
    }
    let divisor = common_divisor(deltas);
    if divisor > 1 {
        deltas.iter_mut().for_each(|delta| *delta /= divisor);
    }
    put_varint(divisor, out);
    payload.clear();
    let mut start = 0;
    loop {
        let end = (start + BLOCK).min(timestamps.len());
        let is_last = end == timestamps.len();
        let (inside, bridge) = deltas[start..].split_at_mut(end - 1 - start);
        let base = inside.iter().copied().min().unwrap_or(0);
        put_varint(base, out);
        if !is_last {
            let span = inside
                .iter()
                .fold(bridge[0], |sum, delta| sum.wrapping_add(*delta));
            put_varint(span, out);
        }
        inside.iter_mut().for_each(|delta| *delta -= base);
        let before = payload.len();
        if !inside.is_empty() {
            pfor::encode_block(inside, payload);
        }
        if is_last {
            break;
        }
        put_varint((payload.len() - before) as u64, out);
        start = end;
    }
    out.extend_from_slice(payload);
}

pub(crate) fn decode(bytes: &[u8], first: i64, out: &mut [i64]) -> Result<(), Error> {
    let directory = Directory::parse(bytes, out.len())?;
    let mut start = first;
    for (slots, entry) in out.chunks_mut(BLOCK).zip(&directory.entries) {
        entry.decode(directory.divisor, start, slots)?;
        start = start.wrapping_add_unsigned(entry.span.wrapping_mul(directory.divisor));
    }
    Ok(())
}

/// Index of the first timestamp >= `t` and whether it is `t`, for `t` after the
/// first and before the last. Decodes one block.
pub(crate) fn search(bytes: &[u8], first: i64, count: usize, t: i64) -> Found {
    let directory = Directory::parse(bytes, count)?;
    let blocks = count.div_ceil(BLOCK);
    // Counts instead of stopping early: the block cannot be predicted.
    let (mut index, mut start, mut next) = (0, first, first);
    for (number, entry) in directory.entries[..blocks]
        .iter()
        .enumerate()
        .take(blocks - 1)
    {
        next = next.wrapping_add_unsigned(entry.span.wrapping_mul(directory.divisor));
        let is_past = t >= next;
        index = if is_past { number + 1 } else { index };
        start = if is_past { next } else { start };
    }
    let before = index * BLOCK;
    let inside = BLOCK.min(count - before) - 1;
    let distance = t.wrapping_sub(start) as u64;
    let (smaller, found) = directory.entries[index].search(directory.divisor, inside, distance)?;
    Ok((before + smaller, found))
}

#[derive(Clone, Copy, Default)]
struct Entry<'a> {
    /// Smallest delta of the block, divided.
    base: u64,
    /// Distance to the next block's first timestamp, divided; 0 for the last.
    span: u64,
    bytes: &'a [u8],
}

impl Entry<'_> {
    fn decode(&self, divisor: u64, start: i64, slots: &mut [i64]) -> Result<(), Error> {
        let mut deltas = [0u64; BLOCK];
        let deltas = &mut deltas[..slots.len() - 1];
        if !deltas.is_empty() {
            pfor::decode_block(&mut Reader::new(self.bytes), deltas)?;
        }
        let mut timestamp = start;
        slots[0] = start;
        let base = self.base.wrapping_mul(divisor);
        for (slot, delta) in slots[1..].iter_mut().zip(deltas) {
            timestamp =
                timestamp.wrapping_add_unsigned(delta.wrapping_mul(divisor).wrapping_add(base));
            *slot = timestamp;
        }
        Ok(())
    }

    /// How many timestamps lie less than `distance` after the block's first, and
    /// whether one lies exactly there. `inside` is the number of deltas.
    fn search(&self, divisor: u64, inside: usize, distance: u64) -> Found {
        let whole = distance / divisor;
        let exact = whole * divisor == distance;
        let target = whole + u64::from(!exact);
        if target == 0 || inside == 0 {
            return Ok((usize::from(target > 0), target == 0));
        }
        let block = Block::parse(&mut Reader::new(self.bytes), inside)?;
        let (mut at, mut smaller, mut found) = (0u64, 1, false);
        let mut deltas = [0u64; GROUP];
        for from in (0..inside).step_by(GROUP) {
            let group = &mut deltas[..GROUP.min(inside - from)];
            block.unpack(from, group)?;
            for delta in group {
                // Grouped so that one addition, not two, waits for the delta before.
                at = at.wrapping_add(delta.wrapping_add(self.base));
                smaller += usize::from(at < target);
                found |= at == target;
            }
            if at >= target {
                break;
            }
        }
        Ok((smaller, found && exact))
    }
}

struct Directory<'a> {
    divisor: u64,
    entries: [Entry<'a>; BLOCKS_MAX],
}

impl<'a> Directory<'a> {
    // Inlined, as copying the result out costs as much as the parsing.
    #[inline(always)]
    fn parse(bytes: &'a [u8], count: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let divisor = reader.varint()?;
        if divisor == 0 {
            return Err(Error::Corrupt("the divisor of timestamps is zero"));
        }
        let blocks = count.div_ceil(BLOCK);
        let mut entries = [Entry::default(); BLOCKS_MAX];
        let mut lens = [0usize; BLOCKS_MAX];
        for index in 0..blocks {
            entries[index].base = reader.varint()?;
            if index + 1 < blocks {
                entries[index].span = reader.varint()?;
                lens[index] = usize::try_from(reader.varint()?).map_err(|_| Error::Truncated)?;
            }
        }
        for index in 0..blocks {
            entries[index].bytes = if index + 1 < blocks {
                reader.take(lens[index])?
            } else {
                reader.rest()
            };
        }
        Ok(Self { divisor, entries })
    }
}

/// Greatest common divisor of all deltas; 1 ends the search early.
fn common_divisor(deltas: &[u64]) -> u64 {
    let mut divisor = deltas[0];
    for &delta in deltas {
        if delta != divisor && !delta.is_multiple_of(divisor) {
            let (mut a, mut b) = (divisor, delta % divisor);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            divisor = a;
            if divisor == 1 {
                break;
            }
        }
    }
    divisor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::samples::{ascending, naive_search, probes};
    use proptest::prelude::*;

    fn encoded(timestamps: &[i64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(timestamps, &mut [0; 512], &mut Vec::new(), &mut bytes);
        bytes
    }

    /// The twin: walks the whole section, sums one delta after the other.
    fn naive_decode(bytes: &[u8], first: i64, count: usize) -> Vec<i64> {
        let directory = Directory::parse(bytes, count).unwrap();
        let mut timestamps = vec![first];
        for (index, entry) in directory.entries[..count.div_ceil(BLOCK)]
            .iter()
            .enumerate()
        {
            let start = timestamps[index * BLOCK];
            let inside = BLOCK.min(count - index * BLOCK) - 1;
            let reader = Reader::new(entry.bytes);
            for at in 0..inside {
                let delta = pfor::get(&mut reader.clone(), inside, at).unwrap() + entry.base;
                let previous = timestamps[timestamps.len() - 1];
                timestamps
                    .push(previous.wrapping_add_unsigned(delta.wrapping_mul(directory.divisor)));
            }
            timestamps
                .push(start.wrapping_add_unsigned(entry.span.wrapping_mul(directory.divisor)));
        }
        timestamps.truncate(count);
        timestamps
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(timestamps in ascending()) {
            prop_assume!(timestamps.len() > 1);
            let bytes = encoded(&timestamps);
            let mut back = vec![0; timestamps.len()];
            decode(&bytes, timestamps[0], &mut back).unwrap();
            prop_assert_eq!(&back, &timestamps);
            prop_assert_eq!(&naive_decode(&bytes, timestamps[0], timestamps.len()), &timestamps);
            for t in probes(&timestamps) {
                if t > timestamps[0] && t < timestamps[timestamps.len() - 1] {
                    let found = search(&bytes, timestamps[0], timestamps.len(), t).unwrap();
                    prop_assert_eq!(found, naive_search(&timestamps, t));
                }
            }
        }
    }

    #[test]
    fn whole_minutes_cost_no_more_than_a_gap_list() {
        let timestamps: Vec<i64> = (0..520)
            .filter(|i| i % 100 != 7)
            .take(512)
            .map(|i| i * 60_000)
            .collect();
        assert!(
            encoded(&timestamps).len() < 40,
            "{} bytes",
            encoded(&timestamps).len()
        );
    }
}
