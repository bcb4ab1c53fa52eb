//! A run of signed integers, whichever of three layouts is smallest.
//!
//! One byte names the layout, a zigzag varint is its base, patched blocks
//! follow: offsets from the minimum; deltas less the smallest delta; or zigzag
//! deltas, which stay small beside a few large jumps. Arithmetic wraps, so any
//! i64 round-trips. Shared by the ULP and the ordered-bits coding.

use crate::varint::{Reader, put_zigzag, unzigzag, zigzag};
use crate::{Error, pfor};

const OFFSETS: u8 = 0;
const DELTAS: u8 = 1;
const ZIGZAG_DELTAS: u8 = 2;

/// Appends one or more `values`. `scratch` is as long as `values` or longer.
pub(crate) fn encode(
    values: &[i64],
    scratch: &mut [u64],
    attempt: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    for layout in [OFFSETS, DELTAS, ZIGZAG_DELTAS] {
        attempt.clear();
        encode_as(layout, values, scratch, attempt);
        if out.len() == start || attempt.len() < out.len() - start {
            out.truncate(start);
            out.extend_from_slice(attempt);
        }
    }
}

fn encode_as(layout: u8, values: &[i64], scratch: &mut [u64], out: &mut Vec<u8>) {
    out.push(layout);
    if layout == OFFSETS {
        let min = values.iter().copied().min().unwrap_or(0);
        put_zigzag(min, out);
        let offsets = &mut scratch[..values.len()];
        offsets
            .iter_mut()
            .zip(values)
            .for_each(|(slot, value)| *slot = value.wrapping_sub(min) as u64);
        pfor::encode(offsets, out);
        return;
    }
    put_zigzag(values[0], out);
    let deltas = || {
        values
            .iter()
            .zip(&values[1..])
            .map(|(a, b)| b.wrapping_sub(*a))
    };
    let slots = &mut scratch[..values.len() - 1];
    if layout == DELTAS {
        let min = deltas().min().unwrap_or(0);
        put_zigzag(min, out);
        slots
            .iter_mut()
            .zip(deltas())
            .for_each(|(slot, delta)| *slot = delta.wrapping_sub(min) as u64);
    } else {
        slots
            .iter_mut()
            .zip(deltas())
            .for_each(|(slot, delta)| *slot = zigzag(delta));
    }
    pfor::encode(slots, out);
}

/// Fills `out` (at least one value); `scratch` is as long or longer.
pub(crate) fn decode(
    reader: &mut Reader<'_>,
    scratch: &mut [u64],
    out: &mut [i64],
) -> Result<(), Error> {
    let layout = reader.u8()?;
    let base = reader.zigzag()?;
    if layout == OFFSETS {
        let offsets = &mut scratch[..out.len()];
        pfor::decode(reader, offsets)?;
        out.iter_mut()
            .zip(offsets)
            .for_each(|(slot, offset)| *slot = base.wrapping_add_unsigned(*offset));
        return Ok(());
    }
    let min = match layout {
        DELTAS => Some(reader.zigzag()?),
        ZIGZAG_DELTAS => None,
        _ => return Err(Error::Corrupt("unknown layout of integers")),
    };
    let deltas = &mut scratch[..out.len() - 1];
    pfor::decode(reader, deltas)?;
    let mut value = base;
    out[0] = base;
    for (slot, delta) in out[1..].iter_mut().zip(deltas) {
        let delta = match min {
            Some(min) => min.wrapping_add_unsigned(*delta),
            None => unzigzag(*delta),
        };
        value = value.wrapping_add(delta);
        *slot = value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_layout_round_trips(
            values in prop::collection::vec(prop_oneof![any::<i64>(), -100i64..100, Just(i64::MIN), Just(i64::MAX)], 1..300),
        ) {
            let (mut words, mut back) = ([0; 512], vec![0; values.len()]);
            let mut smallest = usize::MAX;
            for layout in [OFFSETS, DELTAS, ZIGZAG_DELTAS] {
                let mut bytes = Vec::new();
                encode_as(layout, &values, &mut words, &mut bytes);
                decode(&mut Reader::new(&bytes), &mut words, &mut back).unwrap();
                prop_assert_eq!(&back, &values);
                smallest = smallest.min(bytes.len());
            }
            let mut bytes = Vec::new();
            encode(&values, &mut words, &mut Vec::new(), &mut bytes);
            prop_assert_eq!(bytes.len(), smallest);
        }
    }
}
