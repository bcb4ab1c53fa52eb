//! Series that ended, through log and files: killed, cut off, started with another number of
//! shards, and followed.

use super::open;
use crate::base::options::FollowHook;
use crate::io::sim::{Fault, SimDisk, Trouble};
use crate::keyspace::ended::EndedBy;
use crate::log::GroupBuilder;
use crate::log::group::REMOTE_SALT;
use crate::tools::check;
use crate::{Append, Create, Db, Defaults, Options, Result, Scratch};
use latewood_model::{DuplicatePolicy, Labels, MadeBy, Matcher, SeriesId, SeriesOptions, Test};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

const DIR: &str = "/db";

/// The newest sample and the count of samples of each series.
pub(super) type Held = BTreeMap<Vec<u8>, (i64, u64)>;

pub(super) fn options(shards: usize) -> Options {
    Options {
        background: false,
        segment_bytes: 64 * 1024,
        shards,
        ..Options::default()
    }
}

pub(super) fn open_in(disk: &SimDisk, shards: usize) -> Db {
    let defaults = Defaults::default();
    Db::open(&disk.env(1), Path::new(DIR), options(shards), defaults).unwrap()
}

fn north() -> SeriesOptions {
    SeriesOptions {
        labels: Labels::new([(&b"site"[..], &b"north"[..])]).unwrap(),
        ..SeriesOptions::default()
    }
}

pub(super) fn key(number: usize) -> Vec<u8> {
    format!("k{number}").into_bytes()
}

pub(super) fn keys(numbers: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    numbers.map(key).collect()
}

/// Samples at these times of each of the series.
pub(super) fn put(db: &Db, keys: &[Vec<u8>], times: std::ops::RangeInclusive<i64>) -> Result<()> {
    let options = &north();
    let each = |key| {
        times.clone().map(move |timestamp| Append {
            key,
            timestamp,
            value: timestamp as f64,
            on_duplicate: Some(DuplicatePolicy::Last),
            create: Create::Sent(options),
        })
    };
    let batch: Vec<_> = keys.iter().flat_map(|key| each(key)).collect();
    let mut scratch = Scratch::new();
    db.append(&batch, &mut scratch)?;
    assert!(scratch.outcomes().iter().all(std::result::Result::is_ok));
    Ok(())
}

pub(super) fn end(db: &Db, keys: &[Vec<u8>]) -> Result<usize> {
    end_by(db, keys, EndedBy::Floor)
}

/// Ends series as a sweep does: some of a shard under one lock.
pub(super) fn end_by(db: &Db, keys: &[Vec<u8>], by: EndedBy) -> Result<usize> {
    let core = &db.parts().core;
    let mut ids: Vec<_> = keys
        .iter()
        .filter_map(|key| core.find(key).unwrap())
        .collect();
    ids.sort_unstable();
    let mut ended = 0;
    for (number, shard) in core.shards.iter().enumerate() {
        let here = ids.iter().filter(|&&id| core.shards.shard_of(id) == number);
        let here: Vec<_> = here.map(|&id| (id, by)).collect();
        for some in here.chunks(32) {
            ended += core.end_in(&mut shard.lock(), some)?.len();
        }
    }
    Ok(ended)
}

/// What a database holds; each way to find a series finds the same ones.
pub(super) fn held(db: &Db) -> Held {
    let (mut keys, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = db
            .scan(cursor, 7, &mut |key| keys.push(key.to_vec()))
            .unwrap();
        if cursor == 0 {
            break;
        }
    }
    keys.sort_unstable();
    let matcher = Matcher::new(b"site", Test::AnyOf(vec![b"north"[..].into()]));
    let found = db.select(&[matcher]).unwrap().into_iter();
    assert_eq!(found.map(|one| one.key.to_vec()).collect::<Vec<_>>(), keys);
    assert_eq!(db.len(), keys.len());
    let each = keys.into_iter().map(|key| {
        let info = db.info(&key).unwrap();
        let newest = info.last_timestamp.unwrap_or(0);
        (key, (newest, info.total_samples))
    });
    each.collect()
}

fn is_sound(disk: &SimDisk) {
    let mut said = Vec::new();
    let checked = check(&disk.kill().env(1), Path::new(DIR), &mut |finding| {
        said.push(finding.what.clone());
    });
    let checked = checked.unwrap();
    assert!(checked.damage == 0 && !checked.is_refused, "{said:?}");
}

#[test]
fn series_that_ended_stay_gone_in_any_number_of_shards() {
    // A flush before they end, one before others have their keys, and one behind that.
    for flushes in 0..8 {
        let disk = SimDisk::new();
        let db = open(&disk);
        let flush = |bit: u32| {
            if flushes >> bit & 1 == 1 {
                db.flush().unwrap();
            }
        };
        put(&db, &keys(0..300), 1..=3).unwrap();
        flush(0);
        put(&db, &keys(0..100), 4..=4).unwrap();
        let ended = keys((0..300).filter(|number| number % 3 > 0));
        assert_eq!(end(&db, &ended).unwrap(), 200);
        assert_eq!(end(&db, &ended).unwrap(), 0, "they are gone");
        assert!(!db.contains(&key(1)));
        flush(1);
        let anew = keys((0..300).filter(|number| number % 30 == 1));
        put(&db, &anew, 10..=10).unwrap();
        flush(2);
        assert_eq!(end(&db, &anew[..3]).unwrap(), 3);
        let expected = held(&db);
        assert_eq!(expected.len(), 100 + 10 - 3);
        assert_eq!(expected[&key(0)], (4, 4));
        assert_eq!(expected[&key(91)], (10, 1));
        db.sync().unwrap();
        drop(db);
        for shards in [1, 2, 4, 64] {
            let disk = disk.kill();
            let db = open_in(&disk, shards);
            assert_eq!(held(&db), expected, "{flushes}, {shards} shards");
            db.flush().unwrap();
            db.merge().unwrap();
            db.close().unwrap();
            is_sound(&disk);
            let db = open_in(&disk, 4);
            assert_eq!(held(&db), expected, "{flushes}, {shards} shards, flushed");
        }
    }
}

/// How far a workload got before the disk failed.
#[derive(Default, PartialEq, PartialOrd)]
enum Reached {
    #[default]
    Nothing,
    /// All series have their samples.
    Made,
    /// Those of odd numbers ended.
    Ended,
    /// Some of them are there anew.
    Anew,
}

const SERIES: usize = 60;

fn is_anew(number: usize) -> bool {
    number % 10 == 1
}

fn workload(db: &Db, reached: &mut Reached) -> Result<()> {
    put(db, &keys(0..SERIES), 1..=3)?;
    db.sync()?;
    *reached = Reached::Made;
    db.flush()?;
    end(db, &keys((0..SERIES / 2).filter(|number| number % 2 == 1)))?;
    db.flush()?;
    end(
        db,
        &keys((SERIES / 2..SERIES).filter(|number| number % 2 == 1)),
    )?;
    db.sync()?;
    *reached = Reached::Ended;
    put(
        db,
        &keys((0..SERIES).filter(|&number| is_anew(number))),
        10..=10,
    )?;
    db.sync()?;
    *reached = Reached::Anew;
    db.merge()?;
    db.flush()
}

fn verify(db: &Db, reached: &Reached) {
    let held = held(db);
    for number in 0..SERIES {
        let is_of_those_that_end = number % 2 == 1;
        match held.get(&key(number)) {
            // It is made in one group with its samples, and ends whole.
            Some((3, 3)) => assert!(
                !is_of_those_that_end || *reached < Reached::Ended,
                "{number} did not end"
            ),
            Some((10, 1)) => assert!(is_anew(number) && *reached >= Reached::Ended, "{number}"),
            Some(other) => panic!("{number} has {other:?}"),
            None if *reached < Reached::Made => {}
            None => assert!(
                is_of_those_that_end && !(*reached >= Reached::Anew && is_anew(number)),
                "{number} is lost"
            ),
        }
    }
}

#[test]
fn a_power_cut_leaves_series_whole_or_ended() {
    let whole = SimDisk::new();
    workload(&open(&whole), &mut Reached::default()).unwrap();
    let mut cut = 0;
    for after in 0..whole.count_all() {
        let disk = SimDisk::new();
        let db = open(&disk);
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::Fail(io::ErrorKind::Other),
        });
        let mut reached = Reached::default();
        cut += usize::from(workload(&db, &mut reached).is_err());
        drop(db);
        disk.heal();
        for seed in 0..2 {
            let disk = disk.crash(2 * after + seed);
            let db = open_in(&disk, [1, 2, 8][after as usize % 3]);
            verify(&db, &reached);
            drop(db);
            is_sound(&disk);
        }
    }
    assert!(cut > 20, "only {cut} faults hit the workload");
}

/// Groups as a remote log has them.
#[derive(Default)]
struct Groups {
    group: GroupBuilder,
    written: u64,
}

impl Groups {
    fn seal(&mut self) -> Vec<u8> {
        self.written += 1;
        let sum = self.group.payload_checksum();
        let sealed = self.group.seal(self.written, 0, REMOTE_SALT, sum).to_vec();
        self.group.begin(2);
        sealed
    }

    fn make(&mut self, ids: impl Iterator<Item = u64>, time: i64) -> Vec<u8> {
        for id in ids.map(SeriesId) {
            let name = key((id.0 % 128) as usize);
            self.group.create(id, &name, MadeBy::Sender, &north());
            let policy = DuplicatePolicy::Last;
            self.group.sample(id, time, 1.0, policy);
        }
        self.seal()
    }
}

struct Follower {
    db: Db,
    told: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Follower {
    fn open(shards: usize) -> Self {
        let told = Arc::<Mutex<Vec<_>>>::default();
        let hears = told.clone();
        let hook = FollowHook::new(
            || true,
            move |key| hears.lock().unwrap().push(key.unwrap().to_vec()),
        );
        let options = Options {
            on_follow: Some(hook),
            ..options(shards)
        };
        let env = SimDisk::new().env(1);
        let db = Db::open_follower(&env, Path::new(DIR), options, Defaults::default());
        let db = db.unwrap();
        Self { db, told }
    }

    fn told(&self) -> Vec<Vec<u8>> {
        let mut told = std::mem::take(&mut *self.told.lock().unwrap());
        told.sort_unstable();
        told.dedup();
        told
    }
}

#[test]
fn who_follows_sees_series_end_as_if_they_were_deleted() {
    for shards in [1, 2, 4, 8, 64] {
        let (ends, deletes) = (Follower::open(shards), Follower::open(shards));
        let (mut of_ends, mut of_deletes) = (Groups::default(), Groups::default());
        let both = |ended: &[u8], deleted: &[u8]| {
            ends.db.follow(ended).unwrap();
            deletes.db.follow(deleted).unwrap();
            let (one, other) = (held(&ends.db), held(&deletes.db));
            assert_eq!(one, other, "{shards} shards");
            let told = ends.told();
            assert_eq!(told, deletes.told());
            (one.len(), told.len())
        };
        for groups in [&mut of_ends, &mut of_deletes] {
            groups.group.begin(2);
        }
        for residue in 0..4 {
            let ids = (residue..128).step_by(4);
            let (one, other) = (of_ends.make(ids.clone(), 5), of_deletes.make(ids, 5));
            both(&one, &other);
        }
        for residue in 0..4 {
            let ids = (residue..128).step_by(4).filter(|id| id % 3 > 0);
            let ids: Vec<_> = ids.map(SeriesId).collect();
            of_ends.group.end_series(&ids);
            ids.iter()
                .for_each(|&id| of_deletes.group.delete_series(id));
            let (left, told) = both(&of_ends.seal(), &of_deletes.seal());
            assert_eq!(told, ids.len());
            assert!(left < 128);
        }
        // Others have their keys, and end with some that are gone.
        let ids = (128..256).step_by(4).filter(|id| (id % 128) % 3 > 0);
        let anew = (of_ends.make(ids.clone(), 9), of_deletes.make(ids, 9));
        both(&anew.0, &anew.1);
        let ids: Vec<_> = (0..256).step_by(8).map(SeriesId).collect();
        of_ends.group.end_series(&ids);
        ids.iter()
            .for_each(|&id| of_deletes.group.delete_series(id));
        both(&of_ends.seal(), &of_deletes.seal());
        let memory = |db: &Db| db.memory().series.total_bytes();
        assert_eq!(memory(&ends.db), memory(&deletes.db));
    }
}
