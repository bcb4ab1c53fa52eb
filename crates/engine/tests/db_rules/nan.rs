//! NaN in a source: where it leaves no row, and where a line passes over it.

use crate::db_support::open;
use crate::support::{DESTINATION, SOURCE, add, closed, kept, last, latest, spec, tie_by};
use latewood_engine::io::sim::SimDisk;
use latewood_model::Aggregator;

#[test]
fn a_bucket_that_becomes_one_of_nan_alone_leaves_no_row() {
    let db = open(&SimDisk::new()).unwrap();
    tie_by(&db, spec(Aggregator::First, 10, 0));
    add(&db, &[(5, 1.0), (7, f64::NAN), (15, 2.0)]);
    assert_eq!(kept(&db), [(0, 1.0)]);
    db.delete_range(SOURCE, 5, 5).unwrap();
    assert_eq!(kept(&db), []);
}

#[test]
fn a_bucket_of_nan_alone_is_no_row_whenever_it_is_looked_at() {
    for looks in [false, true] {
        for aggregator in [Aggregator::Last, Aggregator::Sum, Aggregator::Avg] {
            let db = open(&SimDisk::new()).unwrap();
            tie_by(&db, spec(aggregator, 10, 0));
            for sample in [(1, 5.0), (11, f64::NAN), (21, 7.0), (31, f64::NAN)] {
                add(&db, &[sample]);
                if looks {
                    kept(&db);
                }
            }
            let rows = [(0, 5.0), (20, 7.0)];
            assert_eq!(kept(&db), rows, "{aggregator}");
            assert_eq!(latest(&db, DESTINATION), rows, "the open one has no number");
            assert_eq!(last(&db, DESTINATION), Some((20, 7.0)));
        }
    }
}

#[test]
fn what_counts_nan_has_a_row_for_it() {
    let db = open(&SimDisk::new()).unwrap();
    let counts = spec(Aggregator::CountNan, 10, 0);
    tie_by(&db, counts);
    add(&db, &[(1, 5.0), (11, f64::NAN), (12, f64::NAN), (21, 7.0)]);
    assert_eq!(kept(&db), [(0, 0.0), (10, 2.0)]);
    assert_eq!(closed(&db, counts), kept(&db));
}
