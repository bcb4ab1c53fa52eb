//! What the fuzz targets run, on bytes of golden files with a byte changed, and
//! starts that no file of a young database brings about.

mod damaged;
mod ended;
mod ended_followed;
mod ended_watched;
mod expiring;
mod filed;
mod formats;
mod labels;
mod linked;
mod parked;
mod parked_files;
mod twins;

use super::Recovery;
use crate::io::sim::{SimDisk, SimRandom};
use crate::storage::files::Manifest;
use crate::storage::files::fuzz::{read_manifest, read_series};
use crate::tools::check;
use crate::{Db, Defaults, ErrorKind, Options, Result};
use latewood_model::{MadeBy, SeriesId, SeriesOptions};
use std::path::Path;

const MANIFEST: &[u8] = include_bytes!("../../tests/golden/manifest-v2.bin");
const SERIES: &[u8] = include_bytes!("../../tests/golden/series-v2.cat");
const PARKED: &[u8] = include_bytes!("../../tests/golden/series-v4.cat");

#[test]
fn changed_bytes_make_no_reader_panic() {
    let random = SimRandom::new(3);
    read_manifest(MANIFEST).unwrap();
    read_series(SERIES).unwrap();
    read_series(PARKED).unwrap();
    for _ in 0..3_000 {
        // The fields of the second copy stand alone, without their checksum.
        let fields = &MANIFEST[MANIFEST.len() / 2 + 16..];
        let mut bytes = [fields, SERIES, PARKED][random.below(3) as usize].to_vec();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.below(256) as u8;
        let cut = random.below(2 * bytes.len() as u64) as usize;
        bytes.truncate(cut.max(1));
        let _ = read_manifest(&bytes);
        let _ = read_series(&bytes);
    }
}

const SHARDS: usize = 4;

fn try_open(disk: &SimDisk, strict: bool) -> Result<Db> {
    let options = Options {
        background: false,
        segment_bytes: 64 * 1024,
        shards: SHARDS,
        strict,
        ..Options::default()
    };
    Db::open(&disk.env(1), Path::new("/db"), options, Defaults::default())
}

fn open(disk: &SimDisk) -> Db {
    try_open(disk, false).unwrap()
}

#[test]
fn a_database_whose_ids_are_nearly_spent_starts_again() {
    let disk = SimDisk::new();
    for left in (0..SHARDS as u64).rev() {
        let next_id = SeriesId::MAX.0 - left;
        let db = open(&disk);
        let published = db.parts().core.publish(&mut |manifest| {
            manifest.next_id = next_id;
            Ok(())
        });
        published.unwrap();
        db.close().unwrap();
        // A start and a publication change nothing of it.
        let db = open(&disk);
        db.parts().core.publish(&mut |_| Ok(())).unwrap();
        assert_eq!(db.parts().core.store.manifest().next_id, next_id);
        db.close().unwrap();
    }
    open(&disk);
}

/// Checksums are right; the numbers leave nothing to add.
#[test]
fn a_forged_manifest_is_refused_by_name() {
    type Forge = fn(&mut Manifest);
    let forged: [Forge; 5] = [
        |manifest| manifest.epoch = u64::MAX,
        |manifest| manifest.flush = u64::MAX,
        |manifest| manifest.next_file = u64::MAX,
        |manifest| manifest.log_start = u64::MAX,
        |manifest| {
            let file = manifest.partition(0).series.as_mut().unwrap();
            file.position = u64::MAX;
        },
    ];
    let disk = SimDisk::new();
    let db = open(&disk);
    db.create(b"a", &SeriesOptions::default()).unwrap();
    db.flush().unwrap();
    let whole = db.parts().core.store.manifest();
    db.close().unwrap();
    for forge in forged {
        let disk = disk.kill();
        let mut manifest = whole.clone();
        forge(&mut manifest);
        disk.set_bytes(Path::new("/db/MANIFEST"), manifest.encode())
            .unwrap();
        for strict in [true, false] {
            let opened = try_open(&disk.kill(), strict);
            let error = opened.err().expect("nothing of it can be trusted");
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
            assert!(text.contains("/db/MANIFEST"), "{text}");
            assert!(text.contains("is beyond"), "{text}");
        }
        let checked = check(&disk.env(1), Path::new("/db"), &mut |_| {}).unwrap();
        assert!(checked.is_refused && checked.damage > 0, "{checked:?}");
    }
}

#[test]
fn of_several_series_with_one_key_the_one_that_got_it_last_stays() {
    let key = b"a";
    for last in 0..SHARDS as u64 {
        let db = open(&SimDisk::new());
        let core = &db.parts().core;
        for (number, shard) in core.shards.iter().enumerate() {
            let (state, options) = (&mut shard.lock(), SeriesOptions::default());
            // Any hash of the shard: a start makes the map of keys anew.
            let hash = number as u64;
            let id = core.enter_in(state, key, hash, MadeBy::Add, &options);
            assert_eq!(id, Ok(SeriesId(number as u64)));
        }
        let others = (0..SHARDS as u64).filter(|&id| id != last);
        let named: Vec<_> = others.chain([last]).map(SeriesId).collect();
        let displaced = Recovery::of(db.parts()).rebuild(&named).unwrap();
        assert_eq!(displaced.len(), SHARDS - 1);
        assert_eq!(
            core.keys.find(core.keys.hash(key), key),
            Some(SeriesId(last))
        );
        assert_eq!(db.last_sample(key).unwrap(), None);
        let left = core.shards.iter().map(|shard| shard.lock().slab.len());
        assert_eq!(left.sum::<usize>(), 1);
    }
}
