//! Frames of format version 1, which every later build must read.
//!
//! `golden/frames-v1.txt` holds one frame a line: a name, the bytes, and a hash of
//! the samples, both in hexadecimal. The bytes are never regenerated: a
//! change of the encoder may choose other codings, but what was written stays
//! readable. `LATEWOOD_WRITE_GOLDEN=1 cargo test -p latewood-codec golden`
//! writes a missing file for a new version, and refuses to replace one.

use crate::common::{Random, timestamp_shapes, value_shapes};
use latewood_codec::{Encoder, FORMAT_VERSION, Frame, TimestampCoding, ValueCoding};
use std::fmt::Write as _;
use std::path::PathBuf;

fn path(version: u8) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/frames-v{version}.txt"))
}

/// FNV-1a over the bits of all samples.
fn hash(timestamps: &[i64], values: &[f64]) -> u64 {
    let words = timestamps
        .iter()
        .map(|t| *t as u64)
        .chain(values.iter().map(|v| v.to_bits()));
    let bytes = words.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// One frame for every timestamp coding, every value coding, and every layout inside them.
fn generate() -> String {
    let mut random = Random(7);
    let mut encoder = Encoder::new();
    let mut text = String::new();
    for count in [3, 132] {
        for (time_name, timestamps) in timestamp_shapes(count, &mut random) {
            for (value_name, values) in value_shapes(timestamps.len(), &mut random) {
                for time in TimestampCoding::ALL {
                    for value in ValueCoding::ALL {
                        // Every coding of values once a shape, every coding of timestamps once.
                        let is_wanted = (time_name == "grid" && time == TimestampCoding::Regular)
                            || (value_name == "constant" && value == ValueCoding::Constant);
                        let mut bytes = Vec::new();
                        let written =
                            encoder.encode_as(&timestamps, &values, time, value, &mut bytes);
                        if is_wanted && written.is_ok() {
                            let _ = write!(text, "{time:?}-{value:?}-{count} ");
                            for byte in &bytes {
                                let _ = write!(text, "{byte:02x}");
                            }
                            let _ = write!(text, " {:x}", hash(&timestamps, &values));
                            text.push('\n');
                        }
                    }
                }
            }
        }
    }
    text
}

#[test]
fn every_version_is_read() {
    if std::env::var_os("LATEWOOD_WRITE_GOLDEN").is_some() {
        assert!(
            !path(FORMAT_VERSION).exists(),
            "golden frames are never replaced"
        );
        std::fs::write(path(FORMAT_VERSION), generate()).unwrap();
    }
    let (mut seen, mut frames) = (std::collections::BTreeSet::new(), 0);
    for version in 1..=FORMAT_VERSION {
        for line in std::fs::read_to_string(path(version)).unwrap().lines() {
            let mut words = line.split(' ');
            let name = words.next().unwrap();
            let hex = words.next().unwrap();
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect();
            let (frame, len) = Frame::parse(&bytes).unwrap();
            assert_eq!(len, bytes.len(), "{name}");
            let (mut timestamps, mut values) = (Vec::new(), Vec::new());
            frame.decode(&mut timestamps, &mut values).unwrap();
            let expected = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
            assert_eq!(hash(&timestamps, &values), expected, "{name}");
            seen.insert(format!("{:?}", frame.timestamp_coding()));
            seen.insert(format!("{:?} of values", frame.value_coding()));
            frames += 1;
        }
    }
    assert_eq!(
        seen.len(),
        TimestampCoding::ALL.len() + ValueCoding::ALL.len(),
        "{seen:?}"
    );
    assert!(frames > 100, "{frames} frames");
}
