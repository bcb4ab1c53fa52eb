//! Eight bytes a timestamp, little-endian.
//!
//! The form of uncompressed series, and the last resort for timestamps that
//! look like noise. The twin of every other coding.

use crate::Error;
use crate::codings::Found;
use crate::varint::Reader;

/// Appends every timestamp, the first one too.
pub(crate) fn encode(timestamps: &[i64], out: &mut Vec<u8>) {
    out.extend(timestamps.iter().flat_map(|t| t.to_le_bytes()));
}

pub(crate) fn decode(bytes: &[u8], out: &mut [i64]) -> Result<(), Error> {
    let words = Reader::new(bytes).take(out.len() * 8)?;
    for (slot, word) in out.iter_mut().zip(words.as_chunks::<8>().0) {
        *slot = i64::from_le_bytes(*word);
    }
    Ok(())
}

/// Index of the first timestamp >= `t` and whether it is `t`. O(log n).
pub(crate) fn search(bytes: &[u8], count: usize, t: i64) -> Found {
    let words = Reader::new(bytes).take(count * 8)?.as_chunks::<8>().0;
    let index = words.partition_point(|word| i64::from_le_bytes(*word) < t);
    Ok((
        index,
        words
            .get(index)
            .is_some_and(|word| i64::from_le_bytes(*word) == t),
    ))
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
            prop_assert_eq!(bytes.len(), 8 * timestamps.len());
            let count = timestamps.len();
            check(&timestamps, |back| decode(&bytes, back).unwrap(), |t| search(&bytes, count, t).unwrap());
        }
    }
}
