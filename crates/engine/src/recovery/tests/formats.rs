//! Series ids beyond 32 bits, who made a series, and a directory of the formats before, through
//! log, files and restarts.

use super::{SHARDS, open};
use crate::format::rule::RuleSpec;
use crate::io::sim::SimDisk;
use crate::io::{Disk, Env};
use crate::tools::check;
use crate::{Append, Create, Db, Defaults, DropEmpty, NoticeHook, Options, Scratch};
use latewood_model::{
    Aggregator, DuplicatePolicy, Labels, MadeBy, Matcher, SeriesId, SeriesOptions, Test,
};
use std::path::Path;
use std::sync::{Arc, Mutex};

const DIR: &str = "/db";

fn put(db: &Db, key: &[u8], timestamp: i64, create: Create<'_>) {
    let append = Append {
        key,
        timestamp,
        value: timestamp as f64,
        on_duplicate: Some(DuplicatePolicy::Last),
        create,
    };
    let mut scratch = Scratch::new();
    db.append(&[append], &mut scratch).unwrap();
    scratch.outcomes()[0].unwrap();
}

fn made_by(db: &Db, key: &[u8]) -> MadeBy {
    let id = db.resolve(key).unwrap().id;
    let state = db.parts().core.shards.lock_of(id);
    state.series(id).unwrap().marks.made_by()
}

/// A database whose next ids have 41 bits.
fn far() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk);
    put(&db, b"near", 1, Create::Defaults);
    db.flush().unwrap();
    let published = db.parts().core.publish(&mut |manifest| {
        manifest.next_id = 1 << 40;
        Ok(())
    });
    published.unwrap();
    db.close().unwrap();
    disk
}

fn labelled(site: &[u8]) -> SeriesOptions {
    SeriesOptions {
        labels: Labels::new([(&b"site"[..], site)]).unwrap(),
        ..SeriesOptions::default()
    }
}

fn found(db: &Db, site: &[u8]) -> Vec<Vec<u8>> {
    let matcher = Matcher {
        name: b"site"[..].into(),
        test: Test::AnyOf(vec![site.into()]),
    };
    let found = db.select(&[matcher]).unwrap().into_iter();
    found.map(|series| series.key.to_vec()).collect()
}

fn is_sound(env: &Env) {
    let mut said = Vec::new();
    let checked = check(env, Path::new(DIR), &mut |finding| {
        said.push(finding.what.clone())
    });
    let checked = checked.unwrap();
    assert!(checked.damage == 0 && !checked.is_refused, "{said:?}");
}

fn holds_far_series(db: &Db) {
    let ids = [&b"a"[..], b"b", b"hourly"].map(|key| db.resolve(key).unwrap().id);
    assert!(ids.iter().all(|&id| id >= SeriesId(1 << 40)), "{ids:?}");
    assert!(db.resolve(b"near").unwrap().id < SeriesId(SHARDS as u64));
    assert_eq!(found(db, b"north"), [b"a", b"b"]);
    assert_eq!(found(db, b"south"), [b"near"]);
    assert_eq!(
        db.last_sample(b"a").unwrap().map(|last| last.timestamp),
        Some(7_200_000)
    );
    let hourly = db.last_sample(b"hourly").unwrap();
    assert_eq!(hourly.map(|last| last.timestamp), Some(0));
    // Every series is there once.
    let (mut keys, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = db
            .scan(cursor, 1, &mut |key| keys.push(key.to_vec()))
            .unwrap();
        if cursor == 0 {
            break;
        }
    }
    keys.sort_unstable();
    assert_eq!(keys, [&b"a"[..], b"b", b"hourly", b"near"]);
}

#[test]
fn ids_beyond_32_bits_come_back_from_log_and_files() {
    let disk = far();
    let db = open(&disk);
    let (north, south) = (labelled(b"north"), labelled(b"south"));
    db.alter(b"near", &south).unwrap();
    db.create(b"a", &north).unwrap();
    db.create(b"hourly", &SeriesOptions::default()).unwrap();
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 3_600_000,
        align: 0,
    };
    db.create_rule(b"a", b"hourly", spec).unwrap();
    for at in [1_000, 7_200_000, 500] {
        put(&db, b"a", at, Create::Never);
    }
    put(&db, b"b", 5, Create::With(&north));
    db.maintain().unwrap();
    holds_far_series(&db);
    is_sound(&disk.kill().env(1));
    // From the log.
    drop(db);
    let db = open(&disk.kill());
    holds_far_series(&db);
    drop(db);
    // From files.
    let db = open(&disk);
    db.flush().unwrap();
    let partitions = db.parts().core.store.manifest().partitions;
    assert!(partitions.keys().any(|&partition| partition >= 1 << 24));
    put(&db, b"a", 600, Create::Never);
    db.flush().unwrap();
    holds_far_series(&db);
    db.close().unwrap();
    is_sound(&disk.kill().env(1));
    let db = open(&disk);
    holds_far_series(&db);
    db.remove(&[b"a"]).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = open(&disk);
    assert_eq!(found(&db, b"north"), [b"b"]);
}

#[test]
fn who_made_a_series_comes_back_from_log_and_files() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let options = labelled(b"north");
    db.create(b"by-create", &options).unwrap();
    put(&db, b"by-add", 1, Create::With(&options));
    put(&db, b"by-default", 1, Create::Defaults);
    put(&db, b"by-sender", 1, Create::Sent(&options));
    db.copy(b"by-sender", b"copied", false).unwrap();
    let holds = |db: &Db| {
        let keys = [
            &b"by-create"[..],
            b"by-add",
            b"by-default",
            b"by-sender",
            b"copied",
        ];
        assert_eq!(
            keys.map(|key| made_by(db, key)),
            [
                MadeBy::Create,
                MadeBy::Add,
                MadeBy::Add,
                MadeBy::Sender,
                MadeBy::Create
            ]
        );
    };
    holds(&db);
    drop(db);
    let db = open(&disk.kill());
    holds(&db);
    drop(db);
    let db = open(&disk);
    db.flush().unwrap();
    db.close().unwrap();
    holds(&open(&disk));
}

/// The files of a golden directory.
macro_rules! golden {
    ($($name:literal)*) => {
        [$(($name, include_bytes!(concat!("../../../tests/golden/dir-v1/", $name)).as_slice())),*]
    };
}

/// A directory whose files all have the first version: series `flushed` with overlays and `other`
/// in files, `logged` in the log alone.
fn of_before() -> SimDisk {
    let files = golden! {
        "FORMAT" "MANIFEST" "blocks/block-0000000000000001.blk" "blocks/block-0000000000000003.blk"
        "series/series-0000000000000004.cat" "wal/segment-0000000000000001.wal"
    };
    let disk = SimDisk::new();
    for (name, bytes) in files {
        let path = Path::new(DIR).join(name);
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        disk.create(&path, 0).unwrap();
        disk.set_bytes(&path, bytes.to_vec()).unwrap();
    }
    disk
}

fn open_hearing(disk: &SimDisk) -> (Db, Vec<String>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let says = said.clone();
    let hook = NoticeHook::new(move |sentence| says.lock().unwrap().push(sentence.to_owned()));
    let options = Options {
        background: false,
        segment_bytes: 64 * 1024,
        shards: 2,
        strict: true,
        on_notice: Some(hook),
        ..Options::default()
    };
    let db = Db::open(&disk.env(1), Path::new(DIR), options, Defaults::default());
    let db = db.unwrap();
    let said = said.lock().unwrap().clone();
    (db, said)
}

fn version_of(disk: &SimDisk, path: &Path) -> u8 {
    disk.bytes(path).unwrap()[8]
}

fn holds_what_was_there(db: &Db) {
    assert_eq!(found(db, b"north"), [b"flushed"]);
    let last = [&b"flushed"[..], b"other", b"logged"].map(|key| {
        let last = db.last_sample(key).unwrap().unwrap();
        (last.timestamp, last.value)
    });
    assert_eq!(last, [(5000, 0.5), (7, 7.5), (3, 0.25)]);
    assert_eq!(made_by(db, b"other"), MadeBy::Create, "it did not say");
}

#[test]
fn a_directory_of_before_opens_and_is_converted_as_it_is_flushed() {
    let disk = of_before();
    is_sound(&disk.env(1));
    let manifest = Path::new(DIR).join("MANIFEST");
    assert_eq!(version_of(&disk, &manifest), 1);
    let (db, said) = open_hearing(&disk);
    assert!(
        said.len() == 1 && said[0].contains("older format"),
        "{said:?}"
    );
    holds_what_was_there(&db);
    put(&db, b"new", 9, Create::Defaults);
    // Also from what it left unflushed.
    let killed = disk.kill();
    is_sound(&killed.env(1));
    holds_what_was_there(&open_hearing(&killed).0);
    db.flush().unwrap();
    let core = db.parts().core.clone();
    let contents = core.store.manifest();
    assert_ne!(contents.key_seed, 0);
    for file in contents.series_files() {
        assert_eq!(
            version_of(&disk, &core.store.series_file_path(file.number)),
            2
        );
    }
    db.close().unwrap();
    assert_eq!(version_of(&disk, &manifest), 2);
    is_sound(&disk.env(1));
    let (db, said) = open_hearing(&disk);
    assert!(said.is_empty(), "{said:?}");
    holds_what_was_there(&db);
    assert_eq!(made_by(&db, b"new"), MadeBy::Add);
    assert_eq!(db.parts().core.store.manifest().key_seed, contents.key_seed);
}

#[test]
fn series_of_before_do_not_end() {
    let (db, _) = open_hearing(&of_before());
    db.set_retention_ms(1_000).unwrap();
    // All their samples are far below it.
    db.accept_clock().unwrap();
    db.maintain().unwrap();
    assert_eq!((db.len(), db.stats().series_ended), (3, 0));
    db.set_drop_empty(DropEmpty::All);
    db.maintain().unwrap();
    assert_eq!((db.len(), db.stats().series_ended), (0, 3));
}
