//! Whole frames: what goes in comes out, bit for bit, in every coding.

use crate::common::{Random, timestamp_shapes, value_shapes};
use latewood_codec::{
    Encoder, Error, FRAME_SAMPLES_MAX, Frame, Hint, TimestampCoding, ValueCoding,
};
use proptest::prelude::*;

/// Frame sizes worth testing: the ends, and the edges of blocks and groups.
const COUNTS: [usize; 10] = [1, 2, 3, 8, 64, 127, 128, 129, 385, FRAME_SAMPLES_MAX];

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Decodes the frame that is all of `bytes` and compares everything it says with the samples.
fn check(bytes: &[u8], timestamps: &[i64], values: &[f64], what: &str) {
    let (frame, len) = Frame::parse(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(len, bytes.len(), "{what}");
    assert_eq!(frame.count(), timestamps.len(), "{what}");
    assert_eq!(frame.first_timestamp(), timestamps[0], "{what}");
    assert_eq!(
        frame.last_timestamp(),
        timestamps[timestamps.len() - 1],
        "{what}"
    );
    let (mut times, mut floats) = (vec![7], vec![7.0]);
    frame
        .decode(&mut times, &mut floats)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(times[1..], *timestamps, "{what}");
    assert_eq!(bits(&floats[1..]), bits(values), "{what}");
    for index in (0..values.len()).step_by(1 + values.len() / 9) {
        assert_eq!(
            frame.value_at(index).unwrap().to_bits(),
            values[index].to_bits(),
            "{what}"
        );
    }
    assert_eq!(
        frame.value_at(values.len()),
        Err(Error::OutOfRange {
            index: values.len(),
            count: values.len()
        })
    );
    check_stats(&frame, values, what);
    check_search(&frame, bytes, timestamps, what);
    let mut bare = Vec::new();
    frame.put_without_values(&mut bare);
    let (without, len) = Frame::parse(&bare).unwrap();
    assert_eq!(len, bare.len(), "{what}");
    assert_eq!(without.value_at(values.len() - 1), Ok(0.0), "{what}");
    check_search(&without, &bare, timestamps, what);
}

/// Against the twin: filter, compare, and a sum whose error is bounded by its terms.
fn check_stats(frame: &Frame<'_>, values: &[f64], what: &str) {
    let is_whole = |value: &f64| value.fract() == 0.0 && value.to_bits() != (-0.0_f64).to_bits();
    let stats = frame.stats().unwrap();
    if frame.is_whole().unwrap() {
        assert!(values.iter().all(is_whole), "{what}");
        // Sums that a float holds.
        let size: f64 = values.iter().map(|value| value.abs()).sum();
        let sum = values.iter().sum::<f64>() + 0.0;
        let is_exact = size > 9e15 || stats.sum.to_bits() == sum.to_bits();
        assert!(is_exact, "{what}: {sum}, {}", stats.sum);
    }
    let numbers: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    assert_eq!(stats.nan_count, values.len() - numbers.len(), "{what}");
    if numbers.is_empty() {
        assert!(stats.min.is_nan() && stats.max.is_nan(), "{what}");
        assert_eq!(stats.sum, 0.0, "{what}");
        return;
    }
    assert_eq!(
        stats.min,
        numbers.iter().copied().fold(f64::INFINITY, f64::min),
        "{what}"
    );
    assert_eq!(
        stats.max,
        numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "{what}"
    );
    let naive: f64 = numbers.iter().sum();
    if naive.is_finite() {
        let magnitude: f64 = numbers.iter().map(|value| value.abs()).sum();
        let bound = magnitude * f64::EPSILON * numbers.len() as f64;
        assert!(
            (stats.sum - naive).abs() <= bound,
            "{what}: {} and {naive}",
            stats.sum
        );
    }
}

/// Against the twin: a scan.
fn check_search(frame: &Frame<'_>, bytes: &[u8], timestamps: &[i64], what: &str) {
    let near = |t: &i64| [t.saturating_sub(1), *t, t.saturating_add(1)];
    let probes = timestamps
        .iter()
        .step_by(1 + timestamps.len() / 60)
        .flat_map(near);
    for t in probes.chain([i64::MIN, i64::MAX, 0]) {
        let index = timestamps
            .iter()
            .position(|at| *at >= t)
            .unwrap_or(timestamps.len());
        assert_eq!(
            frame.lower_bound(t).unwrap(),
            index,
            "{what}: lower bound of {t}"
        );
        assert_eq!(
            frame.exists(t).unwrap(),
            timestamps.contains(&t),
            "{what}: existence of {t}"
        );
        assert_eq!(
            Frame::exists_in(bytes, t),
            frame.exists(t),
            "{what}: existence of {t} in the bytes"
        );
    }
}

#[test]
fn every_shape_round_trips_in_every_coding() {
    let mut encoder = Encoder::new();
    let mut random = Random(1);
    for count in COUNTS {
        for (time_name, timestamps) in timestamp_shapes(count, &mut random) {
            for (value_name, values) in value_shapes(timestamps.len(), &mut random) {
                let mut bytes = Vec::new();
                encoder
                    .encode(&timestamps, &values, &mut Hint::default(), &mut bytes)
                    .unwrap();
                check(
                    &bytes,
                    &timestamps,
                    &values,
                    &format!("{count} {time_name} {value_name}"),
                );
                let chosen_len = bytes.len();
                for (t, v) in TimestampCoding::ALL
                    .into_iter()
                    .flat_map(|t| ValueCoding::ALL.map(|v| (t, v)))
                {
                    let what = format!("{count} {time_name} {value_name} as {t:?} {v:?}");
                    bytes.clear();
                    match encoder.encode_as(&timestamps, &values, t, v, &mut bytes) {
                        Ok(()) => {
                            let (frame, _) = Frame::parse(&bytes).unwrap();
                            assert_eq!(
                                (frame.timestamp_coding(), frame.value_coding()),
                                (t, v),
                                "{what}"
                            );
                            check(&bytes, &timestamps, &values, &what);
                        }
                        Err(error) => {
                            assert_eq!(error, Error::NotRepresentable, "{what}");
                            assert!(t != TimestampCoding::Raw || v != ValueCoding::Raw, "{what}");
                            assert!(bytes.is_empty(), "{what}");
                        }
                    }
                }
                let raw_len = 16 * timestamps.len();
                assert!(
                    chosen_len <= raw_len + 60,
                    "{count} {time_name} {value_name}: {chosen_len} bytes"
                );
            }
        }
    }
}

#[test]
fn a_raw_frame_takes_sixteen_bytes_a_sample() {
    let mut random = Random(2);
    let timestamps = timestamp_shapes(512, &mut random).swap_remove(4).1;
    let values = value_shapes(timestamps.len(), &mut random).swap_remove(8).1;
    let mut bytes = Vec::new();
    Encoder::new()
        .encode_raw(&timestamps, &values, &mut bytes)
        .unwrap();
    check(&bytes, &timestamps, &values, "raw");
    assert!(
        bytes.len() - 16 * timestamps.len() <= 60,
        "{} bytes",
        bytes.len()
    );
}

#[test]
fn frames_lie_end_to_end_and_the_hint_changes_no_sample() {
    let mut random = Random(3);
    let (mut encoder, mut hint, mut bytes) = (Encoder::new(), Hint::default(), Vec::new());
    let mut expected = Vec::new();
    // The same hint through changing data: it must never cost exactness.
    for _ in 0..40 {
        let count = 1 + random.below(512) as usize;
        let mut shapes = timestamp_shapes(count, &mut random);
        let timestamps = shapes.swap_remove(random.below(6) as usize).1;
        let mut shapes = value_shapes(timestamps.len(), &mut random);
        let values = shapes.swap_remove(random.below(12) as usize).1;
        encoder
            .encode(&timestamps, &values, &mut hint, &mut bytes)
            .unwrap();
        expected.push((timestamps, values));
    }
    let mut rest = bytes.as_slice();
    for (index, (timestamps, values)) in expected.iter().enumerate() {
        let (_, len) = Frame::parse(rest).unwrap();
        check(&rest[..len], timestamps, values, &format!("frame {index}"));
        rest = &rest[len..];
    }
    assert!(rest.is_empty());
}

#[test]
fn input_that_breaks_the_contract_is_refused() {
    let (mut encoder, mut hint, mut out) = (Encoder::new(), Hint::default(), vec![1, 2]);
    let mut refuse = |timestamps: &[i64], values: &[f64]| {
        let error = encoder
            .encode(timestamps, values, &mut hint, &mut out)
            .unwrap_err();
        assert_eq!(encoder.encode_raw(timestamps, values, &mut out), Err(error));
        assert_eq!(out, [1, 2]);
        error
    };
    assert_eq!(refuse(&[], &[]), Error::SampleCount(0));
    let many: Vec<i64> = (0..513).collect();
    assert_eq!(refuse(&many, &vec![0.0; 513]), Error::SampleCount(513));
    assert_eq!(
        refuse(&[1], &[]),
        Error::LengthMismatch {
            timestamps: 1,
            values: 0
        }
    );
    assert_eq!(refuse(&[1, 2, 2], &[0.0; 3]), Error::NotAscending(2));
    assert_eq!(refuse(&[5, 4], &[0.0; 2]), Error::NotAscending(1));
    assert_eq!(
        refuse(&[0, i64::MAX, -2], &[0.0; 3]),
        Error::NotAscending(2)
    );
}

#[test]
fn a_grid_with_gaps_becomes_a_bitmap() {
    // 512 samples on a grid, with this share of places missing, drawn at random.
    let sparse = |missing_per_mille: u64, random: &mut Random| -> Vec<i64> {
        let places = (0..).filter(|_| random.below(1_000) >= missing_per_mille);
        places.map(|place: i64| place * 10_000).take(512).collect()
    };
    let (mut encoder, mut hint, mut random) = (Encoder::new(), Hint::default(), Random(4));
    let mut chosen = |timestamps: &[i64]| {
        let (mut bytes, values) = (Vec::new(), vec![1.5; timestamps.len()]);
        encoder
            .encode(timestamps, &values, &mut hint, &mut bytes)
            .unwrap();
        check(&bytes, timestamps, &values, "a grid with gaps");
        (
            Frame::parse(&bytes).unwrap().0.timestamp_coding(),
            bytes.len(),
        )
    };
    for missing_per_mille in [10, 370, 10, 100, 370, 370] {
        let (coding, len) = chosen(&sparse(missing_per_mille, &mut random));
        assert_eq!(coding, TimestampCoding::Bitmap, "{missing_per_mille}");
        assert!(len < 140, "{missing_per_mille} per mille: {len} bytes");
    }
    let regular: Vec<i64> = (0..512).map(|i| i * 10_000).collect();
    assert_eq!(chosen(&regular).0, TimestampCoding::Regular);
    // One long gap is cheaper as a delta than as a thousand empty places.
    let outage: Vec<i64> = (0..512).map(|i| (i + i / 256 * 1_000) * 10_000).collect();
    let (coding, len) = chosen(&outage);
    assert!(coding == TimestampCoding::DeltaPfor && len < 60, "{len}");
}

#[test]
fn headers_stay_small() {
    let mut encoder = Encoder::new();
    let mut overhead = |count: usize, value: &dyn Fn(usize) -> f64, packed_bits: usize| {
        let timestamps: Vec<i64> = (0..count as i64)
            .map(|i| 1_700_000_000_000 + i * 10_000)
            .collect();
        let values: Vec<f64> = (0..count).map(value).collect();
        let mut bytes = Vec::new();
        encoder
            .encode(&timestamps, &values, &mut Hint::default(), &mut bytes)
            .unwrap();
        bytes.len() - (count * packed_bits).div_ceil(8)
    };
    // If these grow the format changed: look before raising them.
    assert_eq!(overhead(1, &|_| 20.5, 0), 13);
    assert_eq!(overhead(64, &|_| 20.5, 0), 15);
    assert_eq!(
        overhead(64, &|i| (2_000 + i * 37 % 64) as f64 / 100.0, 6),
        19
    );
    assert_eq!(
        overhead(512, &|i| (2_000 + i * 37 % 64) as f64 / 100.0, 6),
        24
    );
}

proptest! {
    #[test]
    fn any_samples_round_trip(
        start: i64,
        deltas in prop::collection::vec(prop_oneof![1u64..5, 1u64..100_000, any::<u64>()], 1..512),
        seed: u64,
        shape in 0usize..12,
    ) {
        let mut timestamps = vec![start];
        for delta in deltas {
            match timestamps[timestamps.len() - 1].checked_add_unsigned(delta.max(1)) {
                Some(next) => timestamps.push(next),
                None => break,
            }
        }
        let values = value_shapes(timestamps.len(), &mut Random(seed)).swap_remove(shape).1;
        let mut bytes = Vec::new();
        Encoder::new().encode(&timestamps, &values, &mut Hint::default(), &mut bytes).unwrap();
        check(&bytes, &timestamps, &values, "any samples");
    }
}

#[test]
fn whole_numbers_are_known_as_such_and_others_are_not() {
    let is_whole = |values: &[f64]| {
        let (mut bytes, mut encoder) = (Vec::new(), Encoder::default());
        let timestamps: Vec<i64> = (0..values.len() as i64).collect();
        let encoded = encoder.encode(&timestamps, values, &mut Hint::default(), &mut bytes);
        encoded.unwrap();
        Frame::parse(&bytes).unwrap().0.is_whole().unwrap()
    };
    let gauge: Vec<f64> = (0..300).map(|at| f64::from(at * 7919 % 101 - 3)).collect();
    let counter: Vec<f64> = (0..300).map(|at| f64::from(at * 1000 + at % 7)).collect();
    assert!(is_whole(&gauge) && is_whole(&counter) && is_whole(&[5.0; 20]));
    for other in [0.5, -0.0, f64::NAN, f64::INFINITY, 1e300] {
        let mut values = gauge.clone();
        values[150] = other;
        assert!(!is_whole(&values), "{other}");
    }
    for other in [0.5, -0.0, f64::NAN, f64::INFINITY] {
        assert!(!is_whole(&[other; 20]), "{other}");
    }
}
