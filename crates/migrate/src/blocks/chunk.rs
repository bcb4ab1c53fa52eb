//! Chunks of float samples: times as differences of differences, values as differences of bits.
//!
//! Format: "XOR chunk data" in Prometheus' `tsdb/docs/format/chunks.md`; the method is that of
//! Gorilla (Pelkonen et al., VLDB 2015). Tested below and by the fuzz target `import_prometheus`.

/// Bits from the highest of the first byte on.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte << (self.at % 8) & 0x80;
        self.at += 1;
        Some(bit != 0)
    }

    /// At most 64.
    fn bits(&mut self, count: u32) -> Option<u64> {
        let mut left = count;
        let mut value = 0;
        while left > 0 {
            let byte = *self.bytes.get(self.at / 8)?;
            let skipped = (self.at % 8) as u32;
            let taken = left.min(8 - skipped);
            let part = byte << skipped >> (8 - taken);
            value = value << taken | u64::from(part);
            self.at += taken as usize;
            left -= taken;
        }
        Some(value)
    }

    fn uvarint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.bits(8)?;
            value |= (byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A difference of differences: its prefix tells its width.
    fn second_difference(&mut self) -> Option<i64> {
        let mut ones = 0;
        while ones < 4 && self.bit()? {
            ones += 1;
        }
        let width = match ones {
            0 => return Some(0),
            1 => 14,
            2 => 17,
            3 => 20,
            _ => return Some(self.bits(64)? as i64),
        };
        let value = self.bits(width)? as i64;
        let is_negative = value > 1 << (width - 1);
        Some(if is_negative {
            value - (1 << width)
        } else {
            value
        })
    }
}

/// As varints of Go have signs.
pub(super) fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Where the bits of a value that differ from the one before lie.
#[derive(Clone, Copy)]
struct Place {
    leading: u32,
    width: u32,
}

/// Appends the samples of a chunk, their values as bits; `None` where it is none.
pub(super) fn decode(chunk: &[u8], out: &mut Vec<(i64, u64)>) -> Option<()> {
    let (count, bytes) = chunk.split_first_chunk()?;
    let mut bits = Bits { bytes, at: 0 };
    let (mut at_ms, mut step_ms, mut value) = (0_i64, 0_i64, 0_u64);
    let mut place = None;
    for number in 0..u16::from_be_bytes(*count) {
        match number {
            0 => {
                at_ms = signed(bits.uvarint()?);
                value = bits.bits(64)?;
            }
            _ => {
                step_ms = match number {
                    1 => bits.uvarint()? as i64,
                    _ => step_ms.wrapping_add(bits.second_difference()?),
                };
                at_ms = at_ms.wrapping_add(step_ms);
                value ^= difference(&mut bits, &mut place)?;
            }
        }
        out.push((at_ms, value));
    }
    Some(())
}

fn difference(bits: &mut Bits<'_>, place: &mut Option<Place>) -> Option<u64> {
    if !bits.bit()? {
        return Some(0);
    }
    if bits.bit()? {
        let leading = bits.bits(5)? as u32;
        let width = match bits.bits(6)? as u32 {
            0 => 64,
            width => width,
        };
        *place = Some(Place { leading, width });
    }
    let Place { leading, width } = (*place)?;
    let trailing = 64_u32.checked_sub(leading + width)?;
    Some(bits.bits(width)? << trailing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes bits as a chunk has them.
    #[derive(Default)]
    struct Writer(Vec<bool>);

    impl Writer {
        fn bits(&mut self, value: u64, count: u32) -> &mut Self {
            self.0
                .extend((0..count).rev().map(|at| value >> at & 1 == 1));
            self
        }

        fn bytes(&self, samples: u16) -> Vec<u8> {
            let bytes = self.0.chunks(8).map(|bits| {
                let bits = bits.iter().enumerate();
                bits.fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at))
            });
            samples.to_be_bytes().into_iter().chain(bytes).collect()
        }
    }

    #[test]
    fn every_width_of_times_and_values_is_read() {
        let mut writer = Writer::default();
        let first = 1.5_f64.to_bits();
        // 1000 at 1.5, 15 ms later the same.
        writer.bits(0xd0, 8).bits(0x0f, 8).bits(first, 64);
        writer.bits(15, 8).bits(0, 1);
        // The same distance; another value in 3 bits from the 12th on.
        writer
            .bits(0, 1)
            .bits(0b11, 2)
            .bits(12, 5)
            .bits(3, 6)
            .bits(0b101, 3);
        // 14, 17, 20 and 64 bits; values in the same bits.
        writer
            .bits(0b10, 2)
            .bits((1 << 14) - 5, 14)
            .bits(0b10, 2)
            .bits(0b001, 3);
        writer.bits(0b110, 3).bits(1 << 16, 17).bits(0, 1);
        writer
            .bits(0b1110, 4)
            .bits((1 << 20) - 65_536, 20)
            .bits(0, 1);
        writer.bits(0b1111, 4).bits(-3_i64 as u64, 64).bits(0b11, 2);
        writer.bits(0, 5).bits(0, 6).bits(u64::MAX, 64);
        let mut out = Vec::new();
        let whole = writer.bytes(7);
        decode(&whole, &mut out).expect("it is one");
        let second = first ^ 0b101 << 49;
        let third = second ^ 1 << 49;
        let expected = [
            (1000, first),
            (1015, first),
            (1030, second),
            (1040, third),
            (1040 + 10 + 65_536, third),
            (1040 + 20 + 65_536, third),
            (1040 + 27 + 65_536, !third),
        ];
        assert_eq!(out, expected);
        for end in 0..whole.len() - 1 {
            assert_eq!(decode(&whole[..end], &mut Vec::new()), None, "{end} bytes");
        }
        // Bits of a value before it was said where they lie.
        let mut writer = Writer::default();
        writer
            .bits(2, 8)
            .bits(first, 64)
            .bits(1, 8)
            .bits(0b10, 2)
            .bits(0, 64);
        assert_eq!(decode(&writer.bytes(2), &mut Vec::new()), None);
    }
}
