//! Double delta with five prefix classes, as in the Gorilla paper.
//!
//! After Pelkonen et al., "Gorilla: A Fast, Scalable, In-Memory Time Series
//! Database" (VLDB 2015), section 4.1.1; the last class has 64 bits instead of
//! 32 so that every i64 round-trips. The first timestamp is in the header and
//! the delta before it counts as zero. Kept as the reference coding; the encoder
//! never chooses it because it must be read from the start.

use crate::Error;
use crate::bits::{BitReader, BitWriter};
use crate::codings::Found;

/// Payload bits of the classes `10`, `110`, `1110` and `1111`.
const CLASSES: [u32; 4] = [7, 9, 12, 64];

/// Appends all timestamps after the first.
pub(crate) fn encode(timestamps: &[i64], out: &mut Vec<u8>) {
    let mut bits = BitWriter::new(out);
    let mut previous_delta = 0i64;
    for pair in timestamps.windows(2) {
        let delta = pair[1].wrapping_sub(pair[0]);
        let double_delta = delta.wrapping_sub(previous_delta);
        previous_delta = delta;
        if double_delta == 0 {
            bits.put(0, 1);
            continue;
        }
        let class = CLASSES[..3]
            .iter()
            .position(|width| fits(double_delta, *width))
            .unwrap_or(3);
        // Ones for every class passed over, then a zero; the last class needs no zero.
        let prefix_bits = (class as u32 + 2).min(4);
        bits.put((1 << (class + 1)) - 1, prefix_bits);
        bits.put(double_delta as u64, CLASSES[class]);
    }
    bits.finish();
}

pub(crate) fn decode(bytes: &[u8], first: i64, out: &mut [i64]) -> Result<(), Error> {
    let mut cursor = Cursor {
        bits: BitReader::new(bytes),
        timestamp: first,
        delta: 0,
    };
    if let Some((slot, rest)) = out.split_first_mut() {
        *slot = first;
        for slot in rest {
            *slot = cursor.next()?;
        }
    }
    Ok(())
}

/// Index of the first timestamp >= `t` and whether it is `t`. O(n): this coding has no random access.
pub(crate) fn search(bytes: &[u8], first: i64, count: usize, t: i64) -> Found {
    let mut cursor = Cursor {
        bits: BitReader::new(bytes),
        timestamp: first,
        delta: 0,
    };
    let mut index = 0;
    while cursor.timestamp < t {
        index += 1;
        if index == count {
            return Ok((count, false));
        }
        cursor.next()?;
    }
    Ok((index, cursor.timestamp == t))
}

/// Whether `value` fits `width` bits of two's complement.
fn fits(value: i64, width: u32) -> bool {
    let shift = 64 - width;
    value << shift >> shift == value
}

struct Cursor<'a> {
    bits: BitReader<'a>,
    timestamp: i64,
    delta: i64,
}

impl Cursor<'_> {
    fn next(&mut self) -> Result<i64, Error> {
        if self.bits.bit()? {
            let mut class = 0;
            while class < 3 && self.bits.bit()? {
                class += 1;
            }
            let shift = 64 - CLASSES[class];
            let double_delta = (self.bits.get(CLASSES[class])? << shift) as i64 >> shift;
            self.delta = self.delta.wrapping_add(double_delta);
        }
        self.timestamp = self.timestamp.wrapping_add(self.delta);
        Ok(self.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::samples::{ascending, check};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips_and_searches(timestamps in ascending()) {
            let mut bytes = Vec::new();
            encode(&timestamps, &mut bytes);
            let (first, count) = (timestamps[0], timestamps.len());
            check(&timestamps, |back| decode(&bytes, first, back).unwrap(), |t| search(&bytes, first, count, t).unwrap());
        }
    }

    #[test]
    fn a_steady_series_takes_a_bit_a_timestamp() {
        let timestamps: Vec<i64> = (0..512).map(|i| i * 10_000).collect();
        let mut bytes = Vec::new();
        encode(&timestamps, &mut bytes);
        assert!(bytes.len() <= 512 / 8 + 9, "{} bytes", bytes.len());
    }
}
