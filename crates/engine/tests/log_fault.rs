//! Failing writes, syncs, creates and renames: the first failure stops the log.

use crate::log_support::{DIR, Ledger, append, open};
use latewood_engine::ErrorKind;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::log::{Log, Position};
use std::sync::Barrier;
use std::{io, thread};

/// Appends, syncs and rolls until something fails; what failed.
fn until_failure(log: &Log, ledger: &mut Ledger) -> latewood_engine::Error {
    for n in 1..200 {
        ledger.appended.push(n);
        match append(log, n) {
            Ok(position) => ledger.positions.push(position),
            Err(error) => return error,
        }
        if n == 50 {
            ledger.trimmed = Position(48);
            log.trim(ledger.trimmed).unwrap();
        }
        if let Err(error) = log
            .background_tick()
            .and_then(|()| log.sync_to(log.written()))
        {
            return error;
        }
        ledger.durable = log.durable();
    }
    panic!("nothing failed");
}

#[test]
fn the_first_failure_stops_the_log_for_good() {
    for op in [
        Op::Write,
        Op::Sync,
        Op::Create,
        Op::Rename,
        Op::SyncDir,
        Op::Remove,
    ] {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
            let disk = SimDisk::new();
            let (log, ..) = open(&disk.env(1)).unwrap();
            let already = if op == Op::Rename || op == Op::Remove {
                0
            } else {
                2
            };
            disk.plan(Fault {
                op: Some(op),
                after: already,
                trouble: Trouble::Fail(kind),
            });
            let mut ledger = Ledger::default();
            let first = until_failure(&log, &mut ledger);
            assert_eq!(first.kind(), ErrorKind::Io, "{op:?}: {first}");
            let operations = disk.count_all();
            let durable = log.durable();
            for _ in 0..3 {
                let later = append(&log, 999).unwrap_err();
                assert_eq!(later.kind(), ErrorKind::Halted, "{op:?}");
                assert!(later.to_string().contains(&first.to_string()), "{later}");
                for refused in [log.background_tick(), log.trim(Position(1)), log.close()] {
                    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Halted);
                }
                if log.written() > durable {
                    let refused = log.sync_to(log.written()).unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::Halted);
                }
            }
            assert_eq!(
                disk.count_all(),
                operations,
                "a halted log leaves the disk alone"
            );
            assert_eq!(log.durable(), durable);
            assert!(log.stats().halted.is_some());
            for seed in 0..20 {
                let (_, seen, _) = open(&disk.crash(seed).env(seed)).unwrap();
                ledger.verdict(&seen, false).unwrap();
            }
        }
    }
}

#[test]
fn what_was_durable_before_a_failure_still_answers_so() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    let position = append(&log, 1).unwrap();
    log.sync_to(position).unwrap();
    disk.plan(Fault {
        op: Some(Op::Write),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::Other),
    });
    append(&log, 2).unwrap_err();
    log.sync_to(position).unwrap();
}

#[test]
fn a_failed_open_says_what_failed() {
    // Two directories are made before the first segment.
    for (op, after, named) in [
        (Op::CreateDir, 1, DIR),
        (Op::SyncDir, 1, DIR),
        (Op::SyncDir, 2, "segment"),
        (Op::Create, 0, "segment"),
        (Op::Write, 0, "segment"),
    ] {
        let disk = SimDisk::new();
        disk.plan(Fault {
            op: Some(op),
            after,
            trouble: Trouble::Fail(io::ErrorKind::StorageFull),
        });
        let error = open(&disk.env(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(named), "{error}");
        let (_, seen, _) = open(&disk.env(2)).unwrap();
        assert!(seen.is_empty());
    }
}

#[test]
fn everyone_who_waits_for_a_failed_sync_hears_of_it() {
    const THREADS: u64 = 8;
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    let syncs = disk.count(Op::Sync);
    disk.plan(Fault {
        op: Some(Op::Sync),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::Other),
    });
    let all_written = Barrier::new(THREADS as usize);
    let answers = thread::scope(|scope| {
        let waiters = [(); THREADS as usize].map(|()| {
            scope.spawn(|| {
                let position = append(&log, 5).unwrap();
                all_written.wait();
                log.sync_to(position).unwrap_err().kind()
            })
        });
        waiters.map(|waiter| waiter.join().unwrap())
    });
    let leaders = answers.iter().filter(|&&kind| kind == ErrorKind::Io);
    assert_eq!(leaders.count(), 1, "{answers:?}");
    let followers = answers.iter().filter(|&&kind| kind == ErrorKind::Halted);
    assert_eq!(followers.count() as u64, THREADS - 1, "{answers:?}");
    assert_eq!(log.durable(), Position(0));
    assert_eq!(disk.count(Op::Sync), syncs + 1, "nobody syncs again");
}
