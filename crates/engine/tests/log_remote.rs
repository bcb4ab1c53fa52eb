//! A database whose log is elsewhere: all that was durable comes back from log and checkpoint,
//! whatever became of its directory.

use crate::db_support::{append, last_wins, options, read, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::tools::{self, Checked, Finding, LogCopy};
use latewood_engine::{
    Create, Db, Durability, Error, ErrorKind, LogStats, Options, Position, RemoteLog, RemotePin,
    Result,
};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DIR: &str = "/cache";
const CHECKPOINT: &str = "/checkpoint";

/// A log in memory, which becomes durable when the test says so.
#[derive(Debug, Default)]
pub(crate) struct MemoryLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The first of `groups`.
    first: u64,
    groups: Vec<Vec<u8>>,
    is_full: bool,
    is_cut_off: bool,
    /// How often the newest group is not called durable yet.
    lags: u32,
}

impl MemoryLog {
    /// With the first groups of another one, as if the rest had never come.
    pub(crate) fn up_to(other: &Self, last: Position) -> Arc<Self> {
        let state = other.0.lock().unwrap();
        let groups = (state.first.max(1)..).zip(&state.groups);
        let kept = groups.filter(|(number, _)| *number <= last.0);
        Arc::new(Self(Mutex::new(State {
            first: state.first,
            groups: kept.map(|(_, group)| group.clone()).collect(),
            ..State::default()
        })))
    }

    /// The groups from `first` on, up to `last`, one behind the other.
    pub(crate) fn groups(&self, first: u64, last: u64) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        let groups = (state.first.max(1)..).zip(&state.groups);
        let wanted = groups.filter(|(number, _)| (first..=last).contains(number));
        wanted.flat_map(|(_, group)| group.clone()).collect()
    }

    /// The newest group.
    pub(crate) fn last(&self) -> u64 {
        self.0.lock().unwrap().next() - 1
    }

    pub(crate) fn trim(&self, start: Position) {
        let mut state = self.0.lock().unwrap();
        let gone = (start.0 - state.first.max(1)) as usize;
        state.groups.drain(..gone);
        state.first = start.0;
    }

    /// Another node owns it.
    pub(crate) fn cut_off(&self) {
        self.change(|state| state.is_cut_off = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }
}

struct Pin<'a>(&'a MemoryLog);

impl RemotePin for Pin<'_> {
    fn read(&self, _last: Position, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.0.check()?;
        let state = self.0.0.lock().unwrap();
        let mut groups = state.groups.chunks(3);
        groups.try_for_each(|groups| each(&groups.concat()))
    }
}

impl State {
    fn next(&self) -> u64 {
        self.first.max(1) + self.groups.len() as u64
    }
}

impl RemoteLog for MemoryLog {
    fn group_bytes_max(&self) -> usize {
        64 * 1024
    }

    fn first(&self) -> Result<Option<Position>> {
        let state = self.0.lock().unwrap();
        Ok((state.next() > 1).then_some(Position(state.first.max(1))))
    }

    fn replay(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Position> {
        let state = self.0.lock().unwrap();
        for groups in state.groups.chunks(3) {
            each(&groups.concat())?;
        }
        Ok(Position(state.next()))
    }

    fn append(&self, position: Position, group: &[u8]) -> Result<()> {
        self.check()?;
        let mut state = self.0.lock().unwrap();
        assert_eq!(position.0, state.next());
        state.groups.push(group.to_vec());
        Ok(())
    }

    fn durable(&self) -> Position {
        let mut state = self.0.lock().unwrap();
        let lag = u64::from(state.lags > 0);
        state.lags = state.lags.saturating_sub(1);
        Position(state.next() - 1 - lag)
    }

    fn sync_to(&self, _position: Position) -> Result<()> {
        self.check()
    }

    fn why_full(&self) -> Option<String> {
        let is_full = self.0.lock().unwrap().is_full;
        is_full.then(|| "the log takes no more".to_owned())
    }

    fn check(&self) -> Result<()> {
        if self.0.lock().unwrap().is_cut_off {
            Err(Error::new(ErrorKind::Halted, "node 7 owns the log"))
        } else {
            Ok(())
        }
    }

    fn close(&self) -> Result<()> {
        self.check()
    }

    fn pin(&self) -> Box<dyn RemotePin + '_> {
        Box::new(Pin(self))
    }

    fn stats(&self) -> LogStats {
        LogStats::default()
    }
}

fn open(disk: &SimDisk, log: &Arc<MemoryLog>) -> Result<Db> {
    open_at(disk, DIR, log)
}

fn open_at(disk: &SimDisk, dir: &str, log: &Arc<MemoryLog>) -> Result<Db> {
    let env = disk.env(1);
    Db::open_remote(&env, Path::new(dir), options(2), last_wins(), log.clone())
}

fn increment(db: &Db, key: &[u8], delta: f64, at: i64) -> Result<()> {
    let (outcome, _) = db.increment(key, delta, Some(at), Create::Defaults)?;
    outcome.unwrap();
    Ok(())
}

fn values(db: &Db, key: &[u8]) -> Vec<f64> {
    let samples = read(db, key).unwrap();
    samples.iter().map(|sample| sample.value).collect()
}

#[test]
fn a_log_alone_brings_everything_back() {
    let log = Arc::new(MemoryLog::default());
    let db = open(&SimDisk::new(), &log).unwrap();
    for at in 0..1_000 {
        append(&db, &[sample(b"a", at, at as f64), sample(b"b", at, 0.5)]).unwrap();
    }
    increment(&db, b"counter", 5.0, 1).unwrap();
    let position = db.position();
    drop(db);
    // Another machine, with nothing on its disk.
    let back = open(&SimDisk::new(), &log).unwrap();
    assert_eq!(values(&back, b"a").len(), 1_000);
    assert_eq!(values(&back, b"b"), [0.5; 1_000]);
    assert_eq!(values(&back, b"counter"), [5.0]);
    assert_eq!(back.position(), position, "no number is given twice");
    assert_eq!(back.recovery().samples, 2_001);
    append(&back, &[sample(b"a", 2_000, 1.0)]).unwrap();
    drop(back);
    let again = open(&SimDisk::new(), &log).unwrap();
    assert_eq!(values(&again, b"a").len(), 1_001);
}

#[test]
fn a_checkpoint_and_the_log_behind_it_are_the_database() {
    let (disk, log) = (SimDisk::new(), Arc::new(MemoryLog::default()));
    let db = open(&disk, &log).unwrap();
    for at in 0..500 {
        increment(&db, b"sum", 1.0, at).unwrap();
    }
    db.flush().unwrap();
    let checkpoint = db.checkpoint(Path::new(CHECKPOINT)).unwrap();
    assert!(checkpoint.log_start > Position(1));
    for at in 500..700 {
        increment(&db, b"sum", 1.0, at).unwrap();
    }
    let untrimmed = MemoryLog::up_to(&log, Position(u64::MAX));
    log.trim(checkpoint.log_start);
    drop(db);
    for log in [log, untrimmed] {
        let back = open_at(&disk.kill(), CHECKPOINT, &log).unwrap();
        let sums = values(&back, b"sum");
        assert_eq!(sums.last(), Some(&700.0), "each increment counts once");
        assert_eq!(sums.len(), 700);
    }
}

#[test]
fn what_does_not_fit_the_files_is_refused() {
    let (disk, log) = (SimDisk::new(), Arc::new(MemoryLog::default()));
    let db = open(&disk, &log).unwrap();
    for at in 0..100 {
        append(&db, &[sample(b"a", at, 1.0)]).unwrap();
    }
    // Each shard has its cut in a group.
    db.flush().unwrap();
    drop(db);
    let shorter = MemoryLog::up_to(&log, Position(50));
    let trimmed = MemoryLog::up_to(&log, Position(u64::MAX));
    append(&open(&disk, &trimmed).unwrap(), &[sample(b"a", 100, 1.0)]).unwrap();
    trimmed.trim(Position(104));
    let damaged = MemoryLog::up_to(&log, Position(u64::MAX));
    damaged.change(|state| *state.groups[70].last_mut().unwrap() ^= 1);
    let holed = MemoryLog::up_to(&log, Position(u64::MAX));
    holed.change(|state| drop(state.groups.remove(70)));
    for (log, wanted) in [
        (Arc::new(MemoryLog::default()), "the log is missing"),
        (
            shorter,
            "ends before group 51, but the files hold groups up to 102",
        ),
        (trimmed, "the log begins after the end of the blocks"),
        (damaged, "group 71 of the remote log is damaged"),
        (holed, "group 71 of the remote log is missing before 72"),
    ] {
        let refused = open(&disk.kill(), &log).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);
        assert!(refused.to_string().contains(wanted), "{refused}");
    }
}

#[test]
fn a_directory_has_one_log_only() {
    let disk = SimDisk::new();
    let local = crate::db_support::open(&disk).unwrap();
    append(&local, &[sample(b"a", 1, 1.0)]).unwrap();
    let refused = local.checkpoint(Path::new(CHECKPOINT)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    drop(local);
    let log = Arc::new(MemoryLog::default());
    let refused = open_at(&disk.kill(), crate::db_support::DIR, &log)
        .err()
        .unwrap();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let db = open(&disk, &log).unwrap();
    append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
    db.flush().unwrap();
    drop(db);
    let refused = Db::open(&disk.env(1), Path::new(DIR), options(2), last_wins());
    let refused = refused.err().unwrap().to_string();
    assert!(
        refused.contains("the directory is the cache of"),
        "{refused}"
    );
    // That its log is elsewhere is no damage of a cache.
    let disk = disk.kill();
    let (checked, found) = check(&disk, DIR);
    assert_eq!(
        (checked.damage, checked.is_refused),
        (0, false),
        "{found:?}"
    );
    assert!(found[0].contains("the log is in Kafka"), "{found:?}");
    let totals = tools::totals(&disk.env(1), Path::new(DIR))
        .unwrap()
        .to_string();
    assert!(totals.contains("in Kafka"), "{totals}");
    let mut tell = |_: &Finding| {};
    let copied = tools::restore(
        &disk.env(1),
        Path::new(DIR),
        Path::new(CHECKPOINT),
        &mut tell,
    );
    assert_eq!(copied.unwrap_err().kind(), ErrorKind::Invalid);
    let manifest = Path::new(DIR).join("MANIFEST");
    disk.set_bytes(&manifest, vec![1; 100]).unwrap();
    let (checked, found) = check(&disk, DIR);
    assert!(checked.damage > 0 && checked.is_refused, "{found:?}");
}

/// The database in a folder, as a server without a remote log opens it.
fn open_local(disk: &SimDisk, dir: &str) -> Result<Db> {
    let options = Options {
        strict: true,
        ..options(2)
    };
    Db::open(&disk.env(1), Path::new(dir), options, last_wins())
}

fn check(disk: &SimDisk, dir: &str) -> (Checked, Vec<String>) {
    let mut found = Vec::new();
    let mut tell = |finding: &Finding| found.push(finding.what.clone());
    let checked = tools::check(&disk.env(1), Path::new(dir), &mut tell).unwrap();
    (checked, found)
}

#[test]
fn a_backup_has_a_log_of_its_own() {
    let (disk, log) = (SimDisk::new(), Arc::new(MemoryLog::default()));
    let db = open(&disk, &log).unwrap();
    // Nothing, the log alone, files alone, both.
    for (round, flushes) in [(0, false), (1, false), (2, true), (3, false)] {
        let sum = (round * 300) as f64;
        for at in 0..if round > 0 { 300 } else { 0 } {
            let at = round * 300 + at;
            increment(&db, b"sum", 1.0, at).unwrap();
            append(&db, &[sample(b"late", 2_000 - at, 1.0)]).unwrap();
        }
        if flushes {
            db.flush().unwrap();
        }
        let dir = format!("/backup-{round}");
        let backup = db.backup(Path::new(&dir)).unwrap();
        assert_eq!((backup.segments, backup.files > 0), (1, round > 1));
        // A power cut behind the call.
        let disk = disk.crash(round as u64);
        let (checked, found) = check(&disk, &dir);
        assert_eq!((checked.damage, &found[..]), (0, &[] as &[String]));
        let has_tail = matches!(round, 1 | 3);
        assert_eq!(checked.unstored_samples, if has_tail { 600 } else { 0 });
        let restored = open_local(&disk, &dir).unwrap();
        assert!(restored.recovery().log.clean);
        if round > 0 {
            assert_eq!(values(&restored, b"sum").last(), Some(&sum));
            assert_eq!(values(&restored, b"late").len(), round as usize * 300);
        }
        // And it goes on.
        increment(&restored, b"sum", 1.0, 10_000).unwrap();
        restored.close().unwrap();
        let again = open_local(&disk.kill(), &dir).unwrap();
        assert_eq!(values(&again, b"sum").last(), Some(&(sum + 1.0)));
    }
    let refused = db.backup(Path::new("/backup-1")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    log.change(|state| state.is_cut_off = true);
    let refused = db.backup(Path::new("/backup-4")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Halted, "{refused}");
    let refused = open_local(&disk.kill(), "/backup-4").err().unwrap();
    assert!(
        refused.to_string().contains("FORMAT is missing"),
        "{refused}"
    );
}

#[test]
fn a_copy_begins_and_ends_where_it_is_asked_to() {
    let (disk, log) = (SimDisk::new(), Arc::new(MemoryLog::default()));
    let db = open(&disk, &log).unwrap();
    let mut copy = LogCopy::begin(&disk.env(1), Path::new("/copy"), Position(5)).unwrap();
    for at in 0..100 {
        append(&db, &[sample(b"a", at, 1.0)]).unwrap();
    }
    log.change(|state| {
        copy.groups(&state.groups[..40].concat()).unwrap();
        copy.groups(&[]).unwrap();
        let refused = copy.groups(&state.groups[41]).unwrap_err().to_string();
        assert!(
            refused.contains("group 41 of the remote log is missing before 42"),
            "{refused}"
        );
        let refused = copy.groups(&state.groups[39]).unwrap_err().to_string();
        assert!(
            refused.contains("group 41 of the remote log is missing before 40"),
            "{refused}"
        );
        let mut damaged = state.groups[40].clone();
        damaged.push(0);
        let refused = copy.groups(&damaged).unwrap_err().to_string();
        assert!(
            refused.contains("group 42 of the remote log is damaged"),
            "{refused}"
        );
    });
    let copied = copy.finish().unwrap();
    assert_eq!((copied.last, copied.groups), (Position(41), 37));
    let refused = LogCopy::begin(&disk.env(1), Path::new("/copy"), Position(42)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

#[test]
fn a_full_log_refuses_before_anything_changes() {
    let log = Arc::new(MemoryLog::default());
    let db = open(&SimDisk::new(), &log).unwrap();
    increment(&db, b"sum", 1.0, 1).unwrap();
    log.change(|state| state.is_full = true);
    // The look of the background, which writers rely on.
    db.maintain().unwrap();
    let refused = increment(&db, b"sum", 1.0, 1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LogFull);
    assert_eq!(refused.to_string(), "the log takes no more");
    assert_eq!(values(&db, b"sum"), [1.0]);
    log.change(|state| state.is_full = false);
    db.maintain().unwrap();
    increment(&db, b"sum", 1.0, 1).unwrap();
    assert_eq!(values(&db, b"sum"), [2.0]);
}

#[test]
fn a_log_that_others_own_stops_all_writes() {
    let log = Arc::new(MemoryLog::default());
    let db = open(&SimDisk::new(), &log).unwrap();
    append(&db, &[sample(b"a", 1, 1.0)]).unwrap();
    log.change(|state| state.is_cut_off = true);
    let heard = db.maintain().unwrap_err();
    assert!(heard.to_string().contains("node 7 owns the log"), "{heard}");
    let refused = append(&db, &[sample(b"a", 2, 1.0)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Halted);
    assert!(
        refused.to_string().contains("node 7 owns the log"),
        "{refused}"
    );
    assert_eq!(values(&db, b"a"), [1.0], "reads go on");
}

#[test]
fn a_log_that_becomes_durable_by_itself_tells_whoever_wants_it() {
    let log = Arc::new(MemoryLog::default());
    let options = Options {
        background: true,
        durability: Durability::Sync,
        ..options(2)
    };
    let env = SimDisk::new().env(1);
    let db = Db::open_remote(&env, Path::new(DIR), options, last_wins(), log.clone()).unwrap();
    let (tell, told) = channel();
    db.on_durable(move || tell.send(()).unwrap_or_default());
    for at in 0..100 {
        append(&db, &[sample(b"a", at, 1.0)]).unwrap();
        while told.try_recv().is_ok() {}
        // Not yet when it is asked for, and then before anybody waits for it.
        log.change(|state| state.lags = 1);
        db.want_durable(db.position());
        let heard = told.recv_timeout(Duration::from_secs(60));
        assert!(heard.is_ok(), "nobody was told of group {at}");
        assert!(db.is_durable(db.position()).unwrap());
    }
}
