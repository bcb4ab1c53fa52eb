//! Frames: no bytes make a decoder panic, all ways to read a frame agree, and
//! any samples come back bit for bit.
#![cfg_attr(fuzzing, no_main)]

use latewood_codec::{Encoder, FRAME_SAMPLES_MAX, Frame, Hint};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    read_any(bytes);
    round_trip(bytes);
});

/// `bytes` as a frame from a damaged disk.
fn read_any(bytes: &[u8]) {
    let Ok((frame, len)) = Frame::parse(bytes) else {
        return;
    };
    assert!(len <= bytes.len() && (1..=FRAME_SAMPLES_MAX).contains(&frame.count()));
    let _ = frame.stats();
    for t in [
        i64::MIN,
        frame.first_timestamp(),
        0,
        frame.last_timestamp(),
        i64::MAX,
    ] {
        let _ = frame.lower_bound(t);
        let _ = frame.exists(t);
    }
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    let decoded = frame.decode(&mut timestamps, &mut values);
    for index in [0, frame.count() / 2, frame.count() - 1, frame.count()] {
        let value = frame.value_at(index);
        if let (Ok(()), Ok(value)) = (&decoded, value) {
            assert_eq!(value.to_bits(), values[index].to_bits());
        }
    }
    if decoded.is_ok() {
        assert_eq!(
            (timestamps.len(), values.len()),
            (frame.count(), frame.count())
        );
    }
}

/// `bytes` as samples: one byte per sample selects how the next timestamp and
/// value are made, followed by their bytes.
fn round_trip(bytes: &[u8]) {
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    let (mut rest, mut timestamp, mut value) = (bytes, 0i64, 0f64);
    while let [how, tail @ ..] = rest {
        rest = tail;
        let mut take = |len_bytes: usize| {
            let mut word = [0; 8];
            let len_bytes = len_bytes.min(rest.len());
            word[..len_bytes].copy_from_slice(&rest[..len_bytes]);
            rest = &rest[len_bytes..];
            u64::from_le_bytes(word)
        };
        let step = take([0, 1, 2, 8][usize::from(how & 3)]) as i64;
        let Some(next) = timestamp.checked_add(step.checked_abs().unwrap_or(1).max(1)) else {
            break;
        };
        timestamp = next;
        value = match how >> 2 & 3 {
            0 => value,
            1 => f64::from_bits(take(8)),
            2 => take(2) as i16 as f64 / 100.0,
            _ => f64::from_bits(value.to_bits().wrapping_add(take(1))),
        };
        timestamps.push(timestamp);
        values.push(value);
        if timestamps.len() == FRAME_SAMPLES_MAX {
            break;
        }
    }
    if timestamps.is_empty() {
        return;
    }
    let mut encoded = Vec::new();
    Encoder::new()
        .encode(&timestamps, &values, &mut Hint::default(), &mut encoded)
        .expect("ascending timestamps, at most a frame of them");
    let (frame, len) = Frame::parse(&encoded).expect("just encoded");
    assert_eq!(len, encoded.len());
    let (mut timestamps_back, mut values_back) = (Vec::new(), Vec::new());
    frame
        .decode(&mut timestamps_back, &mut values_back)
        .expect("just encoded");
    assert_eq!(timestamps_back, timestamps);
    assert!(
        values_back
            .iter()
            .map(|v| v.to_bits())
            .eq(values.iter().map(|v| v.to_bits()))
    );
    let probe = timestamps[timestamps.len() / 2];
    assert_eq!(frame.exists(probe).ok(), Some(true));
    let before = probe - 1;
    assert_eq!(
        frame.exists(before).ok(),
        Some(timestamps.binary_search(&before).is_ok())
    );
}
