//! Records of a log in Kafka: what is decoded is encoded to the same bytes, a scan of any records
//! keeps its invariants, and a copy of the log behind itself adds nothing but claims.
#![cfg_attr(fuzzing, no_main)]

use latewood_cluster::envelope::{Envelope, State};
use latewood_cluster::scan::{Scan, Verdict};
use libfuzzer_sys::fuzz_target;

/// The records in the input: a length of one byte, then that many bytes and a right checksum.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some((&len, rest)) = bytes.split_first() {
        let (record, rest) = rest.split_at(rest.len().min(usize::from(len)));
        let sum = crc_fast::crc32_iscsi(record);
        records.push([record, &sum.to_le_bytes()].concat());
        bytes = rest;
    }
    records
}

fn same_when_encoded(bytes: &[u8]) {
    if let Ok(envelope) = Envelope::decode(bytes) {
        // Those of earlier versions are another version's, and their claims have no n.
        let again = envelope.encode().expect("within the bounds");
        assert_eq!(Envelope::decode(&again).as_ref(), Ok(&envelope));
        let is_claim = matches!(envelope, Envelope::Epoch { .. });
        let same = if is_claim && bytes[4] < 3 { 24 } else { 6 };
        assert_eq!(again[same..again.len() - 4], bytes[same..bytes.len() - 4]);
    }
}

fuzz_target!(|bytes: &[u8]| {
    same_when_encoded(bytes);
    let mut scan = Scan::new(State::START);
    let records = records(bytes);
    for (value, offset) in records.iter().chain(&records).zip(0_u64..) {
        same_when_encoded(value);
        let before = scan.state();
        let verdict = scan.next(offset, value);
        let after = scan.state();
        match verdict {
            Verdict::Epoch(_) => {
                assert_eq!(after.epoch, Some(offset));
                assert_eq!((after.n, after.sequence), (before.n, before.sequence));
            }
            Verdict::Counts { at, .. } => {
                assert_eq!(at, before);
                assert_eq!((after.epoch, after.n), (before.epoch, before.n + 1));
                assert!(after.sequence >= before.sequence);
            }
            _ => assert_eq!(after, before),
        }
    }
});
