//! Two databases to which the same is done, of which one parks series, and what they answer.

use super::SHARDS;
use crate::io::Env;
use crate::io::sim::{SimClock, SimDisk};
use crate::series::presence::Linked;
use crate::tools::check;
use crate::{Db, Defaults, Options, RangeQuery, ReaderId, Selector, Sink, Values, Watcher};
use latewood_model::{Labels, Matcher, Test};
use std::fmt::Debug;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/db";
/// Watches the series of the site `north`.
pub(super) const READER: ReaderId = ReaderId(1);
/// Samples are read of this time.
const SPAN: (i64, i64) = (505_000, 900_000);
/// Series files are written anew, whatever they hold.
pub(super) const WHOLE: u64 = u64::MAX;

/// A place that takes parked series for gone: a file, and lines of it.
pub(super) type Blind = (&'static str, Range<u32>);

/// How a database parks series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parks {
    Never,
    /// Their rows stay at hand. So does one with compaction rules, and a start parks what it can.
    AtHand,
    /// In files, as a database does by itself.
    InFiles,
}

/// One of the two databases.
pub(super) struct Twin {
    disk: SimDisk,
    pub(super) clock: Arc<SimClock>,
    db: Option<Db>,
    parks: Parks,
    blind: Option<Blind>,
    /// Series that were parked, as often as they were counted.
    pub(super) parked: usize,
    /// Ends of rules that were in files, as often.
    pub(super) linked: usize,
}

impl Twin {
    pub(super) fn new(parks: Parks, blind: Option<Blind>) -> Self {
        let mut twin = Self {
            disk: SimDisk::new(),
            clock: Arc::default(),
            db: None,
            parks,
            blind,
            parked: 0,
            linked: 0,
        };
        twin.open(WHOLE);
        twin
    }

    fn open(&mut self, series_file_bytes_min: u64) {
        let options = Options {
            background: false,
            segment_bytes: 64 * 1024,
            shards: SHARDS,
            strict: true,
            series_file_bytes_min,
            parks: self.parks == Parks::AtHand,
            blind: self.blind.clone(),
            ..Options::default()
        };
        let env = Env {
            clock: self.clock.clone(),
            ..self.disk.env(1)
        };
        let mut said = Vec::new();
        let checked = check(&env, Path::new(DIR), &mut |finding| {
            said.push(finding.what.clone());
        });
        let is_sound = checked.is_ok_and(|checked| checked.damage == 0 && !checked.is_refused);
        assert!(
            is_sound || self.disk.bytes(&Path::new(DIR).join("FORMAT")).is_err(),
            "{said:?}"
        );
        let db = Db::open(&env, Path::new(DIR), options, Defaults::default());
        let db = db.unwrap();
        let selects = |labels: &Labels, _: &[u8]| {
            let mut labels = labels.iter();
            labels.any(|label| label == (&b"site"[..], &b"north"[..]))
        };
        let watcher = Watcher {
            reader: READER,
            selectors: vec![Selector::new(Arc::new(selects))],
        };
        db.watch(vec![watcher]).unwrap();
        self.db = Some(db);
        self.count();
    }

    pub(super) fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    /// Parks each series that `wants` and may be parked.
    pub(super) fn park(&mut self, wants: &mut dyn FnMut() -> bool) {
        let core = &self.db().parts().core;
        for (number, shard) in core.shards.iter().enumerate() {
            let mut state = shard.lock();
            let places: Vec<usize> = state.slab.iter().map(|(place, _)| place).collect();
            for place in places {
                match (wants(), self.parks) {
                    (true, Parks::AtHand) => {
                        core.park(&mut state, core.shards.id_of(number, place));
                    }
                    (is_wanted, Parks::InFiles) => {
                        // awake: it was seen there.
                        let series = state.slab.get_mut(place).unwrap();
                        series.marks.take_active();
                        if !is_wanted {
                            series.marks.note_active();
                        }
                    }
                    _ => {}
                }
            }
        }
        if self.parks == Parks::InFiles {
            self.db().park_idle().unwrap();
        }
        // A manifest of either says which ids were given.
        core.publish(&mut |_| Ok(())).unwrap();
        self.count();
    }

    fn count(&mut self) {
        only_what_may_stay_parked(self.db());
        let shards = self.db().parts().core.shards.iter();
        let (mut parked, mut linked) = (0, 0);
        for shard in shards {
            let state = shard.lock();
            parked += state.parked.len();
            let is_end = |place: &usize| {
                state.parked.is_filed(*place) && state.parked.linked(*place) != Linked::default()
            };
            linked += state.parked.iter_from(0).filter(is_end).count();
        }
        self.parked += parked;
        self.linked += linked;
    }
}

/// A start takes the series of these files for parked and does not read them.
fn only_what_may_stay_parked(db: &Db) {
    for file in db.parts().core.store.parked.get().all() {
        for page in 0..file.pages() {
            for row in file.read_page(page).unwrap() {
                row.check_parked().unwrap();
            }
        }
    }
}

/// Both databases.
pub(super) struct Pair(pub(super) [Twin; 2]);

impl Pair {
    pub(super) fn new(parks: Parks, blind: Option<Blind>) -> Self {
        Self([Twin::new(Parks::Never, None), Twin::new(parks, blind)])
    }

    /// Does something to both, which say the same.
    pub(super) fn both<T: Debug>(&self, what: impl Fn(&Db) -> T) -> T {
        let [plain, parking] = &self.0;
        let said = what(plain.db());
        assert_eq!(format!("{:?}", what(parking.db())), format!("{said:?}"));
        said
    }

    pub(super) fn park_all(&mut self) {
        for twin in &mut self.0 {
            if twin.parks == Parks::InFiles {
                twin.db().park_all().unwrap();
            }
            twin.park(&mut || true);
        }
    }

    /// Closes both, and opens them again.
    pub(super) fn reopen(&mut self, series_file_bytes_min: u64) {
        for twin in &mut self.0 {
            twin.db.take().expect("open between steps").close().unwrap();
            twin.open(series_file_bytes_min);
        }
    }

    /// Kills both, and opens them again.
    pub(super) fn kill(&mut self, series_file_bytes_min: u64) {
        for twin in &mut self.0 {
            twin.disk = twin.disk.kill();
            drop(twin.db.take());
            twin.open(series_file_bytes_min);
        }
    }

    pub(super) fn compare(&self) {
        self.both(changes);
        let keys = self.both(keys);
        self.both(listed);
        for key in keys {
            self.both(|db| answers(db, &key));
        }
    }
}

pub(super) struct Rows(Vec<(i64, u64)>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        let bits = values.iter().map(|value| value.to_bits());
        self.0.extend(timestamps.iter().copied().zip(bits));
        ControlFlow::Continue(())
    }
}

pub(super) fn keys(db: &Db) -> Vec<Vec<u8>> {
    let (mut keys, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = db
            .scan(cursor, 3, &mut |key| keys.push(key.to_vec()))
            .unwrap();
        if cursor == 0 {
            break;
        }
    }
    keys.sort_unstable();
    keys
}

/// What changed in what the reader has used, since it was asked last.
fn changes(db: &Db) -> Vec<String> {
    let drained = db.drain(READER).unwrap();
    db.done(READER, drained.position).unwrap();
    let changes = drained.changes.iter();
    let mut changes: Vec<_> = changes.map(|change| format!("{change:?}")).collect();
    changes.sort_unstable();
    changes
}

/// What a database says of all its series.
pub(super) fn listed(db: &Db) -> (usize, Vec<String>) {
    let north = Matcher {
        name: b"site"[..].into(),
        test: Test::AnyOf(vec![b"north"[..].into()]),
    };
    let mut said = Vec::new();
    for matchers in [&[][..], &[north]] {
        let found = db.select(matchers).unwrap();
        said.push(format!("{found:?}"));
        let values = db
            .label_values(b"site", matchers, None, None, usize::MAX, None)
            .unwrap();
        said.push(format!("{:?}", values.iter().collect::<Vec<_>>()));
        let names = db
            .label_names(matchers, None, None, usize::MAX, None)
            .unwrap();
        said.push(format!("{:?}", names.iter().collect::<Vec<_>>()));
        let mut labels = vec![None; found.len()];
        let mut each = |at: usize, held: &[u8]| {
            labels[at] = Some(Labels::from_bytes(held).unwrap());
            ControlFlow::Continue(())
        };
        db.labels_of_all(&found, &mut each).unwrap();
        said.push(format!("{labels:?}"));
        said.push(format!("{:?}", db.group_by(found, b"site", None).unwrap()));
        // Those of which nothing is in the span may be there, too.
        let mut within = db.select_in(matchers, SPAN, None).unwrap();
        let views = db.views(&within, &RangeQuery::EVERYTHING, false);
        let mut views = views.iter();
        within.retain(|series| {
            let view = views.next().filter(|view| view.key == series.key);
            let mut rows = Rows(Vec::new());
            let read = view.map(|one| one.view.clone().run(&RangeQuery::EVERYTHING, &mut rows));
            read.is_none_or(|read| read.is_err())
                || rows.0.iter().any(|row| SPAN.0 <= row.0 && row.0 <= SPAN.1)
        });
        said.push(format!("{within:?}"));
    }
    let passed = match db.label_values_where(b"site", |value| value.contains(&b'o'), None, None) {
        Ok(Values::Some(mut values)) => {
            values.sort_unstable();
            format!("{values:?}")
        }
        all => format!("{all:?}"),
    };
    said.push(passed);
    let mut rules = Vec::new();
    db.scan_rules(0, usize::MAX, &mut |mut state| {
        // A source that woke does not know it.
        state.recomputed_ms = None;
        rules.push(format!("{state:?}"));
    })
    .unwrap();
    rules.sort_unstable();
    said.extend(rules);
    // Up to here nothing wakes.
    let found = db.select(&[]).unwrap();
    for view in db.views(&found, &RangeQuery::EVERYTHING, true) {
        let mut rows = Rows(Vec::new());
        let read = view.view.run(&RangeQuery::EVERYTHING, &mut rows);
        said.push(format!(
            "{:?} {:?} {read:?} {:?}",
            view.key, view.labels, rows.0
        ));
    }
    said.push(format!("{:?}", db.latest(found, Some(usize::MAX), None)));
    (db.len(), said)
}

/// All that a series shows.
pub(super) fn answers(db: &Db, key: &[u8]) -> Vec<String> {
    let mut rows = Rows(Vec::new());
    let read = db.range(key, &RangeQuery::EVERYTHING, &mut rows);
    let info = db.info(key).unwrap();
    let series = db.resolve(key).unwrap();
    let made_by = db
        .parts()
        .core
        .shards
        .lock_of(series.id)
        .series(series.id)
        .map(|series| series.marks.made_by());
    vec![
        format!("{} {read:?} {:?}", String::from_utf8_lossy(key), rows.0),
        format!("{:?} {:?}", db.last_sample(key), db.last_sample_latest(key)),
        format!(
            "{} {:?} {:?}",
            info.total_samples, info.first_timestamp, info.last_timestamp
        ),
        format!("{:?} {made_by:?} {:?}", info.options, db.expires_at(key)),
        format!("{:?} {:?}", db.rules_of(key), db.source_of(key)),
        format!(
            "{:?} {:?}",
            db.extent(&series).unwrap().map(|extent| extent.span),
            db.floor_of(&series).unwrap()
        ),
    ]
}
