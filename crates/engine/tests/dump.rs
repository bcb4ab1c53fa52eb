//! The bytes of DUMP: version 1 is read for ever, and other bytes are refused
//! in words.

use crate::db_support::{append, open, read, sample};
use latewood_codec::{Encoder, Hint};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, Dump, DumpFault, ErrorKind};
use latewood_model::limits::RESTORE_SAMPLES_MAX;
use latewood_model::{DuplicatePolicy, Encoding, Ignore, Labels, SeriesOptions};
use std::path::Path;

/// A series of two labels and 700 samples, as version 1 dumped it.
const GOLDEN: &str = "tests/golden/dump-v1.bin";

fn golden() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN)).unwrap()
}

fn golden_series() -> Db {
    let db = open(&SimDisk::new()).unwrap();
    let options = SeriesOptions {
        retention_ms: 1 << 40,
        chunk_size_bytes: 1024,
        encoding: Encoding::Uncompressed,
        duplicate_policy: Some(DuplicatePolicy::Max),
        ignore: Ignore {
            max_time_diff_ms: 5,
            max_value_diff: 0.5,
        },
        labels: Labels::new([(&b"site"[..], &b"north"[..]), (b"kind", b"celsius")]).unwrap(),
    };
    db.create(b"k", &options).unwrap();
    let times = (0..700).map(|n| 1_700_000_000_000 + n * 1000 + n % 3);
    let values = |t: i64| match t % 50 {
        0 => f64::NAN,
        rest => rest as f64 / 10.0,
    };
    let batch: Vec<_> = times.map(|t| sample(b"k", t, values(t))).collect();
    append(&db, &batch).unwrap();
    db
}

/// The same bytes with the checksum they should have.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 4);
    let sum = crc_fast::crc32_iscsi(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn fault(bytes: &[u8]) -> DumpFault {
    Dump::parse(bytes).unwrap_err()
}

#[test]
fn the_golden_dump_of_version_1_is_read() {
    let (db, bytes) = (golden_series(), golden());
    db.restore(b"new", Dump::parse(&bytes).unwrap(), None, false)
        .unwrap();
    let bits = |key| {
        let samples = read(&db, key).unwrap();
        let bits = samples.iter().map(|s| (s.timestamp, s.value.to_bits()));
        bits.collect::<Vec<_>>()
    };
    assert_eq!(bits(b"new").len(), 700);
    assert_eq!(bits(b"new"), bits(b"k"));
    let options = |key| db.info(key).unwrap().options;
    assert_eq!(options(b"new"), options(b"k"));
}

#[test]
fn version_1_is_still_what_is_written() {
    assert!(
        golden_series().dump(b"k").unwrap() == golden(),
        "the bytes of a dump changed: that needs a new format version"
    );
}

#[test]
fn what_is_no_dump_is_refused_in_words() {
    let whole = golden();
    for bytes in [&b""[..], b"x", b"LWD", b"LWD\x01", &[0; 100], &whole[1..]] {
        assert_eq!(fault(bytes), DumpFault::Unknown, "{bytes:?}");
    }
    for cut in 0..whole.len() {
        assert_eq!(fault(&whole[..cut]), DumpFault::Unknown);
        let mut wrong = whole.clone();
        wrong[cut] ^= 1 << (cut % 8);
        assert_eq!(fault(&wrong), DumpFault::Unknown, "a bit of byte {cut}");
    }
    let mut later = whole.clone();
    later[3] = 2;
    assert_eq!(fault(&later), DumpFault::Unknown);
    assert_eq!(fault(&summed(later)), DumpFault::Version(2));
    // `SET k v`, dumped by Redis 7.4.
    let redis = b"\x00\x01v\x0c\x00Z~\xfar\xe3\x12\x14\x87";
    assert_eq!(fault(redis), DumpFault::Redis);
}

#[test]
fn a_dump_that_makes_no_series_leaves_nothing() {
    let (db, whole) = (golden_series(), golden());
    let mut refused = 0;
    for at in 4..whole.len() - 4 {
        let mut wrong = whole.clone();
        wrong[at] = wrong[at].wrapping_add(1 + (at % 255) as u8);
        let wrong = summed(wrong);
        // Most changes make another series; none may panic or leave a part.
        let restored = Dump::parse(&wrong).map(|dump| db.restore(b"new", dump, None, true));
        match restored {
            Err(fault) => assert_eq!(fault, DumpFault::Malformed),
            Ok(Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}");
                assert_eq!(error.to_string(), "Bad data format");
                refused += 1;
            }
            Ok(Ok(_)) => assert_eq!(db.remove(&[b"new"]).unwrap().0, 1),
        }
        assert_eq!(db.len(), 1);
    }
    assert!(refused > 0);
    // Frames in the wrong order.
    let frames = Dump::parse(&whole).unwrap();
    let mut twice = whole[..whole.len() - 4].to_vec();
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    latewood_codec::Encoder::new()
        .encode(&[5], &[1.0], &mut Default::default(), &mut twice)
        .unwrap();
    twice.extend_from_slice(&[0; 4]);
    let twice = summed(twice);
    let mut dump = Dump::parse(&twice).unwrap();
    assert_eq!(dump.options(), frames.options());
    while let Ok(true) = dump.next(&mut timestamps, &mut values) {}
    assert_eq!(
        dump.next(&mut timestamps, &mut values),
        Ok(false),
        "the last frame was taken and refused"
    );
    let dump = Dump::parse(&twice).unwrap();
    let error = db.restore(b"new", dump, None, true).unwrap_err();
    assert_eq!(error.to_string(), "Bad data format");
}

/// A payload of `frames` frames of 512 samples a second apart, each with the same value.
fn long_payload(frames: i64) -> Vec<u8> {
    let db = open(&SimDisk::new()).unwrap();
    db.create(b"k", &SeriesOptions::default()).unwrap();
    let mut bytes = db.dump(b"k").unwrap();
    bytes.truncate(bytes.len() - 4);
    let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
    for frame in 0..frames {
        let times: Vec<_> = (0..512).map(|n| (frame * 512 + n) * 1000).collect();
        let encoded = encoder.encode(&times, &[1.5; 512], &mut hint, &mut bytes);
        encoded.unwrap();
    }
    bytes.extend_from_slice(&[0; 4]);
    summed(bytes)
}

#[test]
fn a_short_payload_of_very_many_samples_is_refused() {
    let db = open(&SimDisk::new()).unwrap();
    let payload = long_payload(RESTORE_SAMPLES_MAX as i64 / 512 + 1);
    assert!(payload.len() < 2 << 20, "{} bytes", payload.len());
    let dump = Dump::parse(&payload).unwrap();
    let error = db.restore(b"new", dump, None, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("16777216 samples"), "{error}");
    assert_eq!(db.len(), 0);
    let few = long_payload(100);
    let dump = Dump::parse(&few).unwrap();
    assert_eq!(dump.count(), Ok(51_200));
    db.restore(b"new", dump, None, false).unwrap();
    assert_eq!(read(&db, b"new").unwrap().len(), 51_200);
}
