//! Distance from a straight line: `t[i] = first + i * step + low + packed[i]`.
//!
//! Fits timestamps that jitter around a fixed grid, such as scrapes: the error
//! does not accumulate, so it takes fewer bits than a delta, and any timestamp
//! can be fetched in O(1), which makes a search a handful of loads.
//!
//! Layout: varint step, zigzag low, width byte, one packed value per sample.
//! All arithmetic wraps, so every input round-trips.

use crate::Error;
use crate::bitpack::{self, packed_len, width_of};
use crate::codings::Found;
use crate::varint::{Reader, put_varint, put_zigzag};

/// The line through the first and the last timestamp, and the deviation of the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    step: u64,
    low: i64,
    /// Bits per timestamp.
    pub(crate) width: u32,
}

impl Line {
    /// Expects at least two timestamps.
    pub(crate) fn fit(timestamps: &[i64]) -> Self {
        let (first, last) = (timestamps[0], timestamps[timestamps.len() - 1]);
        let gaps = timestamps.len() as u64 - 1;
        let span = last.wrapping_sub(first) as u64;
        let step = span / gaps + u64::from(span % gaps * 2 >= gaps);
        let (mut low, mut high) = (0i64, 0i64);
        let mut line = first;
        for timestamp in timestamps {
            let distance = timestamp.wrapping_sub(line);
            low = low.min(distance);
            high = high.max(distance);
            line = line.wrapping_add_unsigned(step);
        }
        Self {
            step,
            low,
            width: width_of(high.wrapping_sub(low) as u64),
        }
    }
}

/// Appends the timestamps along `line`, which was fitted to them.
pub(crate) fn encode(timestamps: &[i64], line: Line, scratch: &mut [u64], out: &mut Vec<u8>) {
    put_varint(line.step, out);
    put_zigzag(line.low, out);
    out.push(line.width as u8);
    let mut base = timestamps[0].wrapping_add(line.low);
    for (slot, timestamp) in scratch.iter_mut().zip(timestamps) {
        *slot = timestamp.wrapping_sub(base) as u64;
        base = base.wrapping_add_unsigned(line.step);
    }
    bitpack::pack(&scratch[..timestamps.len()], line.width, out);
}

pub(crate) fn decode(bytes: &[u8], first: i64, out: &mut [i64]) -> Result<(), Error> {
    let (line, packed) = parse(bytes, out.len())?;
    let mut base = first.wrapping_add(line.low);
    let mut block = [0u64; 64];
    let stride = packed_len(block.len(), line.width);
    for (index, slots) in out.chunks_mut(block.len()).enumerate() {
        let start = index * stride;
        let values = &mut block[..slots.len()];
        bitpack::unpack(
            &packed[start..start + packed_len(slots.len(), line.width)],
            line.width,
            values,
        );
        for (slot, value) in slots.iter_mut().zip(values) {
            *slot = base.wrapping_add_unsigned(*value);
            base = base.wrapping_add_unsigned(line.step);
        }
    }
    Ok(())
}

/// Index of the first timestamp >= `t` and whether it is `t`. O(log n), nothing unpacked.
pub(crate) fn search(bytes: &[u8], first: i64, count: usize, t: i64) -> Found {
    let (line, packed) = parse(bytes, count)?;
    let at = |index: usize| {
        first
            .wrapping_add(line.low)
            .wrapping_add_unsigned(line.step.wrapping_mul(index as u64))
            .wrapping_add_unsigned(bitpack::get(packed, line.width, index))
    };
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = (from + to) / 2;
        if at(middle) < t {
            from = middle + 1
        } else {
            to = middle
        }
    }
    Ok((from, from < count && at(from) == t))
}

fn parse(bytes: &[u8], count: usize) -> Result<(Line, &[u8]), Error> {
    let mut reader = Reader::new(bytes);
    let step = reader.varint()?;
    let low = reader.zigzag()?;
    let width = u32::from(reader.u8()?);
    if width > 64 {
        return Err(Error::Corrupt("a packed width exceeds 64 bits"));
    }
    Ok((
        Line { step, low, width },
        reader.take(packed_len(count, width))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::samples::{ascending, check};
    use proptest::prelude::*;

    /// The twin: the formula of the module's first line.
    fn naive_decode(bytes: &[u8], first: i64, count: usize) -> Vec<i64> {
        let (line, packed) = parse(bytes, count).unwrap();
        let offsets = bitpack::naive::unpack(packed, line.width, count);
        let at = |i: usize| {
            first as i128 + i as i128 * line.step as i128 + line.low as i128 + offsets[i] as i128
        };
        (0..count).map(|i| at(i) as i64).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_its_twin(timestamps in ascending()) {
            prop_assume!(timestamps.len() > 1);
            let mut bytes = Vec::new();
            encode(&timestamps, Line::fit(&timestamps), &mut [0; 512], &mut bytes);
            let (first, count) = (timestamps[0], timestamps.len());
            check(&timestamps, |back| decode(&bytes, first, back).unwrap(), |t| search(&bytes, first, count, t).unwrap());
            prop_assert_eq!(&naive_decode(&bytes, first, count), &timestamps);
        }
    }
}
