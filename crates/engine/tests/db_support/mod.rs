//! Helpers of the database's tests that write and read.

use latewood_engine::io::sim::SimDisk;
use latewood_engine::{
    Append, Create, Db, Defaults, Options, Outcome, RangeQuery, Result, Scratch, Sink,
};
use latewood_model::{DuplicatePolicy, Sample};
use std::ops::ControlFlow;
use std::path::Path;

/// Where the tests' databases lie on the simulated disk.
pub(crate) const DIR: &str = "/db";

/// Small segments and nothing behind the test's back.
pub(crate) fn options(shards: usize) -> Options {
    Options {
        background: false,
        segment_bytes: 64 * 1024,
        shards,
        backfill_samples: 64,
        ..Options::default()
    }
}

pub(crate) fn last_wins() -> Defaults {
    Defaults {
        duplicate_policy: DuplicatePolicy::Last,
        ..Defaults::default()
    }
}

/// Opens a database of two shards whose default policy is LAST.
pub(crate) fn open(disk: &SimDisk) -> Result<Db> {
    Db::open(&disk.env(1), Path::new(DIR), options(2), last_wins())
}

/// A sample that creates its series.
pub(crate) fn sample(key: &[u8], timestamp: i64, value: f64) -> Append<'_> {
    Append {
        key,
        timestamp,
        value,
        on_duplicate: None,
        create: Create::Defaults,
    }
}

/// The outcomes of a batch.
pub(crate) fn append(db: &Db, batch: &[Append<'_>]) -> Result<Vec<Outcome>> {
    let mut scratch = Scratch::new();
    db.append(batch, &mut scratch)?;
    Ok(scratch.outcomes().to_vec())
}

struct Rows(Vec<Sample>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _width: usize) -> ControlFlow<()> {
        let pairs = timestamps.iter().zip(values);
        self.0.extend(pairs.map(|(&t, &v)| Sample::new(t, v)));
        ControlFlow::Continue(())
    }
}

/// All samples of a series.
pub(crate) fn read(db: &Db, key: &[u8]) -> Result<Vec<Sample>> {
    let mut rows = Rows(Vec::new());
    db.range(key, &RangeQuery::EVERYTHING, &mut rows)?;
    Ok(rows.0)
}

/// All timestamps of a series.
pub(crate) fn timestamps(db: &Db, key: &[u8]) -> Vec<i64> {
    let samples = read(db, key).unwrap();
    samples.iter().map(|sample| sample.timestamp).collect()
}
