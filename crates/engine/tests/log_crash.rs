//! Power cuts on the simulated disk, at every disk operation of the log.
//!
//! One workload covers all functions of a log: it rolls, syncs, trims, recycles, is
//! killed, closed and reopened. After a power cut at any operation, with any
//! outcome that the disk allows, the next open must return everything synced, in
//! order, and nothing after a gap. The workload without one of its syncs must fail:
//! every sync is needed.

use crate::log_support::{Ledger, append, open};
use latewood_engine::Result;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::log::Log;

/// Fates tried for every moment of a power cut.
const SEEDS: u64 = 6;

fn push(log: &Log, ledger: &mut Ledger) -> Result<()> {
    ledger.appended.push(ledger.appended.len() as u64 + 1);
    let position = append(log, ledger.appended.len() as u64)?;
    ledger.positions.push(position);
    Ok(())
}

fn sync(log: &Log, ledger: &mut Ledger) -> Result<()> {
    log.sync_to(log.written())?;
    ledger.durable = log.written();
    Ok(())
}

/// Four lives of a log on one disk; says what any replay got wrong.
fn workload(disk: &SimDisk, ledger: &mut Ledger) -> Result<std::result::Result<(), String>> {
    for life in 0..4 {
        let (log, seen, _) = open(&disk.env(life))?;
        if let Err(wrong) = ledger.verdict(&seen, true) {
            return Ok(Err(wrong));
        }
        ledger.closed = false;
        // Opening promises what it found.
        ledger.durable = log.durable();
        for step in 0..14 {
            push(&log, ledger)?;
            match step % 5 {
                3 => log.background_tick()?,
                2 => sync(&log, ledger)?,
                _ => {}
            }
            if step == 9 && life > 0 {
                ledger.trimmed = ledger.positions[ledger.positions.len() - 3];
                log.trim(ledger.trimmed)?;
            }
        }
        log.background_tick()?;
        // Odd lives end in order, even ones are killed with groups unsynced.
        if life % 2 == 1 {
            log.close()?;
            ledger.durable = log.durable();
            ledger.closed = true;
        }
    }
    Ok(Ok(()))
}

/// Opens what a power cut left, twice: what the first open found is a promise
/// too, and so is what it then appends and syncs.
fn verdict_after(disk: &SimDisk, ledger: &Ledger, seed: u64) -> std::result::Result<(), String> {
    let mut ledger = ledger.clone();
    let disk = disk.crash(seed);
    let (log, seen, report) = open(&disk.env(seed)).map_err(|error| error.to_string())?;
    ledger.verdict(&seen, false)?;
    if ledger.closed && !report.clean {
        return Err("the closing header is missing".into());
    }
    // Numbers of lost groups are given out again: go on from what is there.
    let kept = ledger
        .positions
        .iter()
        .take_while(|&&at| at <= log.written());
    let mut kept = kept.count();
    if seen.last() == ledger.appended.last() && ledger.appended.len() > ledger.positions.len() {
        ledger.positions.push(log.written());
        kept += 1;
    }
    ledger.positions.truncate(kept);
    ledger.appended.truncate(kept);
    ledger.durable = log.durable();
    let more = |error: latewood_engine::Error| error.to_string();
    for n in 0..3 {
        // New groups have numbers no lost one had: a ghost would show.
        ledger.appended.push(1000 + n);
        let position = append(&log, 1000 + n).map_err(more)?;
        ledger.positions.push(position);
    }
    sync(&log, &mut ledger).map_err(more)?;
    let disk = disk.crash(seed + 1);
    let (_, seen, _) = open(&disk.env(seed + 2)).map_err(more)?;
    ledger.verdict(&seen, false)
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_promised() {
    let whole = SimDisk::new();
    let mut ledger = Ledger::default();
    assert_eq!(workload(&whole, &mut ledger).unwrap(), Ok(()));
    let operations = whole.count_all();
    for op in [
        Op::Write,
        Op::Sync,
        Op::Create,
        Op::Rename,
        Op::SyncDir,
        Op::Truncate,
    ] {
        assert!(whole.count(op) > 1, "the workload never does {op:?}");
    }
    for after in 0..operations {
        let disk = SimDisk::new();
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        let mut ledger = Ledger::default();
        assert!(workload(&disk, &mut ledger).is_err());
        for seed in 0..SEEDS {
            let seed = after * 1000 + seed;
            if let Err(wrong) = verdict_after(&disk, &ledger, seed) {
                panic!("power cut at operation {after}, seed {seed}: {wrong}");
            }
        }
    }
}

/// Whether some power cut after `fault` breaks a promise.
fn is_caught(fault: Fault) -> bool {
    let probe = SimDisk::new();
    probe.plan(fault);
    let mut ledger = Ledger::default();
    if !matches!(workload(&probe, &mut ledger), Ok(Ok(()))) {
        return true;
    }
    // The last of them: after everything went well.
    (0..=probe.count_all()).any(|after| {
        let disk = SimDisk::new();
        disk.plan(fault);
        disk.plan(Fault {
            op: None,
            after,
            trouble: Trouble::PowerCut,
        });
        let mut ledger = Ledger::default();
        let _ = workload(&disk, &mut ledger);
        (0..SEEDS).any(|seed| verdict_after(&disk, &ledger, after * 1000 + seed).is_err())
    })
}

#[test]
fn every_sync_is_needed() {
    let whole = SimDisk::new();
    workload(&whole, &mut Ledger::default()).unwrap().unwrap();
    let trace = whole.trace();
    let syncs = trace.iter().enumerate().filter(|&(_, &op)| op == Op::Sync);
    for (nth, (at, _)) in syncs.enumerate() {
        // A new segment is synced ahead for speed: see
        // `a_prepared_segment_owes_the_disk_nothing`.
        if trace[at - 1] != Op::Create {
            let fault = skip(Op::Sync, nth as u64);
            assert!(is_caught(fault), "nothing notices that sync {nth} is gone");
        }
    }
}

#[test]
fn a_segments_name_must_be_durable_before_it_is_used() {
    // Not each one matters: the next makes up for it unless the power goes
    // between. One place in the code asks for them all.
    let whole = SimDisk::new();
    workload(&whole, &mut Ledger::default()).unwrap().unwrap();
    let made = whole.trace().into_iter().take_while(|&op| op != Op::Create);
    let first = made.filter(|&op| op == Op::SyncDir).count() as u64;
    let caught = (first..first + 4).any(|nth| is_caught(skip(Op::SyncDir, nth)));
    assert!(caught, "nothing notices that no directory is synced");
}

fn skip(op: Op, after: u64) -> Fault {
    Fault {
        op: Some(op),
        after,
        trouble: Trouble::Skip,
    }
}

#[test]
fn a_killed_process_loses_nothing() {
    let disk = SimDisk::new();
    let (log, ..) = open(&disk.env(1)).unwrap();
    for n in 1..=20 {
        append(&log, n).unwrap();
        let (_, seen, report) = open(&disk.kill().env(n)).unwrap();
        assert_eq!(seen, (1..=n).collect::<Vec<_>>());
        assert!(!report.clean);
    }
}
