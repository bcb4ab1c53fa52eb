//! Panics: none passes unnoticed, and none leaves writes going on over what it may have
//! spoilt.

use crate::db_support::{DIR, append, last_wins, open, options, read, sample};
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Db, Durability, NoticeHook, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn panic_at(disk: &SimDisk, op: Op) {
    disk.plan(Fault {
        op: Some(op),
        after: 0,
        trouble: Trouble::Panic,
    });
}

/// What the next write is refused with.
fn refusal(db: &Db) -> Option<String> {
    let refused = append(db, &[sample(b"other", 1, 1.0)]).err();
    refused.map(|error| error.to_string())
}

#[test]
fn a_background_thread_that_panics_stops_writes_and_is_told() {
    for (op, name) in [(Op::Sync, "latewood-sync"), (Op::SyncDir, "latewood-flush")] {
        let (disk, said) = (SimDisk::new(), Arc::new(Mutex::new(Vec::new())));
        let hears = Arc::clone(&said);
        let options = Options {
            background: true,
            durability: Durability::Interval,
            sync_interval_ms: 10,
            on_notice: Some(NoticeHook::new(move |sentence| {
                hears.lock().unwrap().push(sentence.to_owned());
            })),
            ..options(2)
        };
        let db = Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap();
        append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
        db.sync().unwrap();
        panic_at(&disk, op);
        append(&db, &[sample(b"a", 2, 1.0)]).unwrap();
        if op == Op::SyncDir {
            db.flush_soon();
        }
        let began = Instant::now();
        while db.stats().halted.is_none() {
            assert!(began.elapsed() < PATIENCE, "{name} died unseen");
            std::thread::sleep(Duration::from_millis(1));
        }
        let (what, why) = match op {
            Op::Sync => ("the log failed", "a sync of the log panicked".to_owned()),
            _ => ("a thread panicked", format!("the thread {name} panicked")),
        };
        let expected = format!("writes are stopped since {what}: {why}");
        assert_eq!(refusal(&db), Some(expected));
        assert_eq!(db.stats().halted.unwrap(), why);
        // Nobody waits for a sync that will not be; what is written is synced otherwise.
        assert_eq!(db.sync().is_ok(), op != Op::Sync);
        assert!(
            said.lock()
                .unwrap()
                .iter()
                .any(|sentence| sentence.contains(&why))
        );
        assert_eq!(read(&db, b"a").unwrap().len(), 2);
    }
}

#[test]
fn a_panic_that_may_have_half_changed_a_series_stops_writes() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
    db.sync().unwrap();
    panic_at(&disk, Op::Write);
    let panicked = catch_unwind(AssertUnwindSafe(|| append(&db, &[sample(b"a", 2, 2.0)])));
    assert!(panicked.is_err());
    let refused = refusal(&db).unwrap();
    assert!(
        refused.contains("a thread panicked while it changed series"),
        "{refused}"
    );
    assert!(db.flush().is_err());
    read(&db, b"a").unwrap();
    drop(db);
    let db = open(&disk.crash(1)).unwrap();
    assert_eq!(read(&db, b"a").unwrap().len(), 1);
    assert_eq!(refusal(&db), None);
}
