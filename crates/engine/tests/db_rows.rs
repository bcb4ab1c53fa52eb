//! Rows of parked series that a thread leaves to others: nothing is read, and nothing half done.

use crate::db_support::{append, open, sample, timestamps};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::io::waiting::{leave_rows, no_wait};
use latewood_engine::{Append, Create, Db, ErrorKind, Result, Scratch};
use latewood_model::SeriesId;

/// A database with the series `a`, `b` and `c`, which are parked, and `awake`.
fn parked() -> Result<Db> {
    let db = open(&SimDisk::new())?;
    append(&db, &[b"a", b"b", b"c"].map(|key| sample(key, 1, 1.0)))?;
    db.flush()?;
    db.park_idle()?;
    db.park_idle()?;
    append(&db, &[sample(b"awake", 1, 1.0)])?;
    assert_eq!(db.parked_len(), 3);
    Ok(db)
}

fn away(db: &Db, keys: &[&[u8]]) -> Vec<SeriesId> {
    db.rows_away(keys.iter().copied())
}

#[test]
fn a_batch_that_needs_rows_does_nothing_until_they_are_there() -> Result<()> {
    let db = parked()?;
    let mut scratch = Scratch::new();
    scratch.leave_rows(true);
    let batch = [&b"new"[..], b"awake", b"b", b"c"].map(|key| sample(key, 2, 2.0));
    let refused = db.append(&batch, &mut scratch).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Away);
    let missing = scratch.away();
    assert_eq!(missing, away(&db, &[b"b", b"c"]));
    assert_eq!((missing.len(), db.len()), (2, 4), "no series came");
    assert_eq!(timestamps(&db, b"awake"), [1]);
    db.wake_parked(&missing)?;
    assert_eq!((db.parked_len(), away(&db, &[b"b", b"c"])), (1, Vec::new()));
    db.append(&batch, &mut scratch)?;
    assert_eq!(scratch.outcomes(), [Ok(2); 4]);
    assert_eq!((scratch.away(), db.len()), (Vec::new(), 5));
    assert_eq!(db.rows_waited_for(), 0);
    // Who does not leave them reads them.
    let held = no_wait();
    scratch.leave_rows(false);
    db.append(&[sample(b"a", 2, 2.0)], &mut scratch)?;
    drop(held);
    assert_eq!((db.parked_len(), db.rows_waited_for()), (0, 1));
    Ok(())
}

#[test]
fn only_parked_series_whose_rows_are_not_at_hand_are_away() -> Result<()> {
    let db = parked()?;
    assert_eq!(away(&db, &[b"awake", b"other", b""]), []);
    assert_eq!(away(&db, &[b"a", b"other", b"c"]).len(), 2);
    // This brings all rows, and wakes none.
    assert_eq!(db.select(&[])?.len(), 4);
    assert_eq!((db.parked_len(), away(&db, &[b"a", b"c"])), (3, Vec::new()));
    // Ids of series that are awake or gone are passed over.
    let ids: Vec<SeriesId> = db.select(&[])?.iter().map(|series| series.id).collect();
    db.remove(&[b"a"])?;
    db.wake_parked(&ids)?;
    assert_eq!((db.parked_len(), db.len()), (0, 3));
    Ok(())
}

#[test]
fn a_read_that_leaves_rows_fails_and_can_be_done_once_more() -> Result<()> {
    let db = parked()?;
    let left = leave_rows();
    assert!(db.select(&[]).unwrap_err().is_away());
    assert!(db.scan(0, 10, &mut |_| {}).unwrap_err().is_away());
    assert_eq!(db.info(b"awake")?.total_samples, 1);
    drop(left);
    assert_eq!(db.select(&[])?.len(), 4);
    let _left = leave_rows();
    let mut visited = 0;
    db.scan(0, 10, &mut |_| visited += 1)?;
    assert_eq!(visited, 4, "the rows are at hand");
    // What a file says of labels is not.
    assert!(db.select(&[]).unwrap_err().is_away());
    let away = db.label_values_where(b"site", |_| true, None, None);
    assert!(away.unwrap_err().is_away());
    let created = Append {
        create: Create::Defaults,
        ..sample(b"more", 1, 1.0)
    };
    append(&db, &[created])?;
    Ok(())
}
