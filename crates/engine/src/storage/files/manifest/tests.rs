//! Round trips, damage and the golden file of the manifest.

use super::partition::CHANGES_MAX;
use super::*;
use crate::io::sim::SimRandom;
use crate::storage::files::chance::{give_changes, give_parked, random_manifest};

const GOLDEN_SEED: u64 = 7;
const GOLDEN_1: &[u8] = include_bytes!("../../../../tests/golden/manifest-v1.bin");
const GOLDEN_2: &[u8] = include_bytes!("../../../../tests/golden/manifest-v2.bin");
const GOLDEN_CHANGES: &[u8] = include_bytes!("../../../../tests/golden/manifest-v2-changes.bin");
const GOLDEN_PARKED: &[u8] = include_bytes!("../../../../tests/golden/manifest-v2-parked.bin");

#[test]
fn random_manifests_come_back() {
    for seed in 0..500 {
        let random = SimRandom::new(seed);
        let mut manifest = random_manifest(&random);
        if seed % 3 > 0 {
            give_parked(&random, &mut manifest);
        }
        if seed % 2 == 0 {
            give_changes(&random, &mut manifest);
        }
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest, "seed {seed}");
        assert_eq!(Manifest::verify(&bytes).unwrap(), manifest, "seed {seed}");
    }
    let fresh = Manifest::default();
    assert_eq!(Manifest::decode(&fresh.encode()).unwrap(), fresh);
}

#[test]
fn one_flipped_bit_is_found_and_does_no_harm() {
    let manifest = random_manifest(&SimRandom::new(GOLDEN_SEED));
    let whole = manifest.encode();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest, "bit {bit}");
        assert!(Manifest::verify(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn damage_in_both_copies_is_refused() {
    let whole = random_manifest(&SimRandom::new(GOLDEN_SEED)).encode();
    let half = whole.len() / 2;
    for bit in 0..half * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes[half + bit / 8] ^= 1 << (bit % 8);
        let error = Manifest::decode(&bytes).expect_err("both copies are damaged");
        let version = bit / 16 == 4;
        assert!(version || error.kind() == ErrorKind::Corrupt, "bit {bit}");
    }
    for cut in 0..whole.len() {
        assert!(Manifest::decode(&whole[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_later_version_is_refused_in_words() {
    let mut bytes = Manifest::default().encode();
    let half = bytes.len() / 2;
    (bytes[8], bytes[half + 8]) = (7, 7);
    let error = Manifest::decode(&bytes).expect_err("version 7");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 7"), "{error}");
}

#[test]
fn a_file_named_twice_or_not_given_yet_is_refused() {
    let mut manifest = Manifest::default();
    let file = SeriesFileMeta {
        number: 1,
        partition: 0,
        len_bytes: 60,
        rows: 0,
        position: 0,
        checksum: 0,
    };
    manifest.partition(0).series = Some(file);
    assert!(Manifest::decode(&manifest.encode()).is_err());
    manifest.next_file = 2;
    assert!(Manifest::decode(&manifest.encode()).is_ok());
    manifest.partition(1).series = Some(file);
    assert!(Manifest::decode(&manifest.encode()).is_err());
}

/// Whatever the checksums say.
#[test]
fn numbers_that_cannot_be_added_to_are_refused_in_words() {
    type Forge = fn(&mut Manifest);
    let forged: [(Forge, &str); 13] = [
        (
            |manifest| manifest.epoch = u64::MAX,
            "epoch is 18446744073709551615",
        ),
        (
            |manifest| manifest.flush = 1 << 63,
            "newest flush is 9223372036854775808",
        ),
        (
            |manifest| manifest.next_file = u64::MAX,
            "next file is 18446744073709551615",
        ),
        (
            |manifest| manifest.next_id = 1 << 48,
            "next series is 281474976710656",
        ),
        (
            |manifest| manifest.log_start = u64::MAX,
            "oldest group needed is 18446744073709551615",
        ),
        (
            |manifest| manifest.log_start = 0,
            "oldest group needed is 0",
        ),
        (
            |manifest| series_file(manifest).position = u64::MAX,
            "position is 18446744073709551615",
        ),
        (
            |manifest| series_file(manifest).rows = u64::MAX,
            "series in files is 18446744073709551615",
        ),
        (
            |manifest| parked(manifest).living = u64::MAX,
            "series in files is 18446744073709551615",
        ),
        (
            |manifest| block(manifest).len_bytes = u64::MAX,
            "bytes of files is 18446744073709551615",
        ),
        (
            |manifest| block(manifest).samples = u64::MAX - 1,
            "samples is 18446744073709551615",
        ),
        (
            |manifest| block(manifest).entries = 1 << 63,
            "entries is 9223372036",
        ),
        (
            |manifest| block(manifest).last = Timestamp::MIN,
            "ends before it begins",
        ),
    ];
    for (forge, words) in forged {
        let random = SimRandom::new(GOLDEN_SEED);
        let mut manifest = random_manifest(&random);
        give_parked(&random, &mut manifest);
        forge(&mut manifest);
        let error = Manifest::decode(&manifest.encode()).expect_err(words);
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(words), "{words} in {error}");
    }
}

fn series_file(manifest: &mut Manifest) -> &mut SeriesFileMeta {
    let mut files = manifest.partitions.values_mut();
    files.find_map(|files| files.series.as_mut()).unwrap()
}

fn parked(manifest: &mut Manifest) -> &mut PartitionFiles {
    let mut files = manifest.partitions.values_mut();
    files.find(|files| !files.parked.is_empty()).unwrap()
}

fn block(manifest: &mut Manifest) -> &mut BlockMeta {
    let mut files = manifest.partitions.values_mut();
    files.find_map(|files| files.base.first_mut()).unwrap()
}

#[test]
fn the_log_goes_on_behind_what_files_hold() {
    let mut manifest = Manifest::default();
    assert_eq!(manifest.log_next_min(), 1);
    manifest.log_start = 40;
    assert_eq!(manifest.log_next_min(), 40);
    manifest.partition(2).series = Some(SeriesFileMeta {
        number: 1,
        partition: 2,
        len_bytes: 60,
        rows: 1,
        position: 77,
        checksum: 0,
    });
    assert_eq!(manifest.log_next_min(), 78);
}

#[test]
fn golden_manifests_are_read_and_the_newest_is_written() {
    let mut manifest = random_manifest(&SimRandom::new(GOLDEN_SEED));
    assert!(manifest.blocks().count() > 2 && manifest.series_files().count() > 0);
    assert_eq!(Manifest::decode(GOLDEN_1).unwrap(), manifest);
    (manifest.key_seed, manifest.next_id) = (0x1234_5678_9abc_def0, (1 << 48) - 1);
    assert_eq!(Manifest::decode(GOLDEN_2).unwrap(), manifest);
    assert!(
        GOLDEN_2 == manifest.encode(),
        "version 2 is written otherwise"
    );
    give_changes(&SimRandom::new(GOLDEN_SEED), &mut manifest);
    assert!(
        manifest
            .partitions
            .values()
            .any(|files| files.changes.len() > 1)
    );
    assert_eq!(Manifest::decode(GOLDEN_CHANGES).unwrap(), manifest);
    assert!(
        GOLDEN_CHANGES == manifest.encode(),
        "files of changes are written otherwise"
    );
    give_parked(&SimRandom::new(GOLDEN_SEED), &mut manifest);
    let mut all = manifest.partitions.values();
    assert!(all.any(|files| files.parked.len() > 1));
    assert_eq!(Manifest::decode(GOLDEN_PARKED).unwrap(), manifest);
    assert!(
        GOLDEN_PARKED == manifest.encode(),
        "files of parked series are written otherwise"
    );
}

#[test]
fn series_files_apply_in_the_order_of_their_numbers() {
    let file = |number| SeriesFileMeta {
        number,
        partition: 0,
        len_bytes: 60,
        rows: 5,
        position: 10 + number,
        checksum: 0,
    };
    let changes = |number| ChangesMeta {
        file: file(number),
        living: 7,
    };
    let mut manifest = Manifest {
        next_file: 9,
        ..Manifest::default()
    };
    *manifest.partition(0) = PartitionFiles {
        series: Some(file(3)),
        changes: vec![changes(4), changes(7)],
        parked: vec![file(2), file(6), file(8)],
        living: 11,
        ..PartitionFiles::default()
    };
    let read = Manifest::decode(&manifest.encode()).unwrap();
    assert!(
        read.series_files()
            .map(|file| file.number)
            .eq([2, 3, 4, 6, 7, 8])
    );
    assert_eq!(read.partitions[&0].series_count(), 11);
    assert_eq!(read.log_next_min(), 19);
    type Forge = fn(&mut PartitionFiles);
    let forged: [Forge; 3] = [
        |files| files.parked.swap(0, 1),
        |files| files.changes.swap(0, 1),
        |files| files.changes[0].file.number = 1,
    ];
    for forge in forged {
        let mut manifest = manifest.clone();
        forge(manifest.partition(0));
        let error = Manifest::decode(&manifest.encode()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("in the order of"), "{error}");
    }
    // One number for two files.
    manifest.partition(0).parked[0].number = 3;
    assert!(Manifest::decode(&manifest.encode()).is_err());
}

#[test]
fn changes_of_a_file_that_is_not_named_are_refused() {
    let mut manifest = random_manifest(&SimRandom::new(GOLDEN_SEED));
    give_changes(&SimRandom::new(GOLDEN_SEED), &mut manifest);
    for files in manifest.partitions.values_mut() {
        files.series = None;
    }
    let error = Manifest::decode(&manifest.encode()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("that it does not name"),
        "{error}"
    );
}

#[test]
fn changes_follow_until_they_are_many() {
    let whole = SeriesFileMeta {
        number: 1,
        partition: 0,
        len_bytes: 5_000,
        rows: 100,
        position: 9,
        checksum: 0,
    };
    let mut files = PartitionFiles::default();
    assert!(!files.takes_changes(0, 0), "nothing to change");
    files.series = Some(whole);
    assert!(files.takes_changes(50, 5_000) && !files.takes_changes(51, 5_000));
    assert!(
        !files.takes_changes(1, 5_001),
        "a short file is written anew"
    );
    let mut change = |rows, living| {
        let file = SeriesFileMeta { rows, ..whole };
        files.changes.push(ChangesMeta { file, living });
        (files.takes_changes(1, 0), files.series_count())
    };
    assert_eq!(change(49, 101), (true, 101));
    assert_eq!(change(1, 100), (false, 100), "half of the whole file");
    files.changes.clear();
    let few = ChangesMeta {
        file: SeriesFileMeta { rows: 1, ..whole },
        living: 100,
    };
    files.changes.resize(CHANGES_MAX, few);
    assert!(!files.takes_changes(1, 0), "many files");
}

/// A manifest with one partition, which has a list of `kind`, and one such list of no partition.
fn with_list(kind: u8, of_partition: bool) -> Vec<u8> {
    let fresh = Manifest::default().encode();
    let mut body = Put(fresh[HEADER_BYTES..fresh.len() / 2 - 2].to_vec());
    let lists = |body: &mut Put| {
        body.number(1);
        body.byte(kind);
        body.string(b"anything");
    };
    body.number(1);
    body.number(1 << 20);
    if of_partition {
        lists(&mut body);
        body.number(0);
    } else {
        body.number(0);
        lists(&mut body);
    }
    let mut copy = Put(fresh[..HEADER_BYTES - 4].to_vec());
    copy.word(checksum_of(&copy.0, &body.0));
    copy.raw(&body.0);
    copy.0.repeat(2)
}

#[test]
fn lists_of_a_later_kind_are_passed_over_or_refused_in_words() {
    for of_partition in [true, false] {
        let manifest = Manifest::decode(&with_list(0x86, of_partition)).unwrap();
        assert_eq!(
            manifest.partitions,
            BTreeMap::from([(1 << 20, PartitionFiles::default())])
        );
        let error = Manifest::decode(&with_list(6, of_partition)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("files of kind 6"), "{error}");
    }
}
