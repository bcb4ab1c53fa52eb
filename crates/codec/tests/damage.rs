//! Damaged frames: an error or other samples, never a panic, never more than a frame's worth.

use crate::common::{Random, timestamp_shapes, value_shapes};
use latewood_codec::{Encoder, Error, FRAME_SAMPLES_MAX, Frame, TimestampCoding, ValueCoding};
use proptest::prelude::*;

/// One frame of every pair of codings that some shape of samples allows.
fn frames(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(11);
    let mut encoder = Encoder::new();
    let mut frames = Vec::new();
    let times = timestamp_shapes(count, &mut random);
    for time in TimestampCoding::ALL {
        for value in ValueCoding::ALL {
            for (_, timestamps) in &times {
                for (_, values) in value_shapes(timestamps.len(), &mut random) {
                    let mut bytes = Vec::new();
                    if encoder
                        .encode_as(timestamps, &values, time, value, &mut bytes)
                        .is_ok()
                    {
                        frames.push(bytes);
                    }
                }
            }
        }
    }
    frames
}

/// Calls everything a reader may call and bounds what comes back.
fn read_all(bytes: &[u8]) {
    let Ok((frame, len)) = Frame::parse(bytes) else {
        return;
    };
    assert!(len <= bytes.len());
    assert!((1..=FRAME_SAMPLES_MAX).contains(&frame.count()));
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    match frame.decode(&mut timestamps, &mut values) {
        Ok(()) => assert_eq!(
            (timestamps.len(), values.len()),
            (frame.count(), frame.count())
        ),
        Err(_) => assert!(timestamps.is_empty() && values.is_empty()),
    }
    let middle = frame.first_timestamp().midpoint(frame.last_timestamp());
    for t in [
        i64::MIN,
        frame.first_timestamp(),
        middle,
        frame.last_timestamp(),
        i64::MAX,
    ] {
        if let Ok(index) = frame.lower_bound(t) {
            assert!(index <= frame.count());
        }
        assert_eq!(Frame::exists_in(bytes, t), frame.exists(t));
    }
    let _ = frame.value_at(frame.count() - 1);
    if let Ok(stats) = frame.stats() {
        assert!(stats.nan_count <= FRAME_SAMPLES_MAX);
    }
}

#[test]
fn every_prefix_is_an_error() {
    let mut cut = 0;
    for frame in frames(40) {
        for len in 0..frame.len() {
            assert_eq!(
                Frame::parse(&frame[..len]).unwrap_err(),
                Error::Truncated,
                "{len} of {}",
                frame.len()
            );
            cut += 1;
        }
    }
    assert!(cut > 10_000, "only {cut} prefixes");
}

#[test]
fn every_flipped_byte_is_harmless() {
    for count in [40, 200] {
        for mut frame in frames(count) {
            let stride = 1 + frame.len() / 300;
            for at in (0..frame.len()).step_by(stride) {
                for flip in [0x01, 0x80, 0xff, 0x10] {
                    frame[at] ^= flip;
                    read_all(&frame);
                    frame[at] ^= flip;
                }
            }
        }
    }
}

#[test]
fn a_shortened_body_is_an_error_or_other_samples() {
    // Falsify the body length in the header by some bytes.
    for frame in frames(100) {
        for less in 1..(frame.len() - 8).min(40) {
            let mut shorter = frame[..frame.len() - less].to_vec();
            let body_len = shorter.len() - if frame[3] < 0x80 { 4 } else { 5 };
            if frame[3] < 0x80 {
                shorter[3] = body_len as u8;
            } else {
                (shorter[3], shorter[4]) = (body_len as u8 | 0x80, (body_len >> 7) as u8);
            }
            read_all(&shorter);
        }
    }
}

#[test]
fn other_versions_are_refused_in_words() {
    let mut frame = frames(3).swap_remove(0);
    frame[0] = frame[0] & 0x0f | 0x20;
    let error = Frame::parse(&frame).unwrap_err();
    assert_eq!(error, Error::Version(2));
    assert!(error.to_string().contains("version 2"));
}

proptest! {
    #[test]
    fn random_bytes_are_harmless(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        time in 0u8..6,
        value in 0u8..10,
        flags in 0u8..16,
        count in 1u8..127,
    ) {
        read_all(&bytes);
        // Steer half of the cases past the header.
        if bytes.len() > 4 {
            let body_len = (bytes.len() - 4).min(127);
            bytes[..4].copy_from_slice(&[0x10 | time, flags << 4 | value, count, body_len as u8]);
            read_all(&bytes);
        }
    }
}
