//! Sorting many series by key.
//!
//! Keys are spread over memory and often have common prefixes, so a comparison
//! costs two cache misses. So the eight bytes after the common prefix of all keys
//! are copied beside each series first; they decide nearly every comparison.

use super::SeriesRef;

/// Sorts by the bytes of the keys.
pub(crate) fn sort_by_key(series: &mut Vec<SeriesRef>) {
    let common = common_prefix(series);
    let mut prefixed: Vec<(u64, SeriesRef)> = series
        .drain(..)
        .map(|one| (prefix(&one.key[common..]), one))
        .collect();
    prefixed.sort_unstable_by(|(a_prefix, a), (b_prefix, b)| {
        // Equal prefixes decide nothing: one key may continue where the other ends.
        a_prefix.cmp(b_prefix).then_with(|| a.key.cmp(&b.key))
    });
    series.extend(prefixed.into_iter().map(|(_, one)| one));
}

/// Length of the common prefix of all keys.
fn common_prefix(series: &[SeriesRef]) -> usize {
    let Some((first, rest)) = series.split_first() else {
        return 0;
    };
    rest.iter().fold(first.key.len(), |common, one| {
        let alike = first.key[..common].iter().zip(&*one.key);
        alike.take_while(|(a, b)| a == b).count()
    })
}

/// The first eight bytes as a number with the same order.
fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(8);
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::SeriesId;

    #[test]
    fn order_is_that_of_the_bytes() {
        let keys: [&[u8]; 9] = [
            b"ab\0",
            b"ab",
            b"abz",
            b"ab\0\0",
            b"ab\xff",
            b"ab12345678b",
            b"ab12345678a",
            b"ab12345678",
            b"ab1",
        ];
        for count in 0..keys.len() {
            let series = |key: &&[u8]| SeriesRef {
                id: SeriesId(0),
                key: (*key).into(),
            };
            let mut sorted: Vec<_> = keys[..count].iter().map(series).collect();
            sort_by_key(&mut sorted);
            let mut expected = keys[..count].to_vec();
            expected.sort_unstable();
            assert!(sorted.iter().map(|one| &*one.key).eq(expected));
        }
    }
}
