//! One value repeated: idle gauges, flags, limits. A few bytes for any count.

use crate::varint::Reader;
use crate::{Error, scalar};

/// True if all values have the same bits.
pub(crate) fn applies(values: &[f64]) -> bool {
    let first = values[0].to_bits();
    // Most series differ at once: look before running over all of it.
    values[values.len() / 2].to_bits() == first
        && values
            .iter()
            .fold(0, |or, value| or | (value.to_bits() ^ first))
            == 0
}

pub(crate) fn encode(values: &[f64], out: &mut Vec<u8>) {
    scalar::put(values[0], out);
}

pub(crate) fn value(reader: &mut Reader<'_>) -> Result<f64, Error> {
    scalar::get(reader)
}

pub(crate) fn decode(reader: &mut Reader<'_>, out: &mut [f64]) -> Result<(), Error> {
    out.fill(value(reader)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::samples::{EDGES, check};

    #[test]
    fn every_edge_value_repeats() {
        for value in EDGES {
            let values = vec![value; 100];
            assert!(applies(&values));
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            check(&bytes, &values, decode);
        }
    }

    #[test]
    fn zeros_of_two_signs_are_not_constant() {
        assert!(!applies(&[0.0, -0.0]));
        assert!(!applies(&[0.0, 0.0, -0.0]));
        assert!(!applies(&[1.0, 0.0, 0.0]));
    }
}
