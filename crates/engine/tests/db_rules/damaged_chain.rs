//! A chain of rules over a source with a damaged chunk.

use crate::db_rules::damage::{WHOLE, between, dirty, says};
use crate::db_rules::support::{DESTINATION, SOURCE, add, closed_of, query, spec};
use crate::db_support::{append, sample};
use latewood_engine::{Error, Refusal};
use latewood_model::{Aggregator, SeriesOptions};

/// Rows that are made of failed rows fail too, and no others, until the damage is gone.
#[test]
fn rows_below_a_failed_row_are_named_until_it_is_computed() {
    for aggregator in [Aggregator::Sum, Aggregator::Twa] {
        let (_, db) = dirty();
        let below = [&b"below"[..], b"deepest"];
        let above = [DESTINATION, below[0]];
        for (at, key) in below.iter().enumerate() {
            db.create(key, &SeriesOptions::default()).unwrap();
            let rule = spec(aggregator, [100, 1_000][at], 0);
            db.create_rule(above[at], key, rule).unwrap();
        }
        add(&db, &[(WHOLE, 1.0), (3_005, 2.0)]);
        add(
            &db,
            &[(4_005, 2.0), (5_015, 4.0), (6_025, 8.0), (9_025, 8.0)],
        );
        let read = |key: &[u8], from, to| query(&db, key, &between(from, to));
        for key in below {
            is_damaged(read(key, 0, 0).unwrap_err());
            is_damaged(read(key, 0, i64::MAX).unwrap_err());
            let outcome = append(&db, &[sample(key, 0, 1.0)]).unwrap();
            assert_eq!(outcome, [Err(Refusal::Damaged)]);
        }
        if aggregator == Aggregator::Sum {
            assert_eq!(read(below[0], 100, i64::MAX).unwrap().len(), 4);
            assert_eq!(read(below[1], 1_000, i64::MAX).unwrap().len(), 2);
        }
        assert_eq!(db.stats().rules_failed, 1, "the first level alone");
        let error = db.delete_range(SOURCE, 0, 2_999).unwrap_err();
        assert!(error.to_string().contains("are deleted"), "{error}");
        for (key, from) in [(below[1], above[1]), (below[0], above[0])] {
            let width = if key == below[0] { 100 } else { 1_000 };
            let rule = spec(aggregator, width, 0);
            let rows = read(key, 0, i64::MAX).unwrap();
            assert_eq!(rows, closed_of(&db, from, rule), "{aggregator:?}");
        }
    }
}

fn is_damaged(error: Error) {
    says(error, "damage keeps the rows");
}
