//! Chunks of RedisTimeSeries: Gorilla with buckets of its own, or plain samples.
//!
//! ```text
//! compressed:   bytes, samples, bits, first value, first timestamp, last timestamp, last delta,
//!               last value, leading, trailing, data
//! uncompressed: first timestamp, samples, bytes, data: (timestamp, value) of 16 bytes each
//! ```
//! The data of a compressed chunk are words of 64 bits, filled from their low ends. Each sample but
//! the first is its delta of deltas and the XOR of its value with the one before:
//!
//! | bits | delta of deltas |      | bits | value |
//! |---|---|---|---|---|
//! | `0` | 0 | | `0` | the same |
//! | `10` | 5 bits, signed | | `10` | XOR in the bits that the one before used |
//! | `110` to `11110` | 8, 11, 15 bits | | `11` | 5 bits of leading zeros, 6 of the length less 1, XOR |
//! | `111110`, `111111` | 32, 64 bits | | | |
//!
//! (The first bit is the lowest.) Source: RedisTimeSeries' `gorilla.c`; the scheme is that of
//! Pelkonen et al., "Gorilla", VLDB 2015.

use crate::bytes::Bytes;
use crate::error::Result;
use crate::module::Fields;
use std::io::Read;

/// Widths of a delta of deltas, each with one more set bit before it.
const WIDTHS: [u32; 5] = [5, 8, 11, 15, 32];
/// Bits of the number of leading zeros, and of the length.
const LEADING_BITS: u32 = 5;
const LENGTH_BITS: u32 = 6;
/// Bytes of a chunk's data: twice what CHUNK_SIZE may be. Two bits may be a sample.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Bytes of a plain sample.
pub(crate) const SAMPLE_BYTES: usize = 16;

/// Timestamps and values, ascending in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples {
    pub(crate) timestamps: Vec<i64>,
    pub(crate) values: Vec<f64>,
}

impl Samples {
    pub(crate) fn push(&mut self, timestamp: u64, value: u64) -> Option<()> {
        let timestamp = i64::try_from(timestamp).ok()?;
        if self
            .timestamps
            .last()
            .is_some_and(|&last| last >= timestamp)
        {
            return None;
        }
        self.timestamps.push(timestamp);
        self.values.push(f64::from_bits(value));
        Some(())
    }
}

impl<R: Read> Bytes<R> {
    /// A chunk, whose samples are not decoded yet.
    pub(crate) fn chunk(&mut self, is_compressed: bool) -> Result<Chunk> {
        let chunk = if is_compressed {
            let (size, count, bits) = (self.unsigned()?, self.unsigned()?, self.unsigned()?);
            let (value, timestamp) = (self.unsigned()?, self.unsigned()?);
            for _ in 0..5 {
                self.unsigned()?;
            }
            let data = self.data(size)?;
            data.and_then(|data| Chunk::compressed(count, bits, (timestamp, value), data))
        } else {
            let (_, count, size) = (self.unsigned()?, self.unsigned()?, self.unsigned()?);
            let data = self.data(size)?;
            data.and_then(|data| Chunk::plain(count, data))
        };
        match chunk {
            Some(chunk) => Ok(chunk),
            None => self.damaged("a chunk is damaged"),
        }
    }

    /// The data of a chunk; `None` if they are not as long as it says.
    fn data(&mut self, size: u64) -> Result<Option<Vec<u8>>> {
        let data = self.text(CHUNK_BYTES_MAX)?;
        Ok((data.len() as u64 == size).then_some(data))
    }
}

/// A chunk that is read.
pub(crate) struct Chunk {
    data: Vec<u8>,
    form: Form,
    /// Samples to come.
    left: u64,
}

enum Form {
    /// The place of the next sample.
    Plain(usize),
    Compressed(Decompressor),
}

/// Where the reading of a compressed chunk is.
struct Decompressor {
    at: usize,
    end: usize,
    is_first: bool,
    timestamp: u64,
    value: u64,
    delta: i64,
    trailing: u32,
    length: u32,
}

impl Chunk {
    fn plain(count: u64, data: Vec<u8>) -> Option<Self> {
        let bytes = usize::try_from(count).ok()?.checked_mul(SAMPLE_BYTES)?;
        (bytes <= data.len()).then_some(Self {
            data,
            form: Form::Plain(0),
            left: count,
        })
    }

    fn compressed(count: u64, bits: u64, first: (u64, u64), data: Vec<u8>) -> Option<Self> {
        let end = usize::try_from(bits).ok()?;
        // Each sample but the first takes two bits at least.
        let fits = data.len().is_multiple_of(8) && end <= data.len() * 8;
        if !fits || bits / 2 < count.saturating_sub(1) {
            return None;
        }
        let form = Form::Compressed(Decompressor {
            at: 0,
            end,
            is_first: true,
            timestamp: first.0,
            value: first.1,
            delta: 0,
            trailing: 0,
            length: 0,
        });
        let left = count;
        Some(Self { data, form, left })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Adds the next samples, `count_max` at most; `None` if they are damaged.
    pub(crate) fn read(&mut self, count_max: u64, samples: &mut Samples) -> Option<()> {
        for _ in 0..self.left.min(count_max) {
            let (timestamp, value) = match &mut self.form {
                Form::Plain(at) => {
                    let sample = self.data.get(*at..)?.first_chunk::<SAMPLE_BYTES>()?;
                    *at += SAMPLE_BYTES;
                    let (timestamp, value) = sample.split_first_chunk::<8>()?;
                    let value = value.first_chunk::<8>()?;
                    (u64::from_le_bytes(*timestamp), u64::from_le_bytes(*value))
                }
                Form::Compressed(from) => from.next(&self.data)?,
            };
            samples.push(timestamp, value)?;
            self.left -= 1;
        }
        Some(())
    }
}

impl Decompressor {
    fn next(&mut self, data: &[u8]) -> Option<(u64, u64)> {
        if !std::mem::take(&mut self.is_first) {
            if self.take(data, 1)? == 1 {
                self.delta = self.delta.wrapping_add(self.change(data)?);
            }
            self.timestamp = self.timestamp.wrapping_add_signed(self.delta);
            if self.take(data, 1)? == 1 {
                if self.take(data, 1)? == 1 {
                    let leading = self.take(data, LEADING_BITS)? as u32;
                    self.length = self.take(data, LENGTH_BITS)? as u32 + 1;
                    self.trailing = 64_u32.checked_sub(leading + self.length)?;
                }
                self.value ^= self.take(data, self.length)? << self.trailing;
            }
        }
        Some((self.timestamp, self.value))
    }

    /// The next `count` bits, 64 at most.
    fn take(&mut self, data: &[u8], count: u32) -> Option<u64> {
        let next = self.at + count as usize;
        if next > self.end {
            return None;
        }
        let (index, shift) = (self.at / 64, (self.at % 64) as u32);
        let mut bits = word(data, index) >> shift;
        if shift + count > 64 {
            bits |= word(data, index + 1) << (64 - shift);
        }
        self.at = next;
        Some(low(bits, count))
    }

    /// A delta of deltas that is not 0.
    fn change(&mut self, data: &[u8]) -> Option<i64> {
        for width in WIDTHS {
            if self.take(data, 1)? == 0 {
                let shift = 64 - width;
                return Some((self.take(data, width)? << shift) as i64 >> shift);
            }
        }
        Some(self.take(data, 64)? as i64)
    }
}

fn word(data: &[u8], index: usize) -> u64 {
    let bytes = data.get(index * 8..).and_then(<[u8]>::first_chunk::<8>);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The lowest `count` bits.
fn low(bits: u64, count: u32) -> u64 {
    if count < 64 {
        bits & ((1 << count) - 1)
    } else {
        bits
    }
}

/// A compressed chunk that is written.
#[derive(Debug, Default)]
pub(crate) struct Compressor {
    words: Vec<u64>,
    bits: usize,
    count: u64,
    first: (u64, u64),
    timestamp: u64,
    delta: i64,
    value: u64,
    leading: u32,
    trailing: u32,
}

impl Compressor {
    /// How many bytes its data take.
    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a sample, newer than all before.
    pub(crate) fn push(&mut self, timestamp: i64, value: f64) {
        let (timestamp, value) = (timestamp as u64, value.to_bits());
        if self.count == 0 {
            *self = Self {
                first: (timestamp, value),
                leading: 32,
                trailing: 32,
                ..Self::default()
            };
        } else {
            self.put_timestamp(timestamp);
            self.put_value(value);
        }
        (self.timestamp, self.value) = (timestamp, value);
        self.count += 1;
    }

    fn put(&mut self, bits: u64, count: u32) {
        let (index, shift) = (self.bits / 64, (self.bits % 64) as u32);
        let bits = low(bits, count);
        self.bits += count as usize;
        self.words.resize(self.bits.div_ceil(64), 0);
        if let Some(word) = self.words.get_mut(index) {
            *word |= bits << shift;
        }
        if shift + count > 64
            && let Some(word) = self.words.get_mut(index + 1)
        {
            *word |= bits >> (64 - shift);
        }
    }

    fn put_timestamp(&mut self, timestamp: u64) {
        let delta = timestamp.wrapping_sub(self.timestamp) as i64;
        let change = delta.wrapping_sub(self.delta);
        self.delta = delta;
        if change == 0 {
            return self.put(0, 1);
        }
        let fits = |width: &u32| (-(1_i64 << (width - 1))..1 << (width - 1)).contains(&change);
        match WIDTHS.iter().position(fits) {
            Some(place) => {
                let ones = place as u32 + 1;
                self.put((1 << ones) - 1, ones + 1);
                self.put(change as u64, WIDTHS[place]);
            }
            None => {
                self.put(0x3f, 6);
                self.put(change as u64, 64);
            }
        }
    }

    fn put_value(&mut self, value: u64) {
        let xor = value ^ self.value;
        if xor == 0 {
            return self.put(0, 1);
        }
        let (leading, trailing) = (xor.leading_zeros().min(31), xor.trailing_zeros());
        let length = 64 - leading - trailing;
        let before = 64 - self.leading - self.trailing;
        let fits = leading >= self.leading && trailing >= self.trailing;
        if fits && LEADING_BITS + LENGTH_BITS + length > before {
            self.put(0b01, 2);
            self.put(xor >> self.trailing, before);
        } else {
            self.put(0b11, 2);
            self.put(u64::from(leading), LEADING_BITS);
            self.put(u64::from(length - 1), LENGTH_BITS);
            self.put(xor >> trailing, length);
            (self.leading, self.trailing) = (leading, trailing);
        }
    }

    /// Writes it, and begins another.
    pub(crate) fn finish(&mut self, to: &mut Fields) {
        let chunk = std::mem::take(self);
        let mut data: Vec<u8> = chunk
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        // No chunk is without data.
        data.resize(data.len().max(8), 0);
        let (timestamp, value) = chunk.first;
        for number in [
            data.len() as u64,
            chunk.count,
            chunk.bits as u64,
            value,
            timestamp,
        ] {
            to.unsigned(number);
        }
        for number in [chunk.timestamp, chunk.delta as u64, chunk.value] {
            to.unsigned(number);
        }
        to.unsigned(u64::from(chunk.leading));
        to.unsigned(u64::from(chunk.trailing));
        to.text(&data);
    }
}

/// Writes a chunk of plain samples, which has room for one at least.
pub(crate) fn write_plain(samples: &Samples, to: &mut Fields) {
    let mut data = Vec::with_capacity(samples.timestamps.len() * SAMPLE_BYTES);
    for (timestamp, value) in samples.timestamps.iter().zip(&samples.values) {
        data.extend_from_slice(&timestamp.to_le_bytes());
        data.extend_from_slice(&value.to_le_bytes());
    }
    data.resize(data.len().max(SAMPLE_BYTES), 0);
    let first = samples.timestamps.first().copied().unwrap_or(0);
    to.unsigned(first as u64);
    to.unsigned(samples.timestamps.len() as u64);
    to.unsigned(data.len() as u64);
    to.text(&data);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of xorshift64*.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn chance(state: &mut u64) -> Samples {
        let mut samples = Samples::default();
        let (mut at, mut value) = (random(state) % 1000, 0.0);
        for _ in 0..1 + random(state) % 300 {
            let values = [
                value,
                value + 1.0,
                f64::from_bits(random(state)),
                0.1,
                f64::NAN,
            ];
            value = values[random(state) as usize % values.len()];
            samples.push(at, value.to_bits()).unwrap();
            at += 1 + random(state) % (1 << (random(state) % 50));
        }
        samples
    }

    fn bits(samples: &Samples) -> (Vec<i64>, Vec<u64>) {
        let values = samples.values.iter().map(|value| value.to_bits());
        (samples.timestamps.clone(), values.collect())
    }

    #[test]
    fn random_chunks_come_back_bit_for_bit() {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for round in 0..500 {
            let samples = chance(&mut state);
            let mut compressor = Compressor::default();
            for (timestamp, value) in samples.timestamps.iter().zip(&samples.values) {
                compressor.push(*timestamp, *value);
            }
            let (mut compressed, mut plain) = (Fields::default(), Fields::default());
            compressor.finish(&mut compressed);
            write_plain(&samples, &mut plain);
            for (fields, is_compressed) in [(compressed, true), (plain, false)] {
                let mut chunk = Bytes::new(&fields.0[..]).chunk(is_compressed).unwrap();
                let mut found = Samples::default();
                while !chunk.is_empty() {
                    chunk.read(7, &mut found).unwrap();
                }
                assert_eq!(bits(&found), bits(&samples), "round {round}");
            }
        }
    }

    #[test]
    fn data_of_another_length_than_the_chunk_says_are_damage() {
        for (is_compressed, size) in [(true, 8), (true, 8256), (false, 16), (false, 32)] {
            let mut fields = Fields::default();
            let head: &[u64] = if is_compressed {
                &[size, 0, 0]
            } else {
                &[0, 0, size]
            };
            head.iter().for_each(|&number| fields.unsigned(number));
            (0..if is_compressed { 7 } else { 0 }).for_each(|_| fields.unsigned(0));
            fields.text(&vec![0; if is_compressed { 8 } else { 16 }]);
            let chunk = Bytes::new(&fields.0[..]).chunk(is_compressed);
            assert_eq!(chunk.is_ok(), size < 32, "{is_compressed} {size}");
        }
    }

    #[test]
    fn more_samples_than_bits_are_damage() {
        let compressed = |count, bits, first| Chunk::compressed(count, bits, first, vec![0; 8]);
        assert!(compressed(u64::MAX, 2, (0, 0)).is_none());
        assert!(compressed(3, 2, (0, 0)).is_none());
        assert!(compressed(2, 80, (0, 0)).is_none());
        assert!(Chunk::plain(u64::MAX, vec![0; 16]).is_none());
        // Two samples of one timestamp.
        let mut twice = compressed(2, 2, (5, 0)).unwrap();
        assert!(twice.read(2, &mut Samples::default()).is_none());
    }
}
