//! A story of writes, deletions and flushes, and what is true after each step.

use crate::db_support::{DIR, options, read};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Db, Defaults, Options, Result, Scratch};
use latewood_model::DuplicatePolicy;
use std::collections::BTreeMap;
use std::path::Path;

const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

/// Values add up, so a sample that comes twice is seen.
type Content = BTreeMap<&'static [u8], BTreeMap<i64, f64>>;

/// How far a story got.
#[derive(Default)]
pub(crate) struct Told {
    /// What is there after each step that was begun, the first being none.
    pub(crate) contents: Vec<Content>,
    /// The newest step that is on disk for sure.
    pub(crate) synced: usize,
}

pub(crate) fn open_adding(disk: &SimDisk) -> Result<Db> {
    let defaults = Defaults {
        duplicate_policy: DuplicatePolicy::Sum,
        ..Defaults::default()
    };
    let options = Options {
        // So few series make no file that is long enough.
        series_file_bytes_min: 0,
        // One shard: a step is one group of the log, there whole or not at all.
        ..options(1)
    };
    Db::open(&disk.env(1), Path::new(DIR), options, defaults)
}

enum Step {
    /// Samples of all series, from a time on.
    Ahead(i64),
    /// Some again, all over the past.
    Late(i64),
    /// Samples of one series, which alone changes.
    One(&'static [u8], i64),
    Delete(i64, i64),
    Remove(&'static [u8]),
    Flush,
    /// All series that may leave memory do.
    Park,
}

fn steps() -> Vec<Step> {
    use Step::{Ahead, Delete, Flush, Late, One, Park, Remove};
    vec![
        Ahead(0),
        Flush,
        Park,
        Late(3),
        Ahead(100),
        Flush,
        Delete(20, 130),
        Late(5),
        Flush,
        Park,
        Remove(b"c"),
        Ahead(200),
        Late(7),
        Delete(190, 400),
        Flush,
        One(b"b", 260),
        Park,
        Flush,
        Remove(b"d"),
        Park,
        Flush,
        Late(2),
        Ahead(300),
    ]
}

/// Tells the story. A flush that fails is passed over if `goes_on`.
pub(crate) fn tell(db: &Db, told: &mut Told, goes_on: bool) -> Result<()> {
    told.contents = vec![Content::new()];
    for step in steps() {
        let mut content = told.contents.last().cloned().unwrap_or_default();
        let samples = apply(&step, &mut content);
        told.contents.push(content);
        match step {
            Step::Ahead(_) | Step::Late(_) | Step::One(..) => {
                let batch: Vec<_> = samples.iter().map(append_of).collect();
                let mut scratch = Scratch::new();
                db.append(&batch, &mut scratch)?;
                assert!(scratch.outcomes().iter().all(std::result::Result::is_ok));
            }
            Step::Delete(from, to) => {
                db.delete_range(b"a", from, to)?;
            }
            Step::Remove(key) => {
                db.remove(&[key])?;
            }
            Step::Flush => match db.flush() {
                Err(error) if !goes_on => return Err(error),
                _ => {}
            },
            // The first look sees what came before it.
            Step::Park => match db.park_idle().and_then(|_| db.park_idle()) {
                Err(error) if !goes_on => return Err(error),
                _ => {}
            },
        }
        db.sync()?;
        told.synced = told.contents.len() - 1;
        db.maintain()?;
    }
    Ok(())
}

fn append_of<'a>(sample: &(&'a [u8], i64, f64)) -> Append<'a> {
    Append {
        key: sample.0,
        timestamp: sample.1,
        value: sample.2,
        on_duplicate: None,
        create: Create::Defaults,
    }
}

/// Brings the content to where it is after a step; the samples of it.
fn apply(step: &Step, content: &mut Content) -> Vec<(&'static [u8], i64, f64)> {
    let mut samples = Vec::new();
    match *step {
        Step::Ahead(from) => {
            let times = (from..from + 100).flat_map(|t| KEYS.map(|key| (key, t, 1.0)));
            samples.extend(times);
        }
        Step::One(key, from) => samples.extend((from..from + 60).map(|t| (key, t, 1.0))),
        Step::Late(every) => {
            let times = (0..90).filter(|t| t % every == 0);
            samples.extend(times.flat_map(|t| KEYS.map(|key| (key, t, 1.0))));
        }
        Step::Delete(from, to) => {
            if let Some(series) = content.get_mut(KEYS[0]) {
                series.retain(|at, _| !(from..=to).contains(at));
            }
        }
        Step::Remove(key) => {
            content.remove(key);
        }
        Step::Flush | Step::Park => {}
    }
    for &(key, at, value) in &samples {
        *content.entry(key).or_default().entry(at).or_default() += value;
    }
    samples
}

/// What a database holds.
pub(crate) fn content(db: &Db) -> Result<Content> {
    let mut content = Content::new();
    for key in KEYS {
        if db.contains(key) {
            let samples = read(db, key)?;
            let samples = samples
                .iter()
                .map(|sample| (sample.timestamp, sample.value));
            content.insert(key, samples.collect());
        }
    }
    Ok(content)
}
