//! Blocks that are not on the disk of a node: what fetches them, and what is said while they
//! cannot be had.

mod cache;
mod rules;

use crate::tablet::restore::open_local;
use crate::tablet::world::{DIR, World, increment, once_here};
use latewood_cluster::kafka::memory::Faults;
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_engine::io::waiting::no_wait;
use latewood_engine::{
    Aggregation, Append, BucketStamp, Create, Db, ErrorKind, Outcome, RangeQuery, Refusal, Result,
    Scratch, Sink,
};
use latewood_model::{Aggregator, DuplicatePolicy};
use latewood_offsite::faulty::{Fault, Verb};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Samples of a block.
const SAMPLES: i64 = 1_000;
/// Blocks of a history.
const BLOCKS: i64 = 3;

#[derive(Default)]
struct Rows(Vec<(i64, u64)>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        let values = values.iter().map(|value| value.to_bits());
        self.0.extend(timestamps.iter().copied().zip(values));
        ControlFlow::Continue(())
    }
}

pub(crate) fn query(from: i64, to: i64) -> RangeQuery {
    RangeQuery {
        from,
        to,
        ..RangeQuery::default()
    }
}

pub(crate) fn rows(db: &Db, key: &[u8], query: &RangeQuery) -> Result<Vec<(i64, u64)>> {
    let mut rows = Rows::default();
    db.range(key, query, &mut rows)?;
    Ok(rows.0)
}

pub(crate) fn add(db: &Db, key: &[u8], at: i64, value: f64, policy: DuplicatePolicy) -> Outcome {
    let sample = Append {
        key,
        timestamp: at,
        value,
        on_duplicate: Some(policy),
        create: Create::Defaults,
    };
    let mut scratch = Scratch::new();
    db.append(&[sample], &mut scratch).unwrap();
    scratch.outcomes()[0]
}

/// The objects that were read, of blocks alone.
#[derive(Clone, Default)]
struct Read(Arc<Mutex<Vec<String>>>);

impl Read {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A world whose tablet has a history of blocks in the store and no owner, and the number that
/// says what becomes of reads of blocks: 0 all is well, 1 unavailable, 2 a wrong bit, 3 cut off,
/// 4 unavailable but for the sixth block.
fn history(fill: impl Fn(&Db)) -> (World, Arc<AtomicU8>, Read) {
    let mut world = World::new(1, Faults::default());
    let (tablet, db) = world.open(1, &SimDisk::new()).unwrap();
    fill(&db);
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    drop((tablet, db));
    let (wrong, read) = (Arc::new(AtomicU8::new(0)), Read::default());
    let (fails, reads) = (Arc::clone(&wrong), read.clone());
    world.store = world.store.with(move |request| {
        if request.verb != Verb::Get || !request.object.contains("blocks/") {
            return Fault::None;
        }
        reads.0.lock().unwrap().push(request.object.to_owned());
        match fails.load(Ordering::Relaxed) {
            0 => Fault::None,
            1 => Fault::Unavailable,
            2 => Fault::WrongBit,
            3 => Fault::Broken,
            _ if request.object.contains("block-000000000000000b.blk") => Fault::None,
            _ => Fault::Unavailable,
        }
    });
    (world, wrong, read)
}

/// Blocks one after the other in time.
pub(crate) fn fill(db: &Db) {
    fill_from(db, 0, BLOCKS);
}

fn fill_from(db: &Db, first: i64, blocks: i64) {
    for at in first..blocks * SAMPLES {
        add(db, b"a", at, at as f64, DuplicatePolicy::Block).unwrap();
        if at % SAMPLES == SAMPLES - 1 {
            db.flush().unwrap();
        }
    }
}

fn blocks_on(disk: &SimDisk) -> usize {
    use latewood_engine::io::Disk;
    disk.list(&Path::new(DIR).join("blocks")).unwrap().len()
}

#[test]
fn a_backup_has_the_blocks_that_were_not_here_or_is_none() {
    let (world, wrong, _) = history(fill);
    let disk = SimDisk::new();
    let (_tablet, db) = world
        .open_waiting(2, &disk, Duration::from_millis(10))
        .unwrap();
    wrong.store(1, Ordering::Relaxed);
    let refused = db.backup(Path::new("/early")).unwrap_err().to_string();
    assert!(
        refused.contains("not on this machine") && refused.contains("x://data"),
        "{refused}"
    );
    assert!(open_local(&disk.kill(), "/early").is_err());
    wrong.store(0, Ordering::Relaxed);
    let mut backup = 0;
    // A block may need longer than a read waits.
    while db.backup(Path::new(&format!("/copy-{backup}"))).is_err() {
        backup += 1;
        assert!(backup < 1_000, "no backup");
    }
    let local = open_local(&disk.kill(), &format!("/copy-{backup}")).unwrap();
    let all = rows(&local, b"a", &query(i64::MIN, i64::MAX)).unwrap();
    assert_eq!(all.len() as i64, BLOCKS * SAMPLES);
}

#[test]
fn a_start_needs_no_block_and_a_read_the_one_of_its_time() {
    let (world, _, read) = history(fill);
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    assert_eq!(read.take(), [""; 0]);
    let away_bytes = tablet.away_bytes();
    assert!(away_bytes > 0 && db.is_away(0, SAMPLES));
    let found = rows(&db, b"a", &query(10, 20)).unwrap();
    assert_eq!(found.len(), 11);
    assert_eq!(read.take().len(), 1);
    assert!(!db.is_away(0, SAMPLES - 1) && db.is_away(0, SAMPLES));
    assert!(tablet.away_bytes() < away_bytes);
    assert_eq!(
        rows(&db, b"a", &query(0, SAMPLES - 1)).unwrap().len() as i64,
        SAMPLES
    );
    assert_eq!(read.take(), [""; 0]);
    assert_eq!(blocks_on(&disk), 1);
    // What nobody asks for comes too, and is there after the next start.
    tablet.fetch_all(&db);
    while tablet.away_bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(blocks_on(&disk) as i64, BLOCKS);
    assert_eq!(read.take().len() as i64, BLOCKS - 1);
    tablet.abandon();
    drop((tablet, db));
    let (tablet, db) = world.open(3, &disk.kill()).unwrap();
    assert_eq!(tablet.away_bytes(), 0);
    let all = rows(&db, b"a", &query(0, i64::MAX)).unwrap();
    assert_eq!((all.len() as i64, read.take().len()), (BLOCKS * SAMPLES, 0));
}

#[test]
fn the_newest_blocks_come_first() {
    // A thread may be held up between taking a block and asking the store for it: not every time.
    let first = (0..10).filter(|_| have_newest_come_first()).count();
    assert!(first > 5, "{first} of 10 times");
}

/// Fetches blocks that do not come at once. Returns whether the oldest was asked for behind the
/// others.
fn have_newest_come_first() -> bool {
    let (world, wrong, read) = history(fill);
    wrong.store(1, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    tablet.fetch_all(&db);
    // One thread has the newest, another the one before it.
    let mut all = Vec::new();
    while all.len() < 10 {
        all.extend(read.take());
    }
    let seen = |text: &str, seen: &[String]| seen.iter().any(|object| object.contains(text));
    assert!(!seen("block-0000000000000001.blk", &all[..1]), "{all:?}");
    // None keeps another from coming.
    assert!(seen("block-0000000000000001.blk", &all), "{all:?}");
    wrong.store(0, Ordering::Relaxed);
    while tablet.away_bytes() > 0 {
        std::thread::yield_now();
    }
    !seen("block-0000000000000001.blk", &all[..2])
}

#[test]
fn a_store_that_is_away_delays_a_read_and_stops_no_write() {
    let (world, wrong, _) = history(fill);
    let (_tablet, db) = world
        .open_waiting(2, &SimDisk::new(), Duration::from_millis(30))
        .unwrap();
    wrong.store(1, Ordering::Relaxed);
    let refused = rows(&db, b"a", &query(10, 20)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Away);
    let text = refused.to_string();
    let object = "x://data/main/00000/";
    assert!(
        text.contains(object) && text.contains("/cache/blocks/block-"),
        "{text}"
    );
    add(&db, b"a", BLOCKS * SAMPLES, 1.0, DuplicatePolicy::Block).unwrap();
    add(&db, b"b", 5_000, 1.0, DuplicatePolicy::Block).unwrap();
    // Deep late, and nobody needs to know what is there.
    add(&db, b"a", 15, 7.0, DuplicatePolicy::Last).unwrap();
    increment(&db, b"b", 6_000);
    db.flush().unwrap();
    assert_eq!(rows(&db, b"b", &query(5_000, 6_000)).unwrap().len(), 2);
    assert!(db.stats().halted.is_none());
    // It was asked for, and comes as soon as the store is back.
    wrong.store(0, Ordering::Relaxed);
    let found = once_here(|| rows(&db, b"a", &query(15, 16)));
    assert_eq!(found, [(15, 7.0_f64.to_bits()), (16, 16.0_f64.to_bits())]);
}

#[test]
fn wrong_bytes_are_never_read() {
    let (world, wrong, read) = history(fill);
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    wrong.store(2, Ordering::Relaxed);
    for turn in 0..3 {
        let refused = rows(&db, b"a", &query(10, 20)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);
        let text = refused.to_string();
        assert!(text.contains("blocks/block-0000"), "{text}");
        let tried = read.take().len();
        assert!(if turn == 0 { tried > 1 } else { tried == 0 }, "{tried}");
    }
    assert_eq!(blocks_on(&disk), 1, "an unfinished file");
    assert_eq!(tablet.cache().figures().lost, 1);
    // The object is repaired, but the answer is cut off in the middle: tried again.
    wrong.store(3, Ordering::Relaxed);
    tablet.fetch_all(&db);
    let back = Arc::clone(&wrong);
    std::thread::spawn(move || {
        std::thread::yield_now();
        back.store(0, Ordering::Relaxed);
    });
    assert_eq!(rows(&db, b"a", &query(10, 20)).unwrap().len(), 11);
    assert_eq!(tablet.cache().figures().lost, 0);
    tablet.abandon();
}

#[test]
fn blocks_that_fail_keep_no_other_from_coming() {
    let (world, wrong, _) = history(|db| fill_from(db, 0, 6));
    wrong.store(4, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    for block in 0..5 {
        let _event_loop = no_wait();
        let at = block * SAMPLES;
        assert!(rows(&db, b"a", &query(at, at)).unwrap_err().is_away());
    }
    assert_eq!(rows(&db, b"a", &query(5_500, 5_509)).unwrap().len(), 10);
    tablet.abandon();
}

#[test]
fn removed_blocks_are_not_fetched() {
    let (world, wrong, read) = history(fill);
    wrong.store(1, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    tablet.fetch_all(&db);
    db.flush_all().unwrap();
    db.flush().unwrap();
    assert_eq!(tablet.away_bytes(), 0);
    let mut turns = 0;
    while !read.take().is_empty() {
        turns += 1;
        assert!(turns < 500, "they are tried for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    tablet.abandon();
}

#[test]
fn a_write_that_must_know_a_stored_sample_is_refused_until_it_is_here() {
    let (world, wrong, _) = history(fill);
    wrong.store(1, Ordering::Relaxed);
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    let away = Err(Refusal::Away);
    assert_eq!(add(&db, b"a", 15, 1.0, DuplicatePolicy::Block), away);
    assert_eq!(add(&db, b"a", 15, 1.0, DuplicatePolicy::Block), away);
    // No sample of the series is NaN.
    assert_eq!(add(&db, b"a", 1015, 1.0, DuplicatePolicy::Max), Ok(1015));
    assert_eq!(add(&db, b"a", 2015, f64::NAN, DuplicatePolicy::Sum), away);
    // The newest sample is known.
    increment(&db, b"a", BLOCKS * SAMPLES - 1);
    // A deletion counts what it deletes.
    {
        let _event_loop = no_wait();
        let refused = db.delete_range(b"a", 100, 200).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Away);
    }
    wrong.store(0, Ordering::Relaxed);
    let (deleted, _) = db.delete_range(b"a", 100, 200).unwrap();
    assert_eq!(deleted, 101);
    let duplicate = Err(Refusal::Duplicate);
    assert_eq!(add(&db, b"a", 15, 1.0, DuplicatePolicy::Block), duplicate);
    assert_eq!(add(&db, b"a", 150, 1.0, DuplicatePolicy::Block), Ok(150));
    rows(&db, b"a", &query(2015, 2015)).unwrap();
    assert_eq!(
        add(&db, b"a", 2015, f64::NAN, DuplicatePolicy::Sum),
        duplicate
    );
    let found = rows(&db, b"a", &query(99, 201)).unwrap();
    let times: Vec<i64> = found.iter().map(|row| row.0).collect();
    assert_eq!(times, [99, 150, 201]);
    tablet.abandon();
}

#[test]
fn a_checkpoint_names_blocks_that_are_not_here() {
    let (world, _, read) = history(fill);
    for node in 2..5 {
        let (tablet, db) = world.open(node, &SimDisk::new()).unwrap();
        add(&db, b"b", i64::from(node), 1.0, DuplicatePolicy::Block).unwrap();
        db.flush().unwrap();
        tablet.checkpoint(&db).unwrap();
        tablet.checkpoint(&db).unwrap();
        assert_eq!(read.take(), [""; 0]);
        tablet.abandon();
        drop((tablet, db));
    }
    let (_tablet, db) = world.open(5, &SimDisk::new()).unwrap();
    let all = rows(&db, b"a", &query(0, i64::MAX)).unwrap();
    assert_eq!(all.len() as i64, BLOCKS * SAMPLES);
    assert_eq!(rows(&db, b"b", &query(0, 9)).unwrap().len(), 3);
}

#[test]
fn removed_blocks_stay_away_and_merges_read_the_others() {
    let (world, _, read) = history(fill);
    let disk = SimDisk::new();
    let (tablet, db) = world.open(2, &disk).unwrap();
    db.merge().unwrap();
    assert_eq!(read.take().len() as i64, BLOCKS, "all of them are merged");
    let all = rows(&db, b"a", &query(0, i64::MAX)).unwrap();
    assert_eq!(all.len() as i64, BLOCKS * SAMPLES);
    tablet.checkpoint(&db).unwrap();
    tablet.abandon();
    drop((tablet, db));
    let (tablet, db) = world.open(3, &SimDisk::new()).unwrap();
    db.flush_all().unwrap();
    db.flush().unwrap();
    assert_eq!((tablet.away_bytes(), read.take().len()), (0, 0));
}

#[test]
fn a_kill_in_the_middle_of_a_download_leaves_nothing_behind() {
    for seed in 0..6 {
        println!("seed {seed}");
        let (world, wrong, _) = history(fill);
        let disk = SimDisk::new();
        let (tablet, db) = world
            .open_waiting(2, &disk, Duration::from_millis(5))
            .unwrap();
        wrong.store(3, Ordering::Relaxed);
        assert!(rows(&db, b"a", &query(10, 20)).is_err());
        let disk = match seed % 2 {
            0 => disk.kill(),
            _ => disk.crash(seed),
        };
        tablet.abandon();
        drop((tablet, db));
        wrong.store(0, Ordering::Relaxed);
        let (_tablet, db) = world.open(3, &disk).unwrap();
        assert_eq!(blocks_on(&disk), 0, "what was unfinished is removed");
        assert_eq!(rows(&db, b"a", &query(10, 20)).unwrap().len(), 11);
    }
}

/// What a random history is asked.
fn questions(random: &SimRandom) -> Vec<(Vec<u8>, RangeQuery)> {
    let ask = |_| {
        let from = random.below(3_000) as i64 - 10;
        let aggregator =
            [Aggregator::Sum, Aggregator::Twa, Aggregator::Max][random.below(3) as usize];
        let asked = RangeQuery {
            reverse: random.below(2) == 0,
            count: (random.below(4) == 0).then_some(3),
            aggregation: (random.below(2) == 0).then(|| Aggregation {
                aggregators: vec![aggregator],
                bucket_ms: 1 + random.below(300) as i64,
                align: 0,
                stamp: BucketStamp::Start,
                empty: false,
            }),
            ..query(from, from + random.below(800) as i64)
        };
        (vec![b'a' + random.below(4) as u8], asked)
    };
    (0..60).map(ask).collect()
}

#[test]
fn answers_are_those_of_a_node_that_has_all_blocks() {
    let mut fetched = 0;
    for seed in 0..12 {
        println!("seed {seed}");
        let random = SimRandom::new(seed);
        let answers = Mutex::new(Vec::new());
        let (world, wrong, read) = history(|db| {
            for _ in 0..6 {
                for _ in 0..400 {
                    let key = [b'a' + random.below(4) as u8];
                    let (at, value) = (random.below(3_000) as i64, random.below(100) as f64);
                    let policy = [
                        DuplicatePolicy::Last,
                        DuplicatePolicy::Sum,
                        DuplicatePolicy::Max,
                    ];
                    let _ = add(db, &key, at, value, policy[random.below(3) as usize]);
                }
                if random.below(2) == 0 {
                    let from = random.below(3_000) as i64;
                    db.delete_range(b"a", from, from + 100).unwrap();
                }
                db.flush().unwrap();
            }
            let asked = questions(&random).into_iter();
            *answers.lock().unwrap() = asked
                .map(|(key, query)| {
                    let found = rows(db, &key, &query).unwrap();
                    (key, query, found)
                })
                .collect();
        });
        let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
        if seed % 2 == 1 {
            // A block leaves as soon as another one comes.
            tablet.cache().set_bytes_max(1);
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // The store comes and goes.
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    wrong.store((random.below(2) * 3) as u8, Ordering::Relaxed);
                    std::thread::yield_now();
                }
                wrong.store(0, Ordering::Relaxed);
            });
            for (key, query, wanted) in &*answers.lock().unwrap() {
                {
                    let _event_loop = no_wait();
                    match rows(&db, key, query) {
                        Ok(found) => assert_eq!(&found, wanted, "{query:?}"),
                        Err(error) => assert!(error.is_away(), "{error}"),
                    }
                }
                assert_eq!(&rows(&db, key, query).unwrap(), wanted, "{query:?}");
            }
            stop.store(true, Ordering::Relaxed);
        });
        fetched += read.take().len();
        tablet.abandon();
    }
    assert!(fetched > 50, "{fetched} blocks were fetched");
}
