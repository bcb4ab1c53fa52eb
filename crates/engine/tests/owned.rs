//! Series that one writer has for itself.

use crate::db_support::{append, last_wins, open, options, read, sample, timestamps};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{
    AppendTo, Create, Db, Dump, ErrorKind, ExpireIf, Refusal, Result, RuleSpec, Scratch,
};
use latewood_model::{Aggregator, Sample, SeriesOptions};
use std::path::Path;

const OWNER: &str = "rule r of group g";

fn refused<T>(done: Result<T>, what: &str) {
    let error = done.err().unwrap_or_else(|| panic!("{what} is done"));
    assert_eq!(error.kind(), ErrorKind::Invalid, "{what}");
    assert_eq!(
        error.to_string(),
        format!("series is written by {OWNER}"),
        "{what}"
    );
}

/// `owned` and `other` with one sample each.
fn world() -> Db {
    let db = open(&SimDisk::new()).unwrap();
    append(&db, &[sample(b"owned", 10, 1.0), sample(b"other", 10, 1.0)]).unwrap();
    db.own(b"owned", Some(OWNER));
    db
}

fn by_owner(db: &Db, key: &[u8], at: i64) {
    let mut scratch = Scratch::of_owner();
    db.append(&[sample(key, at, 1.0)], &mut scratch).unwrap();
    assert_eq!(scratch.outcomes(), [Ok(at)]);
}

#[test]
fn nobody_else_writes_to_an_owned_series() {
    let db = world();
    let batch = [sample(b"owned", 20, 1.0), sample(b"other", 20, 1.0)];
    assert_eq!(append(&db, &batch).unwrap(), [Err(Refusal::Owned), Ok(20)]);
    let series = db.resolve(b"owned").unwrap();
    let one = AppendTo {
        series: &series,
        timestamp: 30,
        value: 1.0,
        on_duplicate: None,
    };
    let mut scratch = Scratch::new();
    db.append_resolved(&[one], &mut scratch).unwrap();
    assert_eq!(scratch.outcomes(), [Err(Refusal::Owned)]);
    let added = db.increment(b"owned", 1.0, Some(40), Create::Defaults);
    assert_eq!(added.unwrap().0, Err(Refusal::Owned));
    assert_eq!(timestamps(&db, b"owned"), [10]);
    let mut scratch = Scratch::of_owner();
    db.append_resolved(&[one], &mut scratch).unwrap();
    assert_eq!(scratch.outcomes(), [Ok(30)]);
    by_owner(&db, b"owned", 50);
    db.replace_rows(b"owned", &[(10, 10)], &[Sample::new(60, 1.0)])
        .unwrap();
    assert_eq!(timestamps(&db, b"owned"), [30, 50, 60]);
    db.own(b"owned", None);
    let batch = [sample(b"owned", 70, 1.0)];
    assert_eq!(append(&db, &batch).unwrap(), [Ok(70)]);
}

#[test]
fn nobody_else_changes_or_replaces_an_owned_series() {
    let db = world();
    let options = SeriesOptions::default();
    refused(db.create(b"owned", &options), "create");
    refused(db.alter(b"owned", &options), "alter");
    refused(db.delete_range(b"owned", 0, 100), "a deletion");
    refused(db.remove(&[b"other", b"owned"]), "a removal");
    refused(db.rename(b"owned", b"new", true), "a renaming");
    refused(db.rename(b"other", b"owned", true), "a renaming onto it");
    refused(db.copy(b"other", b"owned", true), "a copy onto it");
    let bytes = db.dump(b"other").unwrap();
    let dump = Dump::parse(&bytes).unwrap();
    refused(db.restore(b"owned", dump.clone(), None, true), "a restore");
    refused(
        db.restore(b"owned", dump, Some(1), true),
        "one that expired",
    );
    refused(
        db.expire(b"owned", i64::MAX, ExpireIf::default()),
        "an expiry",
    );
    refused(db.persist(b"owned"), "no expiry");
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 10,
        align: 0,
    };
    refused(db.create_rule(b"other", b"owned", spec), "a rule to it");
    assert_eq!(read(&db, b"owned").unwrap(), [Sample::new(10, 1.0)]);
    assert!(db.contains(b"other"), "of two, none is removed");
    // Reading it is everybody's.
    db.create_rule(b"owned", b"other", spec).unwrap();
    assert!(db.copy(b"owned", b"copy", false).unwrap().0);
    db.alter(b"copy", &options).unwrap();
}

#[test]
fn a_series_that_is_made_anew_is_still_owned() {
    let disk = SimDisk::new();
    let db = Db::open(&disk.env(1), Path::new("/db"), options(1), last_wins()).unwrap();
    append(&db, &[sample(b"other", 10, 1.0)]).unwrap();
    db.own(b"owned", Some(OWNER));
    let batch = [sample(b"owned", 10, 1.0)];
    assert_eq!(append(&db, &batch).unwrap(), [Err(Refusal::Owned)]);
    assert!(!db.contains(b"owned"));
    by_owner(&db, b"owned", 10);
    assert_eq!(append(&db, &batch).unwrap(), [Err(Refusal::Owned)]);
    db.flush_all().unwrap();
    assert_eq!(append(&db, &batch).unwrap(), [Err(Refusal::Owned)]);
    by_owner(&db, b"owned", 20);
    assert_eq!(db.owner(b"owned").as_deref(), Some(OWNER));
    db.own(b"owned", None);
    assert_eq!(append(&db, &batch).unwrap(), [Ok(10)]);
    db.remove(&[b"owned"]).unwrap();
    assert_eq!(append(&db, &batch).unwrap(), [Ok(10)]);
}
