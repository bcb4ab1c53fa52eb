//! NaN in a source: where it leaves no row, and where a line passes over it.

use crate::db_rules::support::{
    DESTINATION, SOURCE, add, closed, kept, last, latest, spec, tie_by,
};
use crate::db_support::{append, open, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, RuleSpec};
use latewood_model::{Aggregator, SeriesOptions};

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
fn what_counts_nan_has_rows_for_nan_alone() {
    let db = open(&SimDisk::new()).unwrap();
    let counts = spec(Aggregator::CountNan, 10, 0);
    tie_by(&db, counts);
    add(&db, &[(1, 5.0), (11, f64::NAN), (12, f64::NAN), (21, 7.0)]);
    assert_eq!(kept(&db), [(10, 2.0)]);
    assert_eq!(closed(&db, counts), kept(&db));
}

/// Adds the samples one by one and holds what the rule of `twa` keeps, after
/// each, against what a query gives; the rows at the end.
fn follow(db: &Db, samples: &[(i64, f64)]) -> Vec<(i64, f64)> {
    for sample in samples {
        add(db, &[*sample]);
        assert_eq!(kept(db), closed(db, TWA), "after {sample:?}");
    }
    kept(db)
}

const TWA: RuleSpec = RuleSpec {
    aggregator: Aggregator::Twa,
    bucket_ms: 10,
    align: 0,
};
const NAN: f64 = f64::NAN;

#[test]
fn a_line_leads_over_nan_to_the_next_number() {
    let db = open(&SimDisk::new()).unwrap();
    tie_by(&db, TWA);
    let samples = [(1, 10.0), (11, NAN), (21, NAN), (31, 40.0), (41, NAN)];
    let rows = follow(&db, &samples);
    assert_eq!((rows[0], rows.len()), ((0, 14.5), 2));
    // Late, it takes the line over.
    follow(&db, &[(21, 100.0), (12, NAN)]);
    db.delete_range(SOURCE, 21, 21).unwrap();
    assert_eq!(kept(&db), rows);
    // It may come in the bucket that NaN opened.
    follow(&db, &[(45, 3.0), (51, NAN), (53, NAN), (57, 9.0)]);
    assert_eq!(latest(&db, DESTINATION).last().unwrap().0, 50);
    db.delete_range(SOURCE, 57, 57).unwrap();
    follow(&db, &[(58, 1.0), (93, NAN), (94, 2.0)]);
}

#[test]
fn a_line_leads_over_more_nan_than_is_looked_through() {
    for flushes in [false, true] {
        let db = open(&SimDisk::new()).unwrap();
        tie_by(&db, TWA);
        let small = SeriesOptions {
            chunk_size_bytes: 48,
            ..SeriesOptions::default()
        };
        db.alter(SOURCE, &small).unwrap();
        add(&db, &[(1, 10.0), (7, 13.0)]);
        let nans: Vec<_> = (11..30_000).map(|at| sample(SOURCE, at, NAN)).collect();
        append(&db, &nans).unwrap();
        if flushes {
            db.flush().unwrap();
        }
        assert_eq!(kept(&db), closed(&db, TWA));
        follow(&db, &[(30_001, 5.0), (30_011, 6.0), (15_005, 4.0)]);
        db.delete_range(SOURCE, 15_005, 15_005).unwrap();
        follow(&db, &[(30_021, NAN), (8, 1.0)]);
        assert_eq!(latest(&db, DESTINATION), kept(&db));
    }
}
