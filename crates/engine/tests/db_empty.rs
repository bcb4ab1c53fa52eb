//! A database without a directory behaves as an empty one and keeps nothing.

use latewood_engine::{Db, Defaults};

#[test]
fn an_empty_database_answers_and_is_closed() {
    let db = Db::empty(Defaults::default()).unwrap();
    assert!(db.is_empty() && !db.contains(b"key"));
    assert_eq!((db.stats().series, db.memory_limit()), (0, 0));
    assert!(db.last_sample(b"key").is_err());
    assert_eq!(db.recovery().samples, 0);
    db.close().unwrap();
}
