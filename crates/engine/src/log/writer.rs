//! The running local log: its state, its appends, and the fail-stop latch.
//!
//! What follows an append is in [`commit`]: syncs, trimming, and the end. Lock
//! order: `commit` (who syncs), then `tail` (where the next group goes), then
//! the store's shelf. A sync runs under none of them, so appends go on while
//! the disk works. The latch: the first failed write, sync, create or
//! rename is remembered, and every later append or sync answers `Halted` with
//! its words. The pages of a failed sync are never synced again: the kernel
//! may have dropped them and would call the next sync a success.
//!
//! Tested by `tests/log_write.rs` and `tests/log_fault.rs`.

mod commit;

use crate::base::error::{Error, ErrorKind, Result};
use crate::io::Env;
use crate::io::small::Context;
use crate::log::group::{GroupBuilder, GroupHeader, HEADER_BYTES};
use crate::log::latch::{Latch, check_len};
use crate::log::options::{LogOptions, LogStats, Position};
use crate::log::recover;
use crate::log::replay::Replay;
use crate::log::report::{OnDamage, Recovered, RecoveryReport};
use crate::log::segment::{DATA_OFFSET, SEGMENT_BYTES_MIN, payload_bytes_max};
use crate::log::store::{Store, new_header};
use crate::log::tail::Tail;
use crate::observe::stages::{Stage, Timer};
use crc_fast::crc32_iscsi;
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A log in segment files, open for appending. Dropping it makes nothing durable: see
/// [`LocalLog::close`].
#[derive(Debug)]
pub(crate) struct LocalLog {
    env: Env,
    pub(crate) store: Store,
    payload_bytes_max: usize,
    /// Whether a thread is syncing now; its followers wait for `committed`.
    commit: Mutex<bool>,
    committed: Condvar,
    pub(crate) tail: Mutex<Tail>,
    written: AtomicU64,
    durable: AtomicU64,
    pub(crate) latch: Latch,
    /// Whether what was found had been closed, or was nothing.
    found_closed: bool,
    syncs: AtomicU64,
    last_sync_us: AtomicU64,
    /// No group that is not durable is older, by the monotonic clock.
    unsynced_since_ns: AtomicU64,
}

impl LocalLog {
    /// Opens the log in `dir`, making the directory if needed, and replays
    /// everything it holds into `sink` before it returns. What was replayed is
    /// durable at return. The caller holds the directory's lock.
    ///
    /// # Errors
    /// `Corrupt` for damage that no crash explains where there is no quarantine,
    /// naming file and offset;
    /// `Unsupported` for a later format version; `Invalid` for options out of
    /// range; `Io`; and whatever `sink` answers.
    pub(crate) fn open(
        env: &Env,
        dir: &Path,
        options: &LogOptions,
        sink: &dyn Replay,
    ) -> Result<(Self, RecoveryReport)> {
        if options.segment_bytes < SEGMENT_BYTES_MIN {
            let message = format!("log segments have at least {SEGMENT_BYTES_MIN} bytes");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let made = env.disk.create_dir_all(dir);
        made.context("cannot create the log directory", dir)?;
        let on_damage = match &options.quarantine {
            Some(dir) => OnDamage::Keep(dir),
            None => OnDamage::Refuse,
        };
        let recovered = recover::recover(env, dir, on_damage, options.known_durable, sink)?;
        let store = Store::new(env, dir, options, recovered.next_number);
        for number in &recovered.unneeded {
            store.give_back(*number)?;
        }
        Self::start(env, store, options, recovered)
    }

    fn start(
        env: &Env,
        store: Store,
        options: &LogOptions,
        recovered: Recovered,
    ) -> Result<(Self, RecoveryReport)> {
        let next_sequence = recovered.report.next.0;
        let durable = next_sequence - 1;
        let found_closed = recovered.report.clean || recovered.segments.is_empty();
        let prepared = store.take()?;
        let header = new_header(env, &prepared, next_sequence, durable, recovered.start);
        let written = header.write_to(&*prepared.file);
        written.context("cannot start a log segment", &store.path(prepared.number))?;
        let mut tail = Tail {
            file: prepared.file,
            header,
            len_bytes: prepared.len_bytes,
            offset: DATA_OFFSET,
            next_sequence,
            unsynced: Vec::new(),
            segments: recovered.segments,
            start: recovered.start,
            roll_wanted: false,
            bytes_written: 0,
            groups: 0,
            rolls: 0,
            pins: 0,
        };
        tail.segments.push_back(tail.current());
        let log = Self {
            env: env.clone(),
            store,
            payload_bytes_max: payload_bytes_max(options.segment_bytes),
            commit: Mutex::new(false),
            committed: Condvar::new(),
            tail: Mutex::new(tail),
            written: AtomicU64::new(durable),
            durable: AtomicU64::new(durable),
            latch: Latch::default(),
            found_closed,
            syncs: AtomicU64::new(0),
            last_sync_us: AtomicU64::new(0),
            unsynced_since_ns: AtomicU64::new(0),
        };
        Ok((log, recovered.report))
    }

    /// The longest group this log takes, in bytes of records.
    pub(crate) fn group_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    /// Appends a group, which is in the kernel at return.
    ///
    /// # Errors
    /// Those of [`crate::log::Log::append`].
    pub(crate) fn append_timed(
        &self,
        group: &mut GroupBuilder,
        timer: &mut Timer,
    ) -> Result<Position> {
        if group.is_empty() {
            return Ok(self.written());
        }
        let len = group.len_bytes();
        check_len(len, self.payload_bytes_max)?;
        let checksum = group.payload_checksum();
        timer.end_for(Stage::LogEncode, 0);
        let mut tail = self.tail.lock();
        timer.end(Stage::LockWait);
        self.latch.check()?;
        self.reserve(&mut tail, HEADER_BYTES + len)?;
        let sequence = tail.next_sequence;
        let synced = self.durable.load(Ordering::Acquire);
        let bytes = group.seal(sequence, synced, tail.header.salt, checksum);
        let position = self.put(&mut tail, bytes);
        timer.end(Stage::LogWrite);
        position
    }

    /// Appends a group that was sealed for another log and has the next number.
    ///
    /// # Errors
    /// Those of [`LocalLog::append_timed`].
    pub(crate) fn append_sealed(&self, header: &GroupHeader, payload: &[u8]) -> Result<Position> {
        check_len(payload.len(), self.payload_bytes_max)?;
        let mut tail = self.tail.lock();
        self.latch.check()?;
        self.reserve(&mut tail, HEADER_BYTES + payload.len())?;
        let header = header.at(tail.next_sequence, self.durable().0);
        let head = header.encode(crc32_iscsi(payload), tail.header.salt);
        self.put(&mut tail, &[&head, payload].concat())
    }

    /// The newest group in the kernel.
    pub(crate) fn written(&self) -> Position {
        Position(self.written.load(Ordering::Acquire))
    }

    /// The newest group on disk.
    pub(crate) fn durable(&self) -> Position {
        Position(self.durable.load(Ordering::Acquire))
    }

    /// What the log has done and holds.
    pub(crate) fn stats(&self) -> LogStats {
        let tail = self.tail.lock();
        let is_synced = self.durable() >= self.written();
        let since_ns = self.unsynced_since_ns.load(Ordering::Relaxed);
        let unsynced_ns = self.env.clock.monotonic_ns().saturating_sub(since_ns);
        let started: u64 = tail.segments.iter().map(|segment| segment.len_bytes).sum();
        LogStats {
            bytes_written: tail.bytes_written,
            groups: tail.groups,
            syncs: self.syncs.load(Ordering::Relaxed),
            last_sync_us: self.last_sync_us.load(Ordering::Relaxed),
            unsynced_ms: (!is_synced).then_some(unsynced_ns / 1_000_000),
            segments: tail.segments.len() as u64,
            rolls: tail.rolls,
            bytes_on_disk: started + self.store.len_bytes(),
            bytes_given_up: tail.given_up_bytes(),
            halted: self.latch.reason(),
        }
    }

    fn put(&self, tail: &mut Tail, bytes: &[u8]) -> Result<Position> {
        tail.file.write_at(bytes, tail.offset).map_err(|error| {
            let path = self.store.path(tail.header.number);
            self.latch
                .fail(Error::io("cannot write to the log", &path, error))
        })?;
        let sequence = tail.next_sequence;
        if self.durable().0 + 1 == sequence {
            let now_ns = self.env.clock.monotonic_ns();
            self.unsynced_since_ns.store(now_ns, Ordering::Relaxed);
        }
        tail.offset += bytes.len() as u64;
        tail.bytes_written += bytes.len() as u64;
        tail.groups += 1;
        tail.next_sequence += 1;
        self.written.store(sequence, Ordering::Release);
        Ok(Position(sequence))
    }

    /// Begins a new segment if the current one has too little space left.
    fn reserve(&self, tail: &mut Tail, needed: usize) -> Result<()> {
        if tail.offset + needed as u64 <= tail.len_bytes && !tail.roll_wanted {
            return Ok(());
        }
        let prepared = self.store.take().map_err(|error| self.latch.fail(error))?;
        let synced = self.durable.load(Ordering::Acquire);
        let header = new_header(&self.env, &prepared, tail.next_sequence, synced, tail.start);
        header.write_to(&*prepared.file).map_err(|error| {
            let path = self.store.path(prepared.number);
            self.latch
                .fail(Error::io("cannot start a log segment", &path, error))
        })?;
        let full = std::mem::replace(&mut tail.file, prepared.file);
        tail.unsynced.push((tail.header.number, full));
        tail.header = header;
        tail.len_bytes = prepared.len_bytes;
        tail.offset = DATA_OFFSET;
        tail.roll_wanted = false;
        tail.rolls += 1;
        tail.segments.push_back(tail.current());
        Ok(())
    }
}
