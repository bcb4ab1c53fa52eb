//! Round trips, damage, size and the golden files of series files.

mod paged;

use super::format::{FOOTER_BYTES, word_at};
use super::*;
use crate::base::error::{ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::io::Random;
use crate::io::sim::{SimDisk, SimRandom};
use crate::storage::files::chance::{give_expired, give_late, random_row, random_rows};
use crate::storage::files::manifest::SeriesFileMeta;
use crate::storage::files::row::SeriesRow;
use latewood_model::{Labels, MadeBy, SeriesId, SeriesOptions};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

const PATH: &str = "/db/series/series-0000000000000007.cat";
const GOLDEN_1: &[u8] = include_bytes!("../../../../tests/golden/series-v1.cat");
const GOLDEN_2: &[u8] = include_bytes!("../../../../tests/golden/series-v2.cat");
const GOLDEN_LATE: &[u8] = include_bytes!("../../../../tests/golden/series-v2-late.cat");
const GOLDEN_3: &[u8] = include_bytes!("../../../../tests/golden/series-v3.cat");
/// The partition of the golden file of version 2, whose ids have more than 32 bits.
const FAR: u32 = 3 << 20;

fn disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.env(1)
        .disk
        .create_dir_all(Path::new("/db/series"))
        .unwrap();
    disk
}

fn write(disk: &SimDisk, rows: &[SeriesRow]) -> Result<SeriesFileMeta> {
    let partition = rows.first().map_or(3, |row| partition_of(row.id));
    let mut writer = SeriesFileWriter::create(&disk.env(1), Path::new(PATH), 7, partition, &[])?;
    for row in rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// A file of changes: these rows, and these removed.
fn write_changes(disk: &SimDisk, rows: &[SeriesRow], removed: &[SeriesId]) -> SeriesFileMeta {
    let (env, path) = (disk.env(1), Path::new(PATH));
    let mut writer = SeriesFileWriter::create_changes(&env, path, 7, 3, removed).unwrap();
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish().unwrap()
}

/// The rows of a file of changes and the ids of removed series.
fn read_changes(disk: &SimDisk, meta: &SeriesFileMeta) -> Result<(Vec<SeriesRow>, Vec<SeriesId>)> {
    let mut reader = SeriesFileReader::open(&disk.env(1), Path::new(PATH), meta)?;
    let (mut all, mut some) = (Vec::new(), Vec::new());
    while reader.next(&mut some)? {
        all.append(&mut some);
    }
    Ok((all, reader.removed().to_vec()))
}

/// Every third row becomes a removed series.
fn with_removed(rows: Vec<SeriesRow>) -> (Vec<SeriesRow>, Vec<SeriesId>) {
    let (removed, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.id.0 % 3 == 0);
    (rows, removed.into_iter().map(|row| row.id).collect())
}

fn read(disk: &SimDisk, meta: &SeriesFileMeta) -> Result<Vec<SeriesRow>> {
    let mut reader = SeriesFileReader::open(&disk.env(1), Path::new(PATH), meta)?;
    let (mut all, mut some) = (Vec::new(), Vec::new());
    while reader.next(&mut some)? {
        all.append(&mut some);
    }
    Ok(all)
}

/// As text: that compares values bit for bit, except for the bits of NaN.
fn same(a: &[SeriesRow], b: &[SeriesRow]) -> bool {
    let bits = |row: &SeriesRow| row.last_value.map(f64::to_bits);
    format!("{a:?}") == format!("{b:?}") && a.iter().map(bits).eq(b.iter().map(bits))
}

#[test]
fn random_series_come_back() {
    for seed in 0..60 {
        let random = SimRandom::new(seed);
        let count = [0, 1, 2, 50, 3_000][random.below(5) as usize];
        let mut rows = random_rows(&random, 3, count);
        if seed % 2 == 0 {
            rows.iter_mut().for_each(|row| give_expired(&random, row));
            give_late(&random, &mut rows);
        }
        let disk = disk();
        let meta = write(&disk, &rows).unwrap();
        assert_eq!(meta.rows, rows.len() as u64);
        let newest = rows.iter().map(|row| row.position).max();
        assert_eq!(meta.position, newest.unwrap_or(0));
        let again = read(&disk, &meta).unwrap();
        assert!(same(&again, &rows), "seed {seed}");
    }
}

#[test]
fn changes_come_back_with_the_series_that_are_gone() {
    for seed in 0..40 {
        let random = SimRandom::new(seed);
        let count = [0, 1, 2, 50, 3_000][random.below(5) as usize];
        let (rows, removed) = with_removed(random_rows(&random, 3, count));
        let disk = disk();
        let meta = write_changes(&disk, &rows, &removed);
        assert_eq!(meta.rows, (rows.len() + removed.len()) as u64);
        let again = read_changes(&disk, &meta).unwrap();
        assert!(same(&again.0, &rows) && again.1 == removed, "seed {seed}");
    }
}

#[test]
fn every_flipped_bit_of_changes_is_found() {
    let disk = disk();
    let (rows, removed) = with_removed(random_rows(&SimRandom::new(11), 3, 9));
    assert!(removed.len() > 1 && !rows.is_empty());
    let meta = write_changes(&disk, &rows, &removed);
    let whole = disk.bytes(Path::new(PATH)).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        disk.set_bytes(Path::new(PATH), bytes).unwrap();
        read_changes(&disk, &meta).expect_err("a bit was flipped");
    }
}

#[test]
fn removed_series_of_another_partition_are_refused() {
    let disk = disk();
    let far = [SeriesId(4 << 16)];
    let meta = write_changes(&disk, &[], &far);
    let error = read_changes(&disk, &meta).unwrap_err();
    assert!(error.to_string().contains("removed series"), "{error}");
}

#[test]
fn long_series_come_back_one_a_section() {
    let random = SimRandom::new(5);
    let mut rows = random_rows(&random, 3, 3);
    for row in &mut rows {
        row.key = vec![row.id.0 as u8; latewood_model::limits::KEY_BYTES_MAX].into();
        let mut source = random_row(&random, 0).source.unwrap_or_default();
        source.late.timestamps = (0..100_000).map(|_| random.next_u64() as i64).collect();
        row.source = Some(source);
    }
    let disk = disk();
    let meta = write(&disk, &rows).unwrap();
    assert!(same(&read(&disk, &meta).unwrap(), &rows));
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let disk = disk();
    let rows = random_rows(&SimRandom::new(11), 3, 12);
    let meta = write(&disk, &rows).unwrap();
    let whole = disk.bytes(Path::new(PATH)).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        disk.set_bytes(Path::new(PATH), bytes).unwrap();
        let error = read(&disk, &meta).expect_err("a bit was flipped");
        assert!(error.to_string().contains(PATH), "bit {bit}: {error}");
    }
    for cut in 0..whole.len() {
        let bytes = whole[..cut].to_vec();
        disk.set_bytes(Path::new(PATH), bytes).unwrap();
        let error = read(&disk, &meta).expect_err("bytes are missing");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "cut at {cut}: {error}");
    }
    disk.set_bytes(Path::new(PATH), whole).unwrap();
    assert!(same(&read(&disk, &meta).unwrap(), &rows));
}

#[test]
fn a_file_of_another_version_is_refused_in_words() {
    let disk = disk();
    let meta = write(&disk, &[]).unwrap();
    let mut bytes = disk.bytes(Path::new(PATH)).unwrap();
    bytes[8] = 9;
    disk.set_bytes(Path::new(PATH), bytes).unwrap();
    let error = read(&disk, &meta).expect_err("version 9");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn a_whole_file_of_other_series_is_not_taken() {
    let disk = disk();
    let meta = write(&disk, &random_rows(&SimRandom::new(1), 3, 5)).unwrap();
    disk.env(1).disk.remove(Path::new(PATH)).unwrap();
    write(&disk, &random_rows(&SimRandom::new(2), 3, 5)).unwrap();
    assert!(read(&disk, &meta).is_err());
}

#[test]
fn alike_series_take_few_bytes() {
    let rows = alike_rows();
    let disk = disk();
    let meta = write(&disk, &rows).unwrap();
    let each = meta.len_bytes as f64 / rows.len() as f64;
    assert!(each < 30.0, "{each:.1} bytes a series");
    assert!(same(&read(&disk, &meta).unwrap(), &rows));
}

/// Twenty thousand series of hosts, such as there are.
fn alike_rows() -> Vec<SeriesRow> {
    let mut rows = Vec::new();
    for number in 0..20_000_u32 {
        let mut row = random_row(&SimRandom::new(u64::from(number)), 3 << 16 | number);
        let host = format!("host_{}", number / 10);
        let field = ["usage_user", "usage_system", "usage_idle"][number as usize % 3];
        let key = format!("cpu.{field}.{number}{{host={host},region=eu-west-1}}");
        let pairs = [
            ("host", host.as_str()),
            ("region", "eu-west-1"),
            ("datacenter", "eu-west-1b"),
            ("rack", ["12", "40", "7"][number as usize / 10 % 3]),
            ("os", "Ubuntu16.04LTS"),
            ("metric", field),
        ];
        let pairs = pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        row.options = SeriesOptions {
            labels: Labels::new(pairs).unwrap(),
            ..SeriesOptions::default()
        };
        row.key = key.into_bytes().into();
        row.position = 5_000 + u64::from(number / 32);
        row.newest = Some(1_700_000_000_000 + i64::from(number % 7) * 1_000);
        row.flushed_last = row
            .newest
            .map(|newest| newest - i64::from(number % 5) * 10_000);
        row.last_value = Some(f64::from(number * 7919 % 10_000) / 100.0);
        (row.unnamed, row.expires_at_ms, row.source) = (false, None, None);
        rows.push(row);
    }
    rows
}

#[test]
fn golden_files_are_read() {
    golden_is_read(GOLDEN_1, random_rows(&SimRandom::new(1), 3, 40));
    let mut rows = random_rows(&SimRandom::new(2), 3, 40);
    // Those that there were when it was written.
    let makers = [MadeBy::Sender, MadeBy::Create, MadeBy::Add];
    for (row, made_by) in rows.iter_mut().zip(makers.into_iter().cycle()) {
        row.id.0 += u64::from(FAR - 3) << 16;
        row.made_by = made_by;
        for rule in row.source.iter_mut().flat_map(|source| &mut source.rules) {
            rule.destination.0 |= 1 << 47;
        }
    }
    golden_is_read(GOLDEN_2, rows);
    let mut rows = random_rows(&SimRandom::new(7), 3, 40);
    give_late(&SimRandom::new(8), &mut rows);
    golden_is_read(GOLDEN_LATE, rows);
    let (rows, removed) = with_removed(random_rows(&SimRandom::new(3), 3, 40));
    let disk = disk();
    let written = write_changes(&disk, &rows, &removed);
    let meta = put_golden(&disk, GOLDEN_3, &written);
    let again = read_changes(&disk, &meta).unwrap();
    assert!(same(&again.0, &rows) && again.1 == removed);
}

fn golden_is_read(golden: &[u8], rows: Vec<SeriesRow>) {
    let disk = disk();
    let written = write(&disk, &rows).unwrap();
    let meta = put_golden(&disk, golden, &written);
    assert!(same(&read(&disk, &meta).unwrap(), &rows));
}

/// Puts a golden file in the place of the same that was written, which may be compressed otherwise.
fn put_golden(disk: &SimDisk, golden: &[u8], written: &SeriesFileMeta) -> SeriesFileMeta {
    disk.set_bytes(Path::new(PATH), golden.to_vec()).unwrap();
    SeriesFileMeta {
        len_bytes: golden.len() as u64,
        checksum: word_at(golden, golden.len() - FOOTER_BYTES + 20),
        ..*written
    }
}

#[test]
fn a_failing_disk_is_told_of() {
    use crate::io::sim::{Fault, Op, Trouble};
    let rows = random_rows(&SimRandom::new(3), 3, 20);
    let healthy = disk();
    let before = healthy.trace().len();
    write(&healthy, &rows).unwrap();
    let ops: BTreeSet<Op> = healthy.trace().into_iter().skip(before).collect();
    assert_eq!(ops.len(), 3, "create, write, sync");
    for op in ops {
        for after in 0..healthy.count(op) {
            let disk = disk();
            let trouble = Trouble::Fail(io::ErrorKind::StorageFull);
            let op = Some(op);
            disk.plan(Fault { op, after, trouble });
            let error = write(&disk, &rows).expect_err("the disk is full");
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains(PATH), "{error}");
        }
    }
}
