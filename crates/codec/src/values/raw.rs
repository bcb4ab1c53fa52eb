//! Eight bytes a value, little-endian: uncompressed series, and the last resort.

use crate::Error;
use crate::varint::Reader;

pub(crate) fn encode(values: &[f64], out: &mut Vec<u8>) {
    out.extend(
        values
            .iter()
            .flat_map(|value| value.to_bits().to_le_bytes()),
    );
}

pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [f64]) -> Result<(), Error> {
    let words = reader.take(out.len() * 8)?;
    for (slot, word) in out.iter_mut().zip(words.as_chunks::<8>().0) {
        *slot = f64::from_bits(u64::from_le_bytes(*word));
    }
    Ok(())
}

/// Value `index`. O(1).
pub(crate) fn at(reader: &mut Reader<'_>, index: usize) -> Result<f64, Error> {
    reader.take(index * 8)?;
    Ok(f64::from_bits(reader.u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{any_values, check};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(values in any_values()) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            let twin: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            prop_assert_eq!(&bytes, &twin);
            check(&bytes, &values, decode);
            let last = at(&mut Reader::new(&bytes), values.len() - 1).unwrap();
            prop_assert_eq!(last.to_bits(), values[values.len() - 1].to_bits());
        }
    }
}
