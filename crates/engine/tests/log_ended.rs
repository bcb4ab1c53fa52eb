//! The record of series that ended: what is written for which ids, and what is refused.

use crate::log_support::{DIR, small};
use latewood_engine::io::Disk;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::log::{
    Ended, GroupBuilder, GroupForm, Log, Position, Record, RecordIter, Replay,
};
use latewood_engine::{ErrorKind, Result};
use latewood_model::SeriesId;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

fn written(ids: &[u64], stride_log2: u8) -> GroupBuilder {
    let ids: Vec<_> = ids.iter().copied().map(SeriesId).collect();
    let mut group = GroupBuilder::new();
    group.begin(stride_log2);
    group.end_series(&ids);
    group
}

/// The ids of each record of a group.
fn read(group: &GroupBuilder) -> Vec<Vec<u64>> {
    let records = RecordIter::new(group.payload(), GroupForm::Wide);
    let records = records.map(|record| match record.unwrap() {
        Record::Ended(ended) => ended.ids().map(|id| id.0).collect(),
        other => panic!("{other:?}"),
    });
    records.collect()
}

#[test]
fn ended_series_have_these_bytes() {
    let group = written(&[8, 12, 44], 2);
    let expected = [0x31, 0x11, 0x05, 0x05, 0x03, 0x02];
    assert_eq!(group.payload(), expected, "needs a new format version");
    assert_eq!(read(&group), [[8, 12, 44]]);
}

#[test]
fn a_record_ends_where_another_one_is_shorter() {
    let parts = |ids: &[u64], stride_log2| {
        let records = read(&written(ids, stride_log2));
        assert_eq!(records.concat(), ids);
        records.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(parts(&[], 0), []);
    assert_eq!(parts(&[5, 69, 134], 0), [2, 1], "65 bits on");
    assert_eq!(parts(&[5, 69, 134], 6), [2, 1], "not alike");
    assert_eq!(parts(&[0xffff, 0x1_0000], 0), [1, 1], "another partition");
    assert_eq!(parts(&[9, 8, 8], 0), [1, 1, 1], "none ascends");
    assert_eq!(parts(&[SeriesId::MAX.0], 16), [1]);
    let partition: Vec<_> = (0x2_0000..0x3_0000).collect();
    assert_eq!(parts(&partition, 0), [1 << 16]);
    assert!(written(&partition, 0).len_bytes() < 8_192 + 16);
    let sparse: Vec<_> = (0..1_000).map(|number| number * 300).collect();
    assert!(written(&sparse, 0).len_bytes() <= 1_000 * 10);
}

proptest! {
    #[test]
    fn ids_come_back_as_they_went_in(
        steps in proptest::collection::vec(1..90_u64, 0..300),
        first in 0..1_u64 << 40,
        stride_log2 in 0..=8_u8,
    ) {
        let mut id = first;
        let ids = steps.iter().map(|step| {
            id += step << stride_log2;
            id
        });
        let ids: Vec<_> = ids.collect();
        let group = written(&ids, stride_log2);
        prop_assert_eq!(read(&group).concat(), ids);
    }
}

#[test]
fn what_no_writer_writes_is_refused() {
    let refused = |first: u64, stride_log2: u8, bits: &[u8]| {
        let mut group = GroupBuilder::new();
        let first = SeriesId(first);
        group.ended(&Ended {
            first,
            stride_log2,
            bits,
        });
        let read = RecordIter::new(group.payload(), GroupForm::Wide).next();
        match read.expect("there is a record") {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                true
            }
        }
    };
    let whole = vec![0xff; 8_192];
    assert!(!refused(0, 0, &[1]) && !refused(0, 0, &whole) && !refused(7, 16, &[1]));
    assert!(refused(0, 0, &[]), "none");
    assert!(refused(0, 0, &[2]), "the first did not end");
    assert!(refused(0, 0, &[1, 0]), "zeros behind the last");
    assert!(refused(0, 17, &[1]), "no shards are that many");
    assert!(refused(0, 0, &vec![0xff; 8_193]), "beyond a partition");
    assert!(refused(1, 0, &whole), "beyond its partition");
    assert!(refused(0xfffe, 1, &[3]));
    assert!(refused(SeriesId::MAX.0 + 1, 0, &[1]), "beyond 48 bits");
}

/// The ids of all records of a log.
#[derive(Default)]
struct All(Mutex<Vec<u64>>);

impl Replay for All {
    fn workers(&self) -> usize {
        1
    }

    fn apply(&self, _worker: usize, _at: Position, records: RecordIter<'_>) -> Result<()> {
        for record in records {
            if let Record::Ended(ended) = record? {
                self.0.lock().unwrap().extend(ended.ids().map(|id| id.0));
            }
        }
        Ok(())
    }
}

fn segment() -> PathBuf {
    Path::new(DIR).join("segment-0000000000000001.wal")
}

fn golden() -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read(dir.join("wal-v3-ended.bin")).unwrap()
}

/// The ids of the groups in the golden segment.
fn golden_groups() -> [Vec<u64>; 3] {
    [
        (1..2_000).step_by(2).collect(),
        vec![0, 8, 400, 0xfffc, 0x1_0000],
        vec![SeriesId::MAX.0],
    ]
}

#[test]
fn the_golden_segment_is_read() {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new(DIR)).unwrap();
    disk.create(&segment(), 0).unwrap();
    disk.set_bytes(&segment(), golden()).unwrap();
    let all = All::default();
    let (_, report) = Log::open(&disk.env(2), Path::new(DIR), &small(), &all).unwrap();
    assert!(report.clean);
    assert_eq!(all.0.into_inner().unwrap(), golden_groups().concat());
}

#[test]
fn the_golden_segment_is_what_is_written() {
    let disk = SimDisk::new();
    let (log, _) = Log::open(&disk.env(1), Path::new(DIR), &small(), &All::default()).unwrap();
    for (at, ids) in golden_groups().into_iter().enumerate() {
        let stride_log2 = [1, 2, 0][at];
        log.append(&mut written(&ids, stride_log2)).unwrap();
        log.sync_to(log.written()).unwrap();
    }
    log.close().unwrap();
    let bytes = disk.bytes(&segment()).unwrap();
    let golden = golden();
    assert!(bytes[golden.len()..].iter().all(|&byte| byte == 0));
    assert!(
        golden == bytes[..golden.len()],
        "the bytes of a segment changed: that needs a new format version"
    );
}
