//! The state of rules as it is reported: dirty, open and failed buckets.

use crate::db_rules::support::{DESTINATION, SOURCE, add, kept, spec, tie};
use crate::db_support::{DIR, append, last_wins, open, options, sample};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::{Db, ErrorKind, RuleState};
use latewood_model::{Aggregator, SeriesOptions};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

fn state(db: &Db) -> RuleState {
    let mut states = db.rule_states(SOURCE).unwrap();
    assert_eq!(states.len(), 1);
    assert_eq!(db.rule_states(DESTINATION).unwrap(), states);
    states.remove(0)
}

#[test]
fn a_rule_tells_what_it_has_to_do() {
    let clock = Arc::new(SimClock::default());
    let mut env = SimDisk::new().env(1);
    env.clock = clock.clone();
    let db = Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap();
    tie(&db);
    let new = state(&db);
    assert_eq!((&*new.source, &*new.destination), (SOURCE, DESTINATION));
    assert_eq!(new.spec, spec(Aggregator::Sum, 10, 0));
    assert_eq!((new.dirty_buckets, new.open), (0, None));
    assert_eq!((new.recomputed_ms, &new.failed[..]), (None, &[][..]));
    // Three closed buckets; two samples in one of them, one in the open one.
    add(&db, &[(5, 1.0), (15, 1.0), (25, 1.0), (35, 1.0)]);
    let filled = state(&db);
    assert_eq!((filled.dirty_buckets, filled.open), (3, Some((30, 39))));
    add(&db, &[(14, 1.0), (16, 1.0), (32, 1.0)]);
    assert_eq!(state(&db).dirty_buckets, 3);
    clock.advance_ms(7);
    assert_eq!(kept(&db), [(0, 1.0), (10, 3.0), (20, 1.0)]);
    let done = state(&db);
    assert_eq!(done.dirty_buckets, 0);
    assert_eq!(done.recomputed_ms, Some(1_700_000_000_007));
    clock.advance_ms(7);
    assert_eq!(kept(&db).len(), 3);
    assert_eq!(state(&db), done, "nothing was recomputed");
    assert_eq!(
        db.rule_states(b"no").unwrap_err().kind(),
        ErrorKind::NoSuchKey
    );
}

#[test]
fn all_rules_are_found_page_by_page() {
    let db = open(&SimDisk::new()).unwrap();
    let mut expected = BTreeSet::new();
    for at in 0..50 {
        let source = format!("s{at}");
        append(&db, &[sample(source.as_bytes(), 1, 1.0)]).unwrap();
        for rule in 0..at % 4 {
            let destination = format!("d{at}-{rule}");
            let key = destination.as_bytes();
            db.create(key, &SeriesOptions::default()).unwrap();
            let rule = spec(Aggregator::Max, 10 + rule, 0);
            db.create_rule(source.as_bytes(), key, rule).unwrap();
            expected.insert(destination);
        }
    }
    for count in [1, 2, 7, 1000] {
        let (mut found, mut cursor, mut calls) = (BTreeSet::new(), 0, 0);
        loop {
            let mut rules = 0;
            let scanned = db.scan_rules(cursor, count, &mut |rule| {
                rules += 1;
                let destination = String::from_utf8_lossy(&rule.destination).into_owned();
                assert!(found.insert(destination), "{rule:?} twice");
            });
            cursor = scanned.unwrap();
            calls += 1;
            assert!(rules < count + 3, "{rules} of {count}");
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(found, expected, "{count}");
        assert!(calls <= expected.len() / count + 2, "{calls} of {count}");
    }
}
