//! Decimals as offsets from the smallest mantissa, in patched blocks of 128.
//!
//! For values that scatter in a range. One value can be fetched alone. The
//! head is described in `decimal::head`; the blocks in `pfor` follow it.

use super::Head;
use crate::Error;
use crate::pfor::{self, BLOCK};
use crate::varint::Reader;

/// Appends the offsets that `decimal::Offsets::find` left.
pub(crate) fn encode(words: &[u64], out: &mut Vec<u8>) {
    pfor::encode(words, out);
}

pub(crate) fn decode(reader: &mut Reader<'_>, flags: u8, out: &mut [f64]) -> Result<(), Error> {
    let head = Head::parse(reader, flags)?;
    let mut offsets = [0u64; BLOCK];
    for slots in out.chunks_mut(BLOCK) {
        let offsets = &mut offsets[..slots.len()];
        pfor::decode_block(reader, offsets)?;
        head.values(offsets, slots);
    }
    head.patch(out)
}

/// Fills `out` with the offsets of the values, in units of the head.
pub(crate) fn offsets<'a>(
    reader: &mut Reader<'a>,
    flags: u8,
    out: &mut [u64],
) -> Result<Head<'a>, Error> {
    let head = Head::parse(reader, flags)?;
    pfor::decode(reader, out)?;
    Ok(head)
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
    use crate::values::decimal::twin::{encoded, naive_values};
    use crate::values::samples::{any_values, bits};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_its_twin(values in any_values()) {
            if let Some((flags, bytes)) = encoded(&values, crate::ValueCoding::DecimalFor) {
                let section = crate::values::Section {
                    coding: crate::ValueCoding::DecimalFor, flags, count: values.len(), bytes: &bytes,
                };
                let mut reader = section.coded().unwrap();
                let head = Head::parse(&mut reader, flags).unwrap();
                let offsets = (0..values.len()).map(|i| pfor::get(&mut reader.clone(), values.len(), i).unwrap());
                prop_assert_eq!(bits(&naive_values(&head, offsets)), bits(&values));
                for index in (0..values.len()).step_by(37) {
                    prop_assert_eq!(section.at(index).unwrap().to_bits(), values[index].to_bits());
                }
            }
        }
    }
}
