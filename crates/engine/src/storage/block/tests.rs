//! Blocks against a naive model, with damage at every offset, and against the
//! golden files.

use super::*;
use crate::base::error::{ErrorKind, Result};
use crate::base::partition::{PARTITION_BITS, first_of};
use crate::format::chunk::{Chunk, Shape};
use crate::io::sim::{Fault, Op, SimDisk, SimRandom, Trouble};
use crate::io::{Disk, Env, Random};
use latewood_codec::{Encoder, Hint};
use latewood_model::{DuplicatePolicy, Encoding, SeriesId, Timestamp};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const GOLDEN_BASE: &[u8] = include_bytes!("../../../tests/golden/block-v1-base.blk");
const GOLDEN_LATE: &[u8] = include_bytes!("../../../tests/golden/block-v1-late.blk");
const GOLDEN_2_BASE: &[u8] = include_bytes!("../../../tests/golden/block-v2-base.blk");
const GOLDEN_2_LATE: &[u8] = include_bytes!("../../../tests/golden/block-v2-late.blk");
/// A partition of ids that fit 32 bits, and one of ids that do not.
const PARTITIONS: [u32; 2] = [2, 2 << 28];

fn disk() -> (SimDisk, Env) {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/blocks")).unwrap();
    (disk.clone(), disk.env(1))
}

fn path(number: u64) -> PathBuf {
    PathBuf::from(format!("/blocks/{number}"))
}

/// A chunk of `frames` frames of 64 samples, `step` milliseconds apart.
fn chunk(first: Timestamp, step: i64, count: usize, seed: u64) -> Chunk {
    let shape = Shape {
        encoding: Encoding::Compressed,
        chunk_size_bytes: 4096,
    };
    let random = SimRandom::new(seed);
    let mut chunk = Chunk::default();
    let all: Vec<i64> = (0..count as i64).map(|n| first + n * step).collect();
    for timestamps in all.chunks(64) {
        let values: Vec<f64> = timestamps
            .iter()
            .map(|_| random.below(5000) as f64 / 10.0)
            .collect();
        let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
        chunk
            .push_samples(&mut encoder, shape, &mut hint, timestamps, &values)
            .unwrap();
    }
    chunk
}

fn samples(chunk: &Chunk) -> Vec<(Timestamp, u64)> {
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    for index in 0..chunk.frame_count() {
        let frame = chunk.frame(index).unwrap();
        frame.decode(&mut timestamps, &mut values).unwrap();
    }
    let bits = values.iter().map(|value| value.to_bits());
    timestamps.into_iter().zip(bits).collect()
}

/// The base block that the golden file holds: chunks with and without
/// statistics.
fn write_base(env: &Env, number: u64) -> BlockMeta {
    write_base_of(env, number, PARTITIONS[0])
}

fn write_base_of(env: &Env, number: u64, partition: u32) -> BlockMeta {
    let writer = BlockWriter::create(env, &path(number), number, partition, Family::Base);
    let mut writer = writer.unwrap();
    for series in 0..3 {
        let id = SeriesId(first_of(partition).0 + series * 20);
        for place in 0..2 {
            let first = 1_000_000 + i64::from(place) * 100_000_000;
            let count = if series == 1 { 300 } else { 5 };
            let chunk = chunk(first, 1000, count, series + place as u64);
            writer.chunk(id, Kind::Base, &chunk).unwrap();
        }
    }
    writer.finish().unwrap()
}

/// The late one: every policy, and tombstones.
fn write_late(env: &Env, number: u64) -> BlockMeta {
    write_late_of(env, number, PARTITIONS[0])
}

fn write_late_of(env: &Env, number: u64, partition: u32) -> BlockMeta {
    let writer = BlockWriter::create(env, &path(number), number, partition, Family::Late);
    let mut writer = writer.unwrap();
    let id = first_of(partition);
    for policy in DuplicatePolicy::ALL {
        let chunk = chunk(1_000_000, 2000, 3, policy as u64);
        writer.chunk(id, Kind::Overlay(policy), &chunk).unwrap();
    }
    writer.tombstone(id, 5, 1_000_001).unwrap();
    let id = SeriesId(first_of(partition).0 + 0xffff);
    writer.tombstone(id, i64::MIN, i64::MAX).unwrap();
    writer.finish().unwrap()
}

/// Reads the block in every way, until an error.
fn read_all(env: &Env, meta: &BlockMeta) -> Result<()> {
    let cache = Cache::new(1 << 20);
    let block = Arc::new(Block::open(env, &path(meta.number), meta, &cache)?);
    block.verify()
}

#[test]
fn what_was_written_is_found_again() {
    let (_, env) = disk();
    let meta = write_base(&env, 7);
    assert_eq!((meta.entries, meta.series, meta.samples), (6, 3, 620));
    assert_eq!((meta.first, meta.last), (1_000_000, 101_299_000));
    let block = Arc::new(Block::open(&env, &path(7), &meta, &Cache::new(1 << 20)).unwrap());
    block.verify().unwrap();
    let id = SeriesId((2 << PARTITION_BITS) + 20);
    let entries = block.entries(id).unwrap();
    assert_eq!(entries.len(), 2);
    for (place, entry) in entries.iter().enumerate() {
        let written = chunk(
            1_000_000 + place as i64 * 100_000_000,
            1000,
            300,
            1 + place as u64,
        );
        assert_eq!(samples(&block.read(entry).unwrap()), samples(&written));
        let stats = entry.stats().unwrap();
        let values = samples(&written)
            .into_iter()
            .map(|(_, bits)| f64::from_bits(bits));
        assert_eq!(stats.max, values.clone().fold(f64::MIN, f64::max));
        assert_eq!(stats.min, values.clone().fold(f64::MAX, f64::min));
        assert!((stats.sum - values.sum::<f64>()).abs() < 1e-6);
        assert_eq!((stats.count, stats.nan_count), (300, 0));
    }
    for absent in [0, 1, 19, 21, 39, 41, 0xffff] {
        let id = SeriesId((2 << PARTITION_BITS) + absent);
        assert_eq!(block.entries(id).unwrap().is_empty(), absent != 0);
    }
}

#[test]
fn a_late_block_keeps_the_order_of_arrival() {
    let (_, env) = disk();
    let meta = write_late(&env, 3);
    let block = Arc::new(Block::open(&env, &path(3), &meta, &Cache::new(0)).unwrap());
    block.verify().unwrap();
    let entries = block.entries(SeriesId(2 << PARTITION_BITS)).unwrap();
    let kinds: Vec<Kind> = entries.iter().map(|entry| entry.kind).collect();
    let mut expected: Vec<Kind> = DuplicatePolicy::ALL.map(Kind::Overlay).to_vec();
    expected.push(Kind::Tombstone);
    assert_eq!(kinds, expected);
    let last = entries[entries.len() - 1];
    assert_eq!((last.first, last.last), (5, 1_000_001));
    assert_eq!(block.read(&last).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let (disk, env) = disk();
    for meta in [write_base(&env, 1), write_late(&env, 2)] {
        read_all(&env, &meta).unwrap();
        let whole = disk.bytes(&path(meta.number)).unwrap();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            disk.set_bytes(&path(meta.number), bytes).unwrap();
            let error = read_all(&env, &meta).expect_err("a bit is wrong");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {place}: {error}");
            let named = path(meta.number).display().to_string();
            assert!(error.to_string().contains(&named), "{error}");
        }
    }
}

#[test]
fn a_damaged_chunk_is_named_and_the_others_are_served() {
    let (disk, env) = disk();
    let meta = write_base(&env, 1);
    let cache = Cache::new(1 << 20);
    let block = Arc::new(Block::open(&env, &path(1), &meta, &cache).unwrap());
    let id = SeriesId((2 << PARTITION_BITS) + 20);
    let entries = block.entries(id).unwrap();
    let mut bytes = disk.bytes(&path(1)).unwrap();
    bytes[entries[1].offset as usize + 9] ^= 16;
    disk.set_bytes(&path(1), bytes).unwrap();
    let block = Arc::new(Block::open(&env, &path(1), &meta, &cache).unwrap());
    assert!(block.read(&entries[0]).is_ok());
    let error = block.read(&entries[1]).unwrap_err().to_string();
    let expected = "the block is damaged: the chunk of series 131092 from 101000000 \
                    to 101299000 fails its checksum (/blocks/1)";
    assert_eq!(error, expected);
}

#[test]
fn a_block_cut_anywhere_is_found() {
    let (disk, env) = disk();
    let meta = write_base(&env, 1);
    let whole = disk.bytes(&path(1)).unwrap();
    for len_bytes in 0..whole.len() {
        disk.set_bytes(&path(1), whole[..len_bytes].to_vec())
            .unwrap();
        let error = read_all(&env, &meta).expect_err("bytes are missing");
        assert_eq!(
            error.kind(),
            ErrorKind::Corrupt,
            "{len_bytes} bytes: {error}"
        );
    }
    disk.set_bytes(&path(1), [&whole[..], &[0]].concat())
        .unwrap();
    assert!(read_all(&env, &meta).is_err());
}

/// Checksums do not detect a header and entries of another partition.
#[test]
fn series_of_another_partition_are_found() {
    let (disk, env) = disk();
    write_base(&env, 1);
    let mut bytes = disk.bytes(&path(1)).unwrap();
    bytes[12] = 3;
    let checksum = crc_fast::crc32_iscsi(&bytes[..28]);
    bytes[28..32].copy_from_slice(&checksum.to_le_bytes());
    let header = crc_fast::crc32_iscsi(&bytes[..32]);
    let footer = bytes.len() - 88;
    bytes[footer + 72..footer + 76].copy_from_slice(&header.to_le_bytes());
    let checksum = crc_fast::crc32_iscsi(&bytes[footer..footer + 76]);
    bytes[footer + 76..footer + 80].copy_from_slice(&checksum.to_le_bytes());
    disk.set_bytes(&path(1), bytes).unwrap();
    let error = Block::open_any(&env, &path(1), &Cache::new(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn another_block_in_its_place_is_found() {
    let (disk, env) = disk();
    let meta = write_base(&env, 1);
    write_base(&env, 2);
    disk.set_bytes(&path(1), disk.bytes(&path(2)).unwrap())
        .unwrap();
    let error = read_all(&env, &meta).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("not the block named by the manifest")
    );
}

#[test]
fn a_later_version_is_refused_in_words() {
    let (disk, env) = disk();
    let meta = write_base(&env, 1);
    let mut bytes = disk.bytes(&path(1)).unwrap();
    bytes[8] = 3;
    let checksum = crc_fast::crc32_iscsi(&bytes[..28]);
    bytes[28..32].copy_from_slice(&checksum.to_le_bytes());
    disk.set_bytes(&path(1), bytes).unwrap();
    let error = read_all(&env, &meta).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let expected = "the block has format version 3, this build knows version 2 (/blocks/1)";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_is_out_of_place_is_refused() {
    let (_, env) = disk();
    let mut writer = BlockWriter::create(&env, &path(1), 1, 0, Family::Base).unwrap();
    assert!(writer.is_empty());
    let early = chunk(0, 10, 5, 1);
    let late = chunk(1000, 10, 5, 1);
    writer.chunk(SeriesId(5), Kind::Base, &late).unwrap();
    let mut refused = |id, kind, chunk: &Chunk| {
        let error = writer.chunk(SeriesId(id), kind, chunk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    };
    refused(5, Kind::Base, &early);
    refused(5, Kind::Base, &late);
    refused(4, Kind::Base, &late);
    refused(1 << PARTITION_BITS, Kind::Base, &late);
    refused(6, Kind::Overlay(DuplicatePolicy::Last), &late);
    refused(6, Kind::Base, &Chunk::default());
    assert!(writer.tombstone(SeriesId(6), 1, 2).is_err());
    let meta = writer.finish().unwrap();
    assert_eq!((meta.entries, meta.series), (1, 1));
    let empty = BlockWriter::create(&env, &path(2), 2, 0, Family::Late).unwrap();
    assert_eq!(empty.finish().unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn samples_before_1970_are_refused_in_words() {
    let (_, env) = disk();
    for (number, first) in [(1, -1), (2, i64::MIN)] {
        let mut writer = BlockWriter::create(&env, &path(number), number, 0, Family::Base).unwrap();
        let made_up = chunk(first, 10, 5, 1);
        writer.chunk(SeriesId(5), Kind::Base, &made_up).unwrap();
        let meta = writer.finish().unwrap();
        let error = read_all(&env, &meta).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("is invalid"), "{error}");
    }
}

#[test]
fn a_failed_write_or_sync_finishes_no_block() {
    for op in [Op::Create, Op::Write, Op::Sync] {
        let (disk, env) = disk();
        disk.plan(Fault {
            op: Some(op),
            after: 0,
            trouble: Trouble::Fail(std::io::ErrorKind::StorageFull),
        });
        let written =
            BlockWriter::create(&env, &path(1), 1, 0, Family::Late).and_then(|mut writer| {
                writer.tombstone(SeriesId(1), 0, 1)?;
                writer.finish()
            });
        assert_eq!(written.unwrap_err().kind(), ErrorKind::Io, "{op:?}");
    }
}

#[test]
fn a_finished_block_survives_a_power_cut() {
    let (disk, env) = disk();
    let meta = write_base(&env, 1);
    disk.sync_dir(Path::new("/blocks")).unwrap();
    for seed in 0..20 {
        read_all(&disk.crash(seed).env(seed), &meta).unwrap();
    }
}

#[test]
fn golden_blocks_are_read_and_written_again() {
    let (disk, env) = disk();
    let base = (write_base(&env, 7), GOLDEN_BASE);
    let late = (write_late(&env, 8), GOLDEN_LATE);
    let wide_base = (write_base_of(&env, 9, PARTITIONS[1]), GOLDEN_2_BASE);
    let wide_late = (write_late_of(&env, 10, PARTITIONS[1]), GOLDEN_2_LATE);
    for (meta, golden) in [base, late, wide_base, wide_late] {
        let path = path(meta.number);
        assert!(
            disk.bytes(&path).unwrap() == golden,
            "a change of the format needs a new version"
        );
        disk.set_bytes(&path, golden.to_vec()).unwrap();
        read_all(&env, &meta).unwrap();
    }
}

#[test]
fn ids_beyond_32_bits_are_found_again() {
    let (disk, env) = disk();
    let [narrow, wide] =
        PARTITIONS.map(|partition| write_base_of(&env, u64::from(partition), partition));
    let bytes = [&narrow, &wide].map(|meta| disk.bytes(&path(meta.number)).unwrap());
    assert_eq!(bytes.map(|bytes| bytes[8]), [1, 2], "their versions");
    let block =
        Arc::new(Block::open(&env, &path(wide.number), &wide, &Cache::new(1 << 20)).unwrap());
    block.verify().unwrap();
    let ids = [0, 20, 40].map(|id| SeriesId(first_of(PARTITIONS[1]).0 + id));
    assert_eq!(ids.map(|id| block.entries(id).unwrap().len()), [2; 3]);
    assert!(block.entries(SeriesId(20)).unwrap().is_empty());
}

#[test]
fn lookups_find_what_a_walk_finds() {
    let (disk, env) = disk();
    for meta in [write_base(&env, 1), write_late(&env, 2)] {
        fuzz::read_any(&disk.bytes(&path(meta.number)).unwrap()).unwrap();
    }
    assert!(fuzz::read_any(&GOLDEN_BASE[1..]).is_err());
}

mod model;
mod query;
