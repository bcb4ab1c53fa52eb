//! Series that lie in files of parked series: whoever reads many finds them as they are and wakes
//! none, what cannot be read is told, and they end as others do.

use super::twins::listed;
use crate::io::sim::{SimClock, SimDisk, SimRandom, seed};
use crate::io::{Clock, Env};
use crate::storage::files::SeriesFileWriter;
use crate::tools::check;
use crate::{
    Append, Create, Db, Defaults, DropEmpty, Error, KeyHook, NoticeHook, Options, RangeQuery,
    Scratch, SeriesRef, Sink,
};
use latewood_model::{Aggregator, Labels, MadeBy, Matcher, SeriesId, SeriesOptions, Test};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const DAY_MS: u32 = 86_400_000;
/// Of the database, days.
const KEPT_DAYS: u32 = 10;

pub(super) struct World {
    pub(super) disk: SimDisk,
    pub(super) clock: Arc<SimClock>,
    pub(super) said: Arc<Mutex<Vec<String>>>,
    /// The keys of series that expired.
    pub(super) expired: Arc<Mutex<Vec<String>>>,
    db: Option<Db>,
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self {
            disk: SimDisk::new(),
            clock: Arc::default(),
            said: Arc::default(),
            expired: Arc::default(),
            db: None,
        };
        world.open();
        world
    }

    fn open(&mut self) {
        self.db = Some(self.opened().unwrap());
    }

    pub(super) fn opened(&self) -> Result<Db, Error> {
        let said = Arc::clone(&self.said);
        let expired = Arc::clone(&self.expired);
        let options = Options {
            background: false,
            shards: super::SHARDS,
            // Changes follow.
            series_file_bytes_min: 0,
            retention_ms: u64::from(KEPT_DAYS * DAY_MS),
            on_notice: Some(NoticeHook::new(move |text| {
                said.lock().push(text.to_owned());
            })),
            on_expired: Some(KeyHook::new(move |key| {
                expired
                    .lock()
                    .push(String::from_utf8_lossy(key).into_owned());
            })),
            ..Options::default()
        };
        let env = Env {
            clock: self.clock.clone(),
            ..self.disk.env(1)
        };
        Db::open(&env, Path::new("/db"), options, Defaults::default())
    }

    pub(super) fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// Kills the database and opens it again; its files are sound.
    pub(super) fn kill(&mut self) {
        self.disk = self.disk.kill();
        drop(self.db.take());
        let mut said = Vec::new();
        let checked = check(&self.disk.env(1), Path::new("/db"), &mut |finding| {
            said.push(finding.what.clone());
        });
        assert!(checked.is_ok_and(|checked| checked.damage == 0), "{said:?}");
        self.open();
    }

    /// Writes one sample of the time to each of some series, `<site>:<number>`.
    pub(super) fn write(
        &self,
        site: &str,
        numbers: std::ops::Range<u32>,
        maker: MadeBy,
        retention_ms: u64,
    ) {
        let options = SeriesOptions {
            labels: Labels::new([(&b"site"[..], site.as_bytes()), (b"all", b"yes")]).unwrap(),
            retention_ms,
            ..SeriesOptions::default()
        };
        let create = match maker {
            MadeBy::Sender => Create::Sent(&options),
            _ => Create::With(&options),
        };
        let keys: Vec<String> = numbers.map(|number| key(site, number)).collect();
        let appends = keys.iter().map(|key| Append {
            key: key.as_bytes(),
            timestamp: self.clock.now_ms(),
            value: key.len() as f64,
            on_duplicate: Some(latewood_model::DuplicatePolicy::Last),
            create,
        });
        let mut scratch = Scratch::new();
        let appends: Vec<_> = appends.collect();
        self.db().append(&appends, &mut scratch).unwrap();
        assert!(scratch.outcomes().iter().all(Result::is_ok));
    }

    pub(super) fn flush(&self) {
        self.db().settle().unwrap();
        self.db().flush().unwrap();
    }

    /// Parks series by a file of them, as a pass does after a flush.
    pub(super) fn park(&self, keys: &[String]) -> PathBuf {
        let (path, ids) = self.write_parked(keys);
        let core = &self.db().parts().core;
        for id in ids {
            let parked = core.park_filed(&mut core.shards.lock_of(id), id);
            assert!(parked.is_some());
        }
        path
    }

    /// Publishes a file of parked series with the rows of these, which are still awake.
    pub(super) fn write_parked(&self, keys: &[String]) -> (PathBuf, BTreeSet<SeriesId>) {
        let core = &self.db().parts().core;
        let ids = keys
            .iter()
            .map(|key| core.find(key.as_bytes()).unwrap().unwrap());
        let ids: BTreeSet<_> = ids.collect();
        let number = core.store.new_file_number();
        let path = core.store.series_file_path(number);
        let mut writer =
            SeriesFileWriter::create_paged(&core.env, &path, number, 0, core.store.key_seed())
                .unwrap();
        for &id in &ids {
            let position = core.log().unwrap().written();
            let row = core.row_of(&core.shards.lock_of(id), id, position);
            writer.row(&row.unwrap()).unwrap();
        }
        let file = writer.finish().unwrap();
        core.publish(&mut |manifest| {
            let files = manifest.partition(0);
            files.living = files.series_count();
            files.parked.push(file);
            Ok(())
        })
        .unwrap();
        (path, ids)
    }

    pub(super) fn parked(&self) -> u64 {
        self.db().stats().series_parked
    }

    pub(super) fn selected(&self, site: &str) -> Vec<SeriesRef> {
        self.db().select(&[site_is(site)]).unwrap()
    }

    /// Raises the floor, and makes a whole pass, which does not read the file at `unread`.
    fn end(&self, unread: Option<&Path>) {
        while self.db().merge_step().unwrap() {}
        let held = unread.map(|path| (path, self.damage(path)));
        self.db().parts().rules.end_all().unwrap();
        if let Some((path, held)) = held {
            self.disk.set_bytes(path, held).unwrap();
        }
        assert!(self.said.lock().is_empty(), "{:?}", self.said.lock());
    }

    /// Damages the first page of a file. Returns what it was.
    pub(super) fn damage(&self, path: &Path) -> Vec<u8> {
        let held = self.disk.bytes(path).unwrap();
        let mut bytes = held.clone();
        bytes[64] ^= 1;
        self.disk.set_bytes(path, bytes).unwrap();
        held
    }
}

pub(super) fn key(site: &str, number: u32) -> String {
    format!("{site}:{number:04}")
}

pub(super) fn keys(site: &str, numbers: impl Iterator<Item = u32>) -> Vec<String> {
    numbers.map(|number| key(site, number)).collect()
}

pub(super) fn site_is(site: &str) -> Matcher {
    Matcher::new(b"site", Test::AnyOf(vec![site.as_bytes().into()]))
}

fn scanned(db: &Db) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut visit = |key: &[u8]| assert!(keys.insert(String::from_utf8(key.to_vec()).unwrap()));
    let mut cursor = 0;
    loop {
        cursor = db.scan(cursor, 13, &mut visit).unwrap();
        if cursor == 0 {
            return keys;
        }
    }
}

/// Where nothing is.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn rows(&mut self, _: &[i64], _: &[f64], _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What is said of all series together.
fn said(db: &Db) -> Vec<String> {
    let all = db.select(&[]).unwrap();
    let (_, mut said) = listed(db);
    let may_see: &dyn Fn(&[u8]) -> bool = &|key| !key.ends_with(b"7");
    let names = db.label_names(&[], Some(may_see), None, usize::MAX, None);
    said.push(format!("{:?}", names.unwrap().iter().collect::<Vec<_>>()));
    said.push(format!("{:?} {}", scanned(db), db.len()));
    let reduced = db.spread(0, |spread| {
        db.reduce(&all, &RangeQuery::EVERYTHING, Aggregator::Sum, spread, None)
    });
    said.push(format!("{:?}", reduced.unwrap()));
    let extents = db.extents(&all).into_iter();
    let spans = extents.map(|extent| extent.unwrap().unwrap().span);
    said.push(format!("{:?}", spans.collect::<Vec<_>>()));
    said.push(format!(
        "{}",
        db.samples_about(&all, &RangeQuery::EVERYTHING)
    ));
    let floors = all.iter().map(|one| db.floor_of(one).unwrap());
    said.push(format!("{:?}", floors.collect::<Vec<_>>()));
    said
}

/// Tells where they differ, not all of it.
fn assert_same(said: &[String], expected: &[String]) {
    for (at, (said, expected)) in said.iter().zip(expected).enumerate() {
        let differs = said.bytes().zip(expected.bytes()).position(|(a, b)| a != b);
        let differs = differs.unwrap_or(0).saturating_sub(80);
        let part = |text: &str| text.chars().skip(differs).take(200).collect::<String>();
        assert!(said == expected, "{at}: {} {}", part(said), part(expected));
    }
    assert_eq!(said.len(), expected.len());
}

#[test]
fn reads_of_many_find_parked_series_and_wake_none() {
    let mut world = World::new();
    world.write("north", 0..900, MadeBy::Sender, 0);
    world.write("south", 0..300, MadeBy::Sender, 3_600_000);
    world.flush();
    // A start raises the floor, too.
    world.end(None);
    let awake = said(world.db());
    world.park(&keys("north", (0..900).filter(|number| number % 3 > 0)));
    world.park(&keys("south", 100..200));
    assert_eq!(world.parked(), 700);
    assert_same(&said(world.db()), &awake);
    for _ in 0..50 {
        let key = world.db().random_key().unwrap().unwrap();
        assert!(world.db().parts().core.keys.len() == 500 && !key.is_empty());
    }
    assert_eq!(world.parked(), 700);
    let memory = world.db().memory();
    assert!(memory.parked_bytes > 700 * 12 && memory.total_bytes() > memory.parked_bytes);
    world.kill();
    assert_eq!(world.parked(), 700);
    assert_same(&said(world.db()), &awake);
    assert_eq!(world.parked(), 700);
    // By its key it wakes.
    assert!(world.db().last_sample(b"south:0150").unwrap().is_some());
    assert_eq!(world.parked(), 699);
    assert_same(&said(world.db()), &awake);
}

#[test]
fn a_sample_for_a_series_that_was_selected_while_parked_is_refused_once() {
    let world = World::new();
    world.write("north", 0..4, MadeBy::Sender, 0);
    world.flush();
    world.park(&keys("north", 0..4));
    let found = world.selected("north");
    let append = |series: &SeriesRef| {
        let append = crate::AppendTo {
            series,
            timestamp: world.clock.now_ms() + 1,
            value: 1.0,
            on_duplicate: None,
        };
        let mut scratch = Scratch::new();
        world.db().append_resolved(&[append], &mut scratch).unwrap();
        scratch.outcomes()[0].is_ok()
    };
    // Its key is another allocation; whoever looks it up again has the one that counts.
    if !append(&found[0]) {
        assert!(append(&world.db().resolve(&found[0].key).unwrap()));
    }
    assert_eq!(world.parked(), 3);
}

#[test]
fn keys_are_found_after_everything_was_removed_and_after_a_start() {
    let mut world = World::new();
    let seed = world.db().parts().core.store.key_seed();
    for site in ["north", "south"] {
        world.write(site, 0..50, MadeBy::Sender, 0);
        world.flush();
        world.park(&keys(site, 0..50));
        for _ in 0..2 {
            world.kill();
            assert_eq!(world.parked(), 50);
            assert_eq!(world.db().parts().core.store.key_seed(), seed);
            let here = keys(site, 0..50);
            assert_eq!(scanned(world.db()), here.iter().cloned().collect());
            assert!(!world.db().contains(key(site, 50).as_bytes()));
        }
        assert!(world.db().contains(key(site, 7).as_bytes()));
        assert_eq!(world.parked(), 49);
        world.db().flush_all().unwrap();
        world.kill();
        assert_eq!((world.parked(), world.db().len()), (0, 0));
        assert!(!world.db().contains(key(site, 7).as_bytes()));
    }
}

#[test]
fn parked_series_end_by_the_floor_and_by_their_own_retention() {
    let mut world = World::new();
    world.write("old", 0..200, MadeBy::Sender, 0);
    world.write("made", 0..5, MadeBy::Create, 0);
    world.clock.advance_ms(8 * DAY_MS);
    world.write("hour", 0..40, MadeBy::Sender, 3_600_000);
    world.write("live", 0..40, MadeBy::Sender, 0);
    // So many that changes follow.
    world.write("fill", 0..400, MadeBy::Sender, 0);
    world.flush();
    world.park(&keys("old", 0..200));
    world.park(&keys("made", 0..5));
    world.park(&keys("hour", 0..40));
    let live = world.park(&keys("live", 0..40));
    world.end(None);
    assert_eq!(world.parked(), 285, "nothing has ended");
    world.clock.advance_ms(DAY_MS);
    world.write("fleet", 0..3, MadeBy::Sender, 0);
    world.end(Some(&live));
    assert_eq!(world.parked(), 245, "an hour each");
    for _ in 0..2 {
        world.clock.advance_ms(DAY_MS);
        world.write("fleet", 0..3, MadeBy::Sender, 0);
        world.end(Some(&live));
    }
    assert_eq!(world.parked(), 45, "those that commands made stay");
    let sites = [
        ("old", 0),
        ("hour", 0),
        ("made", 5),
        ("live", 40),
        ("fill", 400),
        ("fleet", 3),
    ];
    let check = |world: &World| {
        for (site, count) in sites {
            assert_eq!(world.selected(site).len(), count, "{site}");
        }
        let values = world
            .db()
            .label_values(b"site", &[], None, None, usize::MAX, None);
        assert_eq!(values.unwrap().len(), 4);
        assert_eq!((scanned(world.db()).len(), world.db().len()), (448, 448));
        assert_eq!(world.parked(), 45);
    };
    check(&world);
    assert_eq!(world.db().stats().series_ended, 240);
    world.flush();
    world.kill();
    check(&world);
    world.db().set_drop_empty(DropEmpty::All);
    world.end(None);
    assert_eq!(world.parked(), 40);
}

#[test]
fn a_pass_is_due_when_a_parked_series_may_have_ended() {
    let world = World::new();
    world.write("minute", 0..3, MadeBy::Sender, 60_000);
    world.flush();
    world.park(&keys("minute", 0..3));
    let end_some = || world.db().parts().rules.end_some().unwrap();
    end_some();
    world.clock.advance_ms(119_000);
    world.write("fleet", 0..3, MadeBy::Sender, 0);
    end_some();
    assert_eq!(world.parked(), 3);
    world.clock.advance_ms(2_000);
    world.write("fleet", 0..3, MadeBy::Sender, 0);
    for _ in 0..10 {
        end_some();
    }
    assert_eq!(world.parked(), 0);
    assert_eq!(world.db().len(), 3);
}

#[test]
fn a_scan_visits_all_while_series_park_and_wake() {
    let seed = seed();
    println!("seed {seed}");
    let random = SimRandom::new(seed);
    let world = World::new();
    world.write("north", 0..400, MadeBy::Sender, 0);
    world.flush();
    let (mut visited, mut cursor, mut step) = (BTreeSet::new(), 0, 0);
    loop {
        cursor = world
            .db()
            .scan(cursor, 9, &mut |key| assert!(visited.insert(key.to_vec())))
            .unwrap();
        if cursor == 0 {
            break;
        }
        step += 1;
        let some = random.below(400) as u32;
        let some = some..(some + 40).min(400);
        if step % 4 == 0 {
            world.flush();
            let core = &world.db().parts().core;
            let awake = |key: &String| {
                core.keys
                    .find(core.keys.hash(key.as_bytes()), key.as_bytes())
            };
            let mut some = keys("north", some);
            some.retain(|key| awake(key).is_some());
            world.park(&some);
        } else {
            for key in keys("north", some) {
                assert!(world.db().contains(key.as_bytes()));
            }
        }
    }
    assert_eq!(visited.len(), 400);
}
