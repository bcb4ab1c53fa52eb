//! A start, reads and merges over damaged blocks, and over blocks whose checksums are
//! right and whose contents no Latewood wrote.

use crate::base::error::ErrorKind;
use crate::format::chunk::{Chunk, Shape};
use crate::io::sim::SimDisk;
use crate::log::Position;
use crate::storage::block::{BlockWriter, Family, Kind};
use crate::storage::files::directory::paths;
use crate::storage::files::{Manifest, SeriesFileWriter};
use crate::tools::check;
use crate::{Db, Defaults, Error, Options, RangeQuery, Result, Sink};
use latewood_codec::{Encoder, Hint};
use latewood_model::{Encoding, SeriesId, SeriesOptions, Timestamp};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const KEYS: [&[u8]; 2] = [b"a", b"b"];
/// Where the samples of each block begin.
const FIRSTS: [Timestamp; 2] = [0, 1000];

fn dir() -> &'static Path {
    Path::new("/db")
}

fn open_as(disk: &SimDisk, strict: bool) -> Result<Db> {
    let options = Options {
        background: false,
        shards: 1,
        segment_bytes: 64 * 1024,
        strict,
        ..Options::default()
    };
    Db::open(&disk.env(1), dir(), options, Defaults::default())
}

fn open(disk: &SimDisk) -> Db {
    open_as(disk, false).unwrap()
}

const SHAPE: Shape = Shape {
    encoding: Encoding::Compressed,
    chunk_size_bytes: 4096,
};

fn chunk_of(timestamps: &[Timestamp], shape: Shape) -> Chunk {
    let values: Vec<f64> = timestamps.iter().map(|&at| at as f64 / 7.0).collect();
    let (mut chunk, mut encoder, mut hint) = (Chunk::default(), Encoder::new(), Hint::default());
    chunk
        .push_samples(&mut encoder, shape, &mut hint, timestamps, &values)
        .unwrap();
    chunk
}

/// A database of two series, each with ten samples in each of two blocks; the
/// paths of the blocks.
fn filled(disk: &SimDisk) -> Vec<PathBuf> {
    filled_with(disk, &FIRSTS.map(|first| chunk_of(&held(first), SHAPE)))
}

/// The same, each series with one of `chunks` in each block.
fn filled_with(disk: &SimDisk, chunks: &[Chunk]) -> Vec<PathBuf> {
    let db = open(disk);
    for key in KEYS {
        db.create(key, &SeriesOptions::default()).unwrap();
    }
    let (core, env) = (&db.parts().core, &db.parts().core.env);
    let mut blocks = Vec::new();
    for chunk in chunks {
        let number = core.store.new_file_number();
        let path = core.store.block_path(number);
        let mut writer = BlockWriter::create(env, &path, number, 0, Family::Base).unwrap();
        for id in 0..2 {
            writer.chunk(SeriesId(id), Kind::Base, chunk).unwrap();
        }
        blocks.push((path, writer.finish().unwrap()));
    }
    let number = core.store.new_file_number();
    let path = core.store.series_file_path(number);
    let mut writer = SeriesFileWriter::create(env, &path, number, 0, &[]).unwrap();
    for id in 0..2 {
        let row = core.row_of(&core.shards[0].lock(), SeriesId(id), Position(2));
        let mut row = row.unwrap();
        let newest = chunks.iter().map(Chunk::last).max().unwrap();
        (row.newest, row.last_value) = (Some(newest), Some(newest as f64 / 7.0));
        row.flushed_last = row.newest;
        writer.row(&row).unwrap();
    }
    let series = writer.finish().unwrap();
    let publish = &mut |manifest: &mut Manifest| {
        let files = manifest.partition(0);
        files.series = Some(series);
        files.base = blocks.iter().map(|(_, meta)| meta.clone()).collect();
        Ok(())
    };
    core.publish(publish).unwrap();
    db.close().unwrap();
    blocks.into_iter().map(|(path, _)| path).collect()
}

struct Rows(Vec<Timestamp>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], _values: &[f64], _width: usize) -> ControlFlow<()> {
        self.0.extend_from_slice(timestamps);
        ControlFlow::Continue(())
    }
}

fn read(db: &Db, key: &[u8]) -> Result<Vec<Timestamp>> {
    let query = RangeQuery {
        from: Timestamp::MIN,
        to: Timestamp::MAX,
        ..RangeQuery::default()
    };
    let mut rows = Rows(Vec::new());
    db.range(key, &query, &mut rows)?;
    Ok(rows.0)
}

fn damage(disk: &SimDisk, path: &Path, at: impl Fn(usize) -> usize) -> Vec<u8> {
    let mut bytes = disk.bytes(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 4;
    disk.set_bytes(path, bytes.clone()).unwrap();
    bytes
}

fn held(first: Timestamp) -> Vec<Timestamp> {
    (first..first + 10).collect()
}

#[test]
fn a_block_that_cannot_be_opened_is_kept_aside_and_the_rest_served() {
    for lost in 0..2 {
        let disk = SimDisk::new();
        let blocks = filled(&disk);
        // The footer ends the file.
        let bytes = damage(&disk, &blocks[lost], |len| len - 20);
        let error = open_as(&disk, true).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(
            disk.bytes(&blocks[lost]).unwrap(),
            bytes,
            "nothing is changed"
        );
        let db = open(&disk);
        let found = db.recovery().blocks_lost.clone();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].samples, found[0].first), (20, FIRSTS[lost]));
        assert_eq!(db.doubts().len(), 1);
        for key in KEYS {
            assert_eq!(read(&db, key).unwrap(), held(FIRSTS[1 - lost]));
        }
        drop(db);
        // It is durable, and known as long as the file is kept.
        let disk = disk.crash(4);
        let kept = dir().join("quarantine").join(&found[0].kept_as);
        assert_eq!(disk.bytes(&kept).unwrap(), bytes);
        let db = open(&disk);
        assert!(disk.bytes(&blocks[lost]).is_err());
        assert!(db.recovery().blocks_lost.is_empty());
        assert_eq!(db.recovery().quarantined, [found[0].kept_as.clone()]);
        assert_eq!(read(&db, KEYS[0]).unwrap(), held(FIRSTS[1 - lost]));
        // Until somebody accepts it.
        let (series, at) = (db.resolve(KEYS[0]).unwrap(), FIRSTS[lost]);
        let doubt = db.doubt_of(std::slice::from_ref(&series), at + 9, at + 500);
        assert_eq!(
            doubt.map(|doubt| doubt.name),
            Some(found[0].kept_as.clone())
        );
        assert_eq!(db.doubt_of(&[series], at + 10, at + 500), None);
        assert_eq!(db.accept_quarantine().unwrap(), 1);
        assert!(db.doubts().is_empty());
        drop(db);
        let disk = disk.crash(5);
        assert!(open(&disk).doubts().is_empty());
        assert!(disk.bytes(&kept).is_ok());
        let checked = check(&disk.env(1), dir(), &mut |_| {}).unwrap();
        assert_eq!((checked.damage, checked.blocks), (0, 1));
    }
}

#[test]
fn a_damaged_chunk_fails_its_queries_alone() {
    let disk = SimDisk::new();
    let blocks = filled(&disk);
    // The first chunk behind the header: series 0.
    damage(&disk, &blocks[1], |_| 40);
    let db = open(&disk);
    assert!(db.recovery().blocks_lost.is_empty());
    let error: Error = read(&db, KEYS[0]).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let name = blocks[1].display().to_string();
    for word in ["series 0", "from 1000 to 1009", &name] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let all = [held(FIRSTS[0]), held(FIRSTS[1])].concat();
    assert_eq!(read(&db, KEYS[1]).unwrap(), all);
    drop(db);
    let mut found = Vec::new();
    let checked = check(&disk.env(1), dir(), &mut |finding| {
        found.push(finding.clone())
    });
    assert_eq!(checked.unwrap().damage, 1, "{found:?}");
    assert!(found[0].what.contains("series 0"), "{found:?}");
}

#[test]
fn a_logged_deletion_over_a_damaged_chunk_does_not_stop_the_start() {
    let disk = SimDisk::new();
    let blocks = filled(&disk);
    let db = open(&disk);
    assert_eq!(db.delete_range(KEYS[0], 1005, 2000).unwrap().0, 5);
    db.sync().unwrap();
    let disk = disk.kill();
    // Where the newest sample lies now.
    damage(&disk, &blocks[1], |_| 40);
    let error = open_as(&disk.kill(), true).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let db = open(&disk);
    let met = db.recovery().blocks_damaged.clone();
    assert_eq!(met.len(), 1);
    let name = blocks[1].display().to_string();
    assert!(met[0].contains(&name), "{met:?}");
    // Nobody is told of a sample that may not be the newest.
    assert_eq!(
        db.last_sample(KEYS[0]).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    let all = [held(FIRSTS[0]), held(FIRSTS[1])].concat();
    assert_eq!(read(&db, KEYS[1]).unwrap(), all);
    drop(db);
    let checked = check(&disk.env(1), dir(), &mut |_| {}).unwrap();
    assert_eq!((checked.damage, checked.is_refused), (1, false));
}

#[test]
fn a_start_cut_short_anywhere_finds_the_damage_again() {
    let disk = SimDisk::new();
    let blocks = filled(&disk);
    let bytes = damage(&disk, &blocks[0], |len| len - 20);
    let clean = disk.kill();
    drop(open(&clean));
    for step in 0..clean.count_all() {
        let disk = disk.kill();
        disk.plan(crate::io::sim::Fault {
            op: None,
            after: step,
            trouble: crate::io::sim::Trouble::PowerCut,
        });
        drop(open_as(&disk, false));
        let disk = disk.crash(step);
        let db = open(&disk);
        assert_eq!(read(&db, KEYS[1]).unwrap(), held(FIRSTS[1]), "step {step}");
        let name = blocks[0].file_name().unwrap();
        let kept = disk.bytes(&dir().join("quarantine").join(name)).unwrap();
        assert_eq!(kept, bytes, "step {step}");
        assert_eq!(db.doubts().len(), 1, "step {step}");
    }
}

/// Merges fail with an error that names one of `blocks`, and leave it.
fn merge_fails(disk: &SimDisk, blocks: &[PathBuf], words: &[&str]) {
    for late in [None, Some(3)] {
        let disk = disk.kill();
        let db = open(&disk);
        if let Some(timestamp) = late {
            let sample = crate::Append {
                key: KEYS[0],
                timestamp,
                value: 1.0,
                on_duplicate: Some(latewood_model::DuplicatePolicy::Last),
                create: crate::Create::Never,
            };
            db.append(&[sample], &mut crate::Scratch::new()).unwrap();
            db.flush().unwrap();
        }
        let error = db.merge().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "{word} in {text}");
        }
        let mut blocks = blocks.iter();
        let named = blocks.find(|path| text.contains(&*path.to_string_lossy()));
        let path = named.expect(&text);
        let left = paths(dir(), &db.parts().core.store.manifest());
        assert!(left.contains(path), "{text}: {left:?}");
    }
}

#[test]
fn blocks_that_overlap_are_not_merged() {
    for samples in [10, 500] {
        let spans = [0..samples, samples / 2..samples / 2 + samples];
        let chunks = spans.map(|span| chunk_of(&span.collect::<Vec<_>>(), SHAPE));
        let disk = SimDisk::new();
        let blocks = filled_with(&disk, &chunks);
        let words = ["the chunk of series 0", "overlaps those of another block"];
        merge_fails(&disk, &blocks, &words);
    }
}

#[test]
fn chunks_whose_timestamps_do_not_ascend_are_not_merged() {
    let raw = Shape {
        encoding: Encoding::Uncompressed,
        ..SHAPE
    };
    for forged in 0..2 {
        let chunks = [0, 1].map(|place| {
            let chunk = chunk_of(&held(FIRSTS[place]), raw);
            let mut bytes = chunk.bytes().to_vec();
            // One of the timestamps inside, eight bytes each.
            let inside = (FIRSTS[place] + 5).to_le_bytes();
            let at = bytes.windows(8).position(|bytes| *bytes == inside).unwrap();
            if place == forged {
                bytes[at..at + 8].copy_from_slice(&i64::MIN.to_le_bytes());
            }
            Chunk::from_bytes(bytes).unwrap()
        });
        let disk = SimDisk::new();
        let blocks = filled_with(&disk, &chunks);
        let checked = check(&disk.kill().env(1), dir(), &mut |_| {}).unwrap();
        assert_eq!(checked.damage, 1);
        merge_fails(
            &disk,
            &blocks[forged..=forged],
            &["series 0", "does not decode"],
        );
    }
}
