//! Decimals as offsets from the smallest mantissa, in patched blocks of 128.
//!
//! For values that scatter in a range. One value can be fetched alone. The
//! head is described in `decimal`; the blocks in `pfor` follow it.

use super::Scratch;
use super::decimal::{self, Head};
use crate::pfor::{self, BLOCK};
use crate::varint::Reader;
use crate::{Error, FRAME_SAMPLES_MAX};

/// Appends the mantissas that `decimal::quantize` left in `scratch`; returns the flags.
pub(crate) fn encode(values: &[f64], exponent: u8, scratch: &mut Scratch, out: &mut Vec<u8>) -> u8 {
    let flags = decimal::put_head(values, exponent, scratch, out);
    pfor::encode(&scratch.words[..values.len()], out);
    flags
}

/// Fills `out`.
pub(crate) fn decode(reader: &mut Reader<'_>, flags: u8, out: &mut [f64]) -> Result<(), Error> {
    let head = Head::parse(reader, flags)?;
    let mut offsets = [0u64; FRAME_SAMPLES_MAX];
    for slots in out.chunks_mut(BLOCK) {
        let offsets = &mut offsets[..slots.len()];
        pfor::decode_block(reader, offsets)?;
        head.values(offsets, slots);
    }
    head.patch(out)
}

/// Value `index` of a section without exceptions. O(blocks).
pub(crate) fn at(
    reader: &mut Reader<'_>,
    flags: u8,
    count: usize,
    index: usize,
) -> Result<f64, Error> {
    let head = Head::parse(reader, flags)?;
    Ok(head.value(pfor::get(reader, count, index)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{any_values, bits};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in any_values()) {
            let mut scratch = Scratch::new();
            let exponent = decimal::guess_exponent(&values).unwrap_or(3);
            if decimal::quantize(&values, decimal::power_of_ten(exponent), &mut scratch) {
                let mut bytes = Vec::new();
                let flags = encode(&values, exponent, &mut scratch, &mut bytes);
                let section = crate::values::Section {
                    coding: crate::ValueCoding::DecimalFor, flags, count: values.len(), bytes: &bytes,
                };
                let mut back = vec![0.0; values.len()];
                section.decode(&mut back).unwrap();
                prop_assert_eq!(bits(&back), bits(&values));

                let mut reader = section.coded().unwrap();
                let head = Head::parse(&mut reader, flags).unwrap();
                let offsets = (0..values.len()).map(|i| pfor::get(&mut reader.clone(), values.len(), i).unwrap());
                prop_assert_eq!(bits(&decimal::naive::values(&head, offsets)), bits(&values));
                for index in (0..values.len()).step_by(37) {
                    prop_assert_eq!(section.at(index).unwrap().to_bits(), values[index].to_bits());
                }
            }
        }
    }
}
