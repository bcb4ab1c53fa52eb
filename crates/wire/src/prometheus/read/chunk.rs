//! Prometheus' XOR chunks: Gorilla's coding with different ranges.
//!
//! Two bytes with the number of samples, big endian; then bits, the highest of
//! each byte first. Timestamps: the first in full, the second as a difference, the
//! others as the change of the difference in one of five lengths. Values: the
//! first in full, the others as the bits that differ from the previous value.
//!
//! Source: the page on the chunk format in the storage documentation of
//! Prometheus, and Pelkonen et al., "Gorilla: a fast, scalable, in-memory time
//! series database", 2015. The decoder in `tests.rs` is its twin.

/// Samples of a chunk, as in Prometheus.
pub const CHUNK_SAMPLES: usize = 120;
/// Most leading zeros that five bits can hold.
const LEADING_MAX: u32 = 31;

/// Appends a chunk of at most 65,535 samples in ascending order of time.
pub fn encode(timestamps: &[i64], values: &[f64], out: &mut Vec<u8>) {
    debug_assert!(timestamps.len() == values.len() && timestamps.len() <= usize::from(u16::MAX));
    out.extend_from_slice(&(timestamps.len() as u16).to_be_bytes());
    let mut bits = Bits {
        out,
        word: 0,
        used: 0,
    };
    let mut times = Times::default();
    let mut window = Window::default();
    for (timestamp, value) in timestamps.iter().zip(values) {
        times.put(*timestamp, &mut bits);
        window.put(value.to_bits(), &mut bits);
    }
    bits.finish();
}

#[derive(Default)]
struct Times {
    count: u8,
    last: i64,
    delta: u64,
}

impl Times {
    fn put(&mut self, timestamp: i64, bits: &mut Bits<'_>) {
        // As in Prometheus, 64-bit differences wrap.
        let delta = timestamp.wrapping_sub(self.last) as u64;
        match self.count {
            0 => {
                bits.varint(((timestamp << 1) ^ (timestamp >> 63)) as u64);
                self.delta = 0;
            }
            1 => {
                bits.varint(delta);
                self.delta = delta;
            }
            _ => {
                put_change(delta.wrapping_sub(self.delta) as i64, bits);
                self.delta = delta;
            }
        }
        self.count = self.count.saturating_add(1);
        self.last = timestamp;
    }
}

fn put_change(change: i64, bits: &mut Bits<'_>) {
    // A field of n bits holds -(2^(n-1) - 1) to 2^(n-1).
    let fits = |width: u32| (-(1i64 << (width - 1)) + 1..=1i64 << (width - 1)).contains(&change);
    if change == 0 {
        return bits.put(0, 1);
    }
    let (prefix, prefix_bits, width) = if fits(14) {
        (0b10, 2, 14)
    } else if fits(17) {
        (0b110, 3, 17)
    } else if fits(20) {
        (0b1110, 4, 20)
    } else {
        (0b1111, 4, 64)
    };
    bits.put(prefix, prefix_bits);
    bits.put(change as u64, width);
}

/// The previous value and the position of its differing bits.
#[derive(Default)]
struct Window {
    last: Option<u64>,
    /// Zeros before and after the differing bits.
    zeros: Option<(u32, u32)>,
}

impl Window {
    fn put(&mut self, value: u64, bits: &mut Bits<'_>) {
        let Some(last) = self.last.replace(value) else {
            return bits.put(value, 64);
        };
        let differing = value ^ last;
        if differing == 0 {
            return bits.put(0, 1);
        }
        bits.put(1, 1);
        let leading = differing.leading_zeros().min(LEADING_MAX);
        let trailing = differing.trailing_zeros();
        match self.zeros {
            Some((before, behind)) if leading >= before && trailing >= behind => {
                bits.put(0, 1);
                bits.put(differing >> behind, 64 - before - behind);
            }
            _ => {
                self.zeros = Some((leading, trailing));
                let width = 64 - leading - trailing;
                bits.put(1, 1);
                bits.put(u64::from(leading), 5);
                // 64 does not fit six bits and is written as 0.
                bits.put(u64::from(width), 6);
                bits.put(differing >> trailing, width);
            }
        }
    }
}

/// Packs bits into bytes.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    /// Bits that are not in `out` yet, in the high bits.
    word: u64,
    /// Their number, less than 64.
    used: u32,
}

impl Bits<'_> {
    /// Appends the lower `count` bits of `value`, 1 to 64.
    fn put(&mut self, value: u64, count: u32) {
        let value = value & (u64::MAX >> (64 - count));
        let room = 64 - self.used;
        if count < room {
            self.word |= value << (room - count);
            self.used += count;
            return;
        }
        let over = count - room;
        let whole = self.word | (value >> over);
        self.out.extend_from_slice(&whole.to_be_bytes());
        self.word = match over {
            0 => 0,
            over => value << (64 - over),
        };
        self.used = over;
    }

    /// Appends a varint, seven bits per byte.
    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.put(number & 0x7f | 0x80, 8);
            number >>= 7;
        }
        self.put(number, 8);
    }

    fn finish(self) {
        let bytes = self.used.div_ceil(8) as usize;
        self.out
            .extend_from_slice(&self.word.to_be_bytes()[..bytes]);
    }
}
