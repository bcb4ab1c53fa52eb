//! Random rows and manifests from a seed, for the tests of this folder.

use crate::base::partition::PARTITION_BITS;
use crate::base::window::Bucket;
use crate::format::expired_buckets::ExpiredBuckets;
use crate::format::rule::RuleSpec;
use crate::io::Random;
use crate::io::sim::SimRandom;
use crate::storage::block::{BlockMeta, Family};
use crate::storage::files::late_tally::LateTally;
use crate::storage::files::manifest::{ChangesMeta, Manifest, SeriesFileMeta};
use crate::storage::files::row::{DirtyRow, RuleRow, SeriesRow, SourceRow};
use latewood_model::{
    Aggregator, DuplicatePolicy, Encoding, Ignore, Labels, MadeBy, SeriesId, SeriesOptions,
};

/// `count` rows of a partition with ascending ids.
pub(crate) fn random_rows(random: &SimRandom, partition: u32, count: u32) -> Vec<SeriesRow> {
    let mut id = partition << PARTITION_BITS;
    let mut next = || {
        id += random.below(3) as u32 + 1;
        random_row(random, id)
    };
    (0..count).map(|_| next()).collect()
}

/// A row with anything a series can have.
pub(crate) fn random_row(random: &SimRandom, id: u32) -> SeriesRow {
    let some = |odds| random.below(odds) == 0;
    let signed = || (random.next_u64() >> random.below(64)) as i64;
    let key = format!("sensor:{}:{}", random.below(50), id);
    SeriesRow {
        id: SeriesId(u64::from(id)),
        key: key.into_bytes().into(),
        unnamed: some(9),
        made_by: MadeBy::Create,
        options: random_options(random),
        position: random.next_u64() >> random.below(64),
        newest: some(2).then(signed),
        last_value: some(2).then(|| f64::from_bits(random.next_u64())),
        flushed_last: some(2).then(signed),
        holds_nan: some(3),
        late: LateTally::default(),
        expires_at_ms: some(3).then(|| signed().saturating_abs().max(1)),
        source: some(4).then(|| Box::new(random_source(random))),
        link: None,
    }
}

/// Has samples come late in some of the rows, at a known time or not.
pub(crate) fn give_late(random: &SimRandom, rows: &mut [SeriesRow]) {
    for row in rows {
        if random.below(3) == 0 {
            let at_ms = random.below(1 << 42) as i64 * random.below(2) as i64;
            row.late = LateTally {
                count: random.below(1 << 40) + 1,
                arrived_ms: Some(at_ms).filter(|&at_ms| at_ms > 0),
            };
        }
    }
}

fn random_options(random: &SimRandom) -> SeriesOptions {
    let pairs = (0..random.below(5)).map(|n| (format!("name{n}"), random.below(3).to_string()));
    let pairs: Vec<_> = pairs.collect();
    let pairs = pairs.iter();
    let labels = Labels::new(pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    let options = SeriesOptions {
        labels: labels.expect("short"),
        ..SeriesOptions::default()
    };
    if random.below(2) == 0 {
        return options;
    }
    SeriesOptions {
        retention_ms: random.next_u64() >> random.below(64),
        chunk_size_bytes: 48 + 8 * random.below(100) as u32,
        encoding: [Encoding::Compressed, Encoding::Uncompressed][random.below(2) as usize],
        duplicate_policy: DuplicatePolicy::from_number(random.below(8) as u8),
        ignore: Ignore {
            max_time_diff_ms: random.below(2) * random.next_u64(),
            max_value_diff: random.below(1_000) as f64 / 8.0,
        },
        ..options
    }
}

fn random_source(random: &SimRandom) -> SourceRow {
    let dirty = || random_dirty(random);
    let rule = || {
        let first = random.next_u64() as i64 >> 1;
        RuleRow {
            destination: SeriesId(random.next_u64() & u64::from(u32::MAX)),
            spec: RuleSpec {
                aggregator: Aggregator::ALL[random.below(15) as usize],
                bucket_ms: random.below(100_000) as i64 + 1,
                align: random.below(1_000) as i64,
            },
            since: first,
            open: (random.below(2) == 0).then_some(Bucket {
                first,
                last: first.saturating_add(random.below(9_999) as i64),
            }),
            own: dirty(),
            own_in_flight: dirty(),
            expired: None,
            failed: Vec::new(),
            backfill: Vec::new(),
        }
    };
    SourceRow {
        rules: (0..random.below(4)).map(|_| rule()).collect(),
        prompt: dirty(),
        late: dirty(),
        in_flight: dirty(),
        lost_to: random.next_u64() as i64,
        kept: random.below(9),
    }
}

/// Makes some rows those of destinations, which a file of parked series tells.
pub(crate) fn give_links(random: &SimRandom, rows: &mut [SeriesRow]) {
    for row in rows {
        let source = SeriesId(random.next_u64() >> (16 + random.below(48)));
        row.link = (random.below(3) == 0).then_some(source);
    }
}

/// Adds expired buckets to the rules of a row; the golden file has none.
pub(crate) fn give_expired(random: &SimRandom, row: &mut SeriesRow) {
    let spans = || {
        let mut end = random.next_u64() as i64 >> 2;
        let mut next = |_| {
            let first = end + random.below(999) as i64;
            let last = first + random.below(9_999) as i64;
            end = last + 2;
            Bucket { first, last }
        };
        (0..random.below(4)).map(&mut next).collect()
    };
    for rule in row.source.iter_mut().flat_map(|source| &mut source.rules) {
        rule.expired = Some(ExpiredBuckets {
            touched: spans(),
            lost: spans(),
        });
        rule.failed = spans();
        rule.backfill = spans();
    }
}

fn random_dirty(random: &SimRandom) -> DirtyRow {
    let count = if random.below(2) == 0 { 0 } else { 4 };
    let at = || random.next_u64() as i64 >> random.below(60);
    DirtyRow {
        timestamps: (0..random.below(count)).map(|_| at()).collect(),
        spans: (0..random.below(count)).map(|_| (at(), at())).collect(),
    }
}

pub(crate) fn random_manifest(random: &SimRandom) -> Manifest {
    let mut manifest = Manifest {
        epoch: random.below(9),
        flush: random.below(1 << 40),
        next_id: random.below(1 << 32).min((1 << 32) - 2),
        log_start: random.below(1 << 50) + 1,
        floor: random.next_u64() as i64,
        ..Manifest::default()
    };
    for _ in 0..random.below(6) {
        let partition = random.below(1 << 16) as u32;
        let mut number = || {
            manifest.next_file += random.below(3) + 1;
            manifest.next_file - 1
        };
        let series = (random.below(4) > 0).then(|| SeriesFileMeta {
            number: number(),
            partition,
            len_bytes: random.next_u64() >> 20,
            rows: random.below(65_536),
            position: random.next_u64() >> 1,
            checksum: random.next_u64() as u32,
        });
        let mut list = |family| {
            let block = |_| random_block(random, number(), partition, family);
            (0..random.below(5)).map(block).collect::<Vec<_>>()
        };
        let (base, late) = (list(Family::Base), list(Family::Late));
        let files = manifest.partition(partition);
        (files.series, files.base, files.late) = (series, base, late);
    }
    manifest
}

/// Adds files of changes to the partitions that have a series file; the golden file has none.
pub(crate) fn give_changes(random: &SimRandom, manifest: &mut Manifest) {
    for files in manifest.partitions.values_mut() {
        let Some(whole) = files.series else { continue };
        for _ in 0..random.below(4) {
            manifest.next_file += 1;
            files.changes.push(ChangesMeta {
                file: SeriesFileMeta {
                    number: manifest.next_file - 1,
                    len_bytes: random.below(1 << 20),
                    rows: random.below(whole.rows + 1),
                    ..whole
                },
                living: random.below(65_536),
            });
        }
    }
}

/// Adds files of parked series; the other golden files have none.
pub(crate) fn give_parked(random: &SimRandom, manifest: &mut Manifest) {
    for (&partition, files) in &mut manifest.partitions {
        for _ in 0..random.below(4) {
            manifest.next_file += 1;
            files.parked.push(SeriesFileMeta {
                number: manifest.next_file - 1,
                partition,
                len_bytes: random.below(1 << 20),
                rows: random.below(65_536),
                position: random.next_u64() >> 1,
                checksum: random.next_u64() as u32,
            });
            files.living = random.below(65_536);
        }
    }
}

fn random_block(random: &SimRandom, number: u64, partition: u32, family: Family) -> BlockMeta {
    let first = random.next_u64() as i64;
    BlockMeta {
        number,
        partition,
        family,
        len_bytes: random.next_u64() >> 30,
        first,
        last: first.saturating_add(random.below(1 << 40) as i64),
        samples: random.next_u64() >> 30,
        entries: random.below(1 << 20),
        series: random.below(65_536),
        checksum: random.next_u64() as u32,
    }
}
