//! The power goes at each operation of a course of evaluations, corrections, flushes and a FLUSHALL,
//! and once more while the start after it runs: whatever was durable of a reader is known.

use super::view::{View, uncovered, view};
use super::{READER, has, labelled, of_m, watch};
use crate::db_support::{append, open, sample};
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_engine::{Append, Change, Create, Db, Result};
use latewood_model::Labels;

const STEP: i64 = 777;

/// What a reader knows.
#[derive(Clone, Default)]
struct Known {
    at: Option<i64>,
    seen: View,
    has_steps: bool,
}

/// A reader whose rows are durable when a step of the course is, and what it knows if the step that
/// failed became durable all the same.
#[derive(Default)]
struct Reader {
    known: Known,
    next: Option<Known>,
}

fn selects(labels: &Labels, _: &[u8]) -> bool {
    has(labels, b"metric", b"m")
}

fn put(db: &Db, key: &[u8], at: i64, value: f64) -> Result<()> {
    let options = labelled(&[(b"metric", b"m")]);
    let create = Create::With(&options);
    append(
        db,
        &[Append {
            create,
            ..sample(key, at, value)
        }],
    )
    .map(drop)
}

impl Reader {
    fn becomes(&mut self, db: &Db, known: Known) -> Result<()> {
        self.next = Some(known);
        db.sync()?;
        self.known = self.next.take().unwrap_or_default();
        Ok(())
    }

    fn evaluate(&mut self, db: &Db, at: i64) -> Result<()> {
        let mut known = self.known.clone();
        db.begin_evaluation(READER, at)?;
        known
            .seen
            .extend_behind(known.at.unwrap_or(i64::MIN), &view(db, at, selects));
        known.at = Some(at);
        self.becomes(db, known)
    }

    fn add_steps(&mut self, db: &Db) -> Result<()> {
        db.add_pending(READER, STEP, STEP)?;
        let has_steps = true;
        self.becomes(
            db,
            Known {
                has_steps,
                ..self.known.clone()
            },
        )
    }

    fn correct(&mut self, db: &Db) -> Result<()> {
        let drained = db.drain(READER)?;
        let seen = view(db, self.known.at.unwrap_or(i64::MIN), selects);
        let known = Known {
            seen,
            has_steps: false,
            at: self.known.at,
        };
        // Also what fails may be durable.
        self.next = Some(known.clone());
        db.done(READER, drained.position)?;
        self.becomes(db, known)
    }

    /// All of it, until the power goes.
    fn course(&mut self, db: &Db) -> Result<()> {
        for at in [10, 20, 90] {
            put(db, b"a", at, 1.0)?;
            put(db, b"b", at, 1.0)?;
        }
        self.evaluate(db, 100)?;
        put(db, b"a", 50, 1.0)?;
        db.flush()?;
        put(db, b"b", 20, 2.0)?;
        db.delete_range(b"a", 10, 15)?;
        self.add_steps(db)?;
        self.evaluate(db, 200)?;
        db.flush()?;
        db.rename(b"b", b"c", false)?;
        self.correct(db)?;
        put(db, b"c", 150, 2.0)?;
        self.add_steps(db)?;
        db.sync()?;
        db.flush()?;
        self.evaluate(db, 300)?;
        db.remove(&[b"a"])?;
        db.flush()?;
        put(db, b"d", 5, 1.0)?;
        db.sync()?;
        db.flush_all()?;
        put(db, b"e", 250, 1.0)?;
        db.sync()?;
        db.flush()?;
        self.correct(db)?;
        put(db, b"e", 260, 1.0)?;
        db.sync().map(drop)
    }
}

/// The first thing that a reader does not hear of.
fn lost(db: &Db, known: &Known) -> Option<String> {
    let at = known.at?;
    let readers = db.readers();
    let state = readers.iter().find(|state| state.reader == READER)?;
    if state.horizon < at || state.since != 100 {
        return Some(format!("used {at} and knows {state:?}"));
    }
    let changes = db.drain(READER).unwrap().changes;
    let steps = |change: &Change| change.selector == Change::STEPS && change.from == STEP;
    if known.has_steps && !changes.iter().any(steps) {
        return Some("steps".to_owned());
    }
    let changed = known.seen.changed(&view(db, at, selects));
    let lost = uncovered(&changed, &changes)?;
    Some(format!("{lost:?} of {changes:?}"))
}

fn cut(after: u64) -> Fault {
    Fault {
        op: None,
        after,
        trouble: Trouble::PowerCut,
    }
}

/// Whether the course came to its end before operation `after`.
fn run(after: u64, again: u64) -> bool {
    let (disk, mut reader) = (SimDisk::new(), Reader::default());
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    db.sync().unwrap();
    disk.plan(cut(after));
    let is_over = reader.course(&db).is_ok();
    drop(db);
    // Nobody has said yet who reads.
    let disk = disk.crash(after);
    disk.plan(cut(again));
    drop(open(&disk));
    let disk = disk.crash(after + 1);
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    let lost = lost(&db, &reader.known);
    let in_doubt = reader.next.as_ref().map(|next| self::lost(&db, next));
    if let Some(lost) = lost
        && in_doubt != Some(None)
    {
        panic!("a power cut after operation {after}, then {again}: {lost} is lost");
    }
    is_over
}

#[test]
fn what_is_known_of_a_reader_outlives_two_power_cuts() {
    for again in [0, 3, 8, 15, 25, 40, 1_000] {
        let ended = (0..2_000).find(|&after| run(after, again));
        assert!(ended.is_some_and(|after| after > 50), "{ended:?}");
    }
}
