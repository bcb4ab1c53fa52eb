//! Test data shared by the codings and their twins.

use crate::Error;
use crate::varint::Reader;
use proptest::prelude::*;

/// Values that break careless codecs.
pub(crate) const EDGES: [f64; 16] = [
    0.0,
    -0.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    f64::MAX,
    f64::MIN,
    f64::EPSILON,
    0.1 + 0.2,
    46.833999999999996,
    4503599627370495.5,
    -9007199254740993.0,
    1e22,
];

/// 1 to 512 values of many shapes.
pub(crate) fn any_values() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![decimals(), noise(), mixed(), steps()]
}

/// Clean decimals, walking or scattered.
pub(crate) fn decimals() -> impl Strategy<Value = Vec<f64>> {
    let count = 1..=512usize;
    (
        0i32..8,
        any::<bool>(),
        1i64..1_000_000,
        prop::collection::vec(any::<i32>(), count),
    )
        .prop_map(|(exponent, walks, range, noise)| {
            let mut level = 0i64;
            let scale = 10f64.powi(exponent);
            let next = |n: &i32| {
                let offset = i64::from(*n) % range;
                level = if walks { level + offset } else { offset };
                level as f64 / scale
            };
            noise.iter().map(next).collect()
        })
}

/// Any bit pattern: NaN payloads, denormals, everything.
pub(crate) fn noise() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 1..=512)
}

/// Decimals with edge cases and arithmetic noise strewn in.
pub(crate) fn mixed() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        30 => (-10_000i32..10_000).prop_map(|m| f64::from(m) / 100.0),
        10 => (-10_000i32..10_000).prop_map(|m| f64::from(m) * 0.1 + 0.003),
        1 => prop::sample::select(EDGES.to_vec()),
        1 => any::<u64>().prop_map(|bits| f64::from_bits(bits | 0x7ff8 << 48)),
    ];
    prop::collection::vec(value, 1..=512)
}

/// Few distinct values.
pub(crate) fn steps() -> impl Strategy<Value = Vec<f64>> {
    (
        prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 1..20),
        prop::collection::vec(any::<prop::sample::Index>(), 1..=512),
    )
        .prop_map(|(levels, picks)| {
            picks
                .iter()
                .map(|pick| levels[pick.index(levels.len())])
                .collect()
        })
}

/// Checks that `decode` reads `values` from `bytes`, bit for bit.
pub(crate) fn check(
    bytes: &[u8],
    values: &[f64],
    decode: impl Fn(&mut Reader<'_>, &mut [f64]) -> Result<(), Error>,
) {
    let mut back = vec![1.0; values.len()];
    decode(&mut Reader::new(bytes), &mut back).unwrap();
    assert_eq!(bits(&back), bits(values));
}

/// Equality by bits, which tells -0.0 from 0.0 and one NaN from another.
pub(crate) fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}
