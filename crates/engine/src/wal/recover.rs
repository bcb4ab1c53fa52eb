//! What every state of the log means after a crash: two decision tables.
//!
//! A crash may lose, keep or tear anything that no sync covered, so a missing
//! group means one of two things. If anything valid in the log says that this
//! group was durable once (every group and every segment header carries the
//! newest durable sequence its writer knew), the disk lost what it had
//! promised: **damage**, which is reported and kept in quarantine while the
//! rest is read ([`super::holes`]), or refused where the options say so.
//! Otherwise the group was never acknowledged as durable: a **torn tail**, and
//! the log ends there, even where later groups survived.
//!
//! The log goes on in a fresh segment whose first sequence is where the old
//! one was cut. A segment ends where a later one begins, so groups behind a
//! cut can never come back. Tested by the exhaustive tests beside the tables
//! and by `tests/wal_crash.rs`.

use super::found::{Found, find, total_bytes, unsupported};
use super::group::{FLAG_CLOSED, HEADER_BYTES};
use super::holes::LogHole;
use super::options::Position;
use super::reader::{Claims, SegmentReader};
use super::replay::{Dispatcher, LogStart, Replay, with_workers};
use super::segment::{DATA_OFFSET, HeaderState, SegmentHeader, has_damaged_copy};
use super::table::{EndDecision, EndState, Header, Order, SegmentDecision, SegmentState};
use super::tail::Started;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Env, File};
use crate::quarantine::Quarantine;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an open found in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Groups replayed.
    pub groups: u64,
    /// Bytes of the groups replayed.
    pub bytes: u64,
    /// Segments they stood in.
    pub segments: u64,
    /// Where the next group goes: everything before it was replayed or
    /// trimmed.
    pub next: Position,
    /// Whether the log was closed in order.
    pub clean: bool,
    /// Whole groups found behind the end of the log. They were never
    /// acknowledged as durable and are dropped, since something before them
    /// is missing.
    pub groups_dropped: u64,
    /// What was durable once and is lost.
    pub holes: Vec<LogHole>,
    /// Segments without a readable header of which nothing says that they held
    /// anything durable. They are out of use: in quarantine, or, where the
    /// options are strict, where they were.
    pub set_aside: Vec<PathBuf>,
    /// Segments with one damaged copy of their header; the other one was read.
    pub damaged_copies: Vec<PathBuf>,
    /// How long it took, nanoseconds.
    pub elapsed_ns: u64,
}

/// A log read to its end.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) report: RecoveryReport,
    /// Segments that hold groups, trimmed ones included, oldest first.
    pub(crate) segments: VecDeque<Started>,
    /// Segments that hold nothing needed.
    pub(crate) unneeded: Vec<u64>,
    /// The number for the next file.
    pub(crate) next_number: u64,
    /// The oldest group still needed.
    pub(crate) start: u64,
}

/// The walk along the log.
pub(super) struct Walk<'a, 'b> {
    env: &'a Env,
    on_damage: OnDamage<'a>,
    pub(super) dispatcher: &'a mut Dispatcher<'b>,
    pub(super) start: u64,
    /// The sequence that comes next.
    pub(super) expected: u64,
    /// The newest sequence that a group or header that was read calls durable.
    synced: u64,
    /// The same of groups and headers further on, and of the manifest.
    claimed: u64,
    /// Groups were durable, and there is no header left.
    is_headless: bool,
    /// The first group of the first hole.
    pub(super) lost_from: Option<u64>,
    /// The last sequence in each file read.
    read: Vec<(u64, PathBuf, Arc<dyn File>)>,
    bytes_total: u64,
    bytes_done: u64,
    /// Bytes of records since the sink was asked whether it wants room.
    unlooked_bytes: u64,
    /// The log has ended: no later segment holds anything.
    pub(super) ended: bool,
    pub(super) report: RecoveryReport,
    segments: VecDeque<Started>,
    unneeded: Vec<u64>,
}

/// What a reader of a log does about damage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnDamage<'a> {
    /// Refuse the log.
    Refuse,
    /// Keep it in this folder and go on.
    Keep(&'a Path),
    /// Report it and go on; change nothing, be it damaged or not.
    Look,
}

/// Replays the log in `dir` into `sink` and makes what it found durable,
/// unless it only looks. Groups up to `durable` were durable once, as the
/// manifest knows.
pub(crate) fn recover(
    env: &Env,
    dir: &Path,
    on_damage: OnDamage<'_>,
    durable: Position,
    sink: &dyn Replay,
) -> Result<Recovered> {
    let started_ns = env.clock.monotonic_ns();
    let found = find(env, dir)?;
    let is_later = |segment: &&Found| matches!(segment.header, HeaderState::Unknown(_));
    if let Some(segment) = found.iter().find(is_later) {
        return Err(unsupported(segment));
    }
    let headers = || found.iter().filter_map(Found::started);
    let needed = headers().map(|header| header.start.max(1)).max();
    let begins = match needed {
        Some(start) => LogStart::At(Position(start)),
        None if durable.0 > 0 && any_holds(&found)? => LogStart::Damaged,
        None => LogStart::None,
    };
    sink.begins(begins)?;
    let start = needed.unwrap_or(durable.0.saturating_add(1));
    // The oldest segment that is needed begins at or before `start`.
    let expected = found
        .iter()
        .filter_map(|segment| Some((segment.started()?.first_sequence, segment.limit)))
        .filter(|&(first, limit)| first <= start && first < limit)
        .map(|(first, _)| first)
        .max()
        .unwrap_or(start);
    let mut recovered = with_workers(sink, |dispatcher| {
        let mut walk = Walk {
            env,
            on_damage,
            dispatcher,
            start,
            expected,
            synced: 0,
            claimed: durable.0,
            is_headless: begins == LogStart::Damaged,
            lost_from: None,
            read: Vec::new(),
            bytes_total: total_bytes(&found)?,
            bytes_done: 0,
            unlooked_bytes: 0,
            ended: false,
            report: RecoveryReport::default(),
            segments: VecDeque::new(),
            unneeded: Vec::new(),
        };
        for at in 0..found.len() {
            walk.segment(&found, at)?;
        }
        // Positions that files hold must not be given again.
        walk.expected = walk.expected.max(durable.0.saturating_add(1));
        walk.finish(found.last().map_or(0, |last| last.number))
    })?;
    recovered.report.elapsed_ns = env.clock.monotonic_ns() - started_ns;
    Ok(recovered)
}

impl Walk<'_, '_> {
    fn segment(&mut self, found: &[Found], at: usize) -> Result<()> {
        let segment = &found[at];
        let header = Header::of(&segment.header);
        let order = match segment.started() {
            Some(_) if self.ended => Order::Behind,
            Some(header) if header.first_sequence >= segment.limit => Order::Behind,
            Some(_) if segment.limit <= self.expected => Order::Trimmed,
            Some(header) if header.first_sequence > self.expected => Order::Gap,
            _ => Order::Next,
        };
        let mut last = 0;
        let claimed = match (header, order) {
            (Header::Started, Order::Gap) => self.claimed(&found[at..], Claims::default())?,
            (Header::Blank | Header::Broken | Header::Garbage, _) if !self.ended => {
                let claims = segment.claims()?;
                last = claims.last;
                // What it holds may be what a hole before it misses.
                claims.synced >= self.lost_from.unwrap_or(self.expected)
                    || self.is_missed(found, at)?
            }
            _ => false,
        };
        let state = SegmentState {
            header,
            order,
            claimed,
            strict: matches!(self.on_damage, OnDamage::Refuse),
        };
        match state.decide() {
            SegmentDecision::Read => self.read(found, at),
            SegmentDecision::Unneeded => {
                self.unneeded.push(segment.number);
                Ok(())
            }
            SegmentDecision::Keep => {
                let len_bytes = segment.reader()?.len_bytes();
                self.segments
                    .extend(segment.started().map(|header| Started {
                        number: segment.number,
                        first_sequence: header.first_sequence,
                        len_bytes,
                    }));
                Ok(())
            }
            SegmentDecision::SetAside => {
                self.quarantine(|quarantine| quarantine.take(&segment.path))?;
                self.report.set_aside.push(segment.path.clone());
                Ok(())
            }
            SegmentDecision::EndBefore => {
                self.ended = true;
                self.unneeded.push(segment.number);
                Ok(())
            }
            SegmentDecision::ReadBehindGap => {
                let first = segment.started().map(|header| header.first_sequence);
                self.skip_gap(segment, first.unwrap_or(self.expected))?;
                self.read(found, at)
            }
            SegmentDecision::Quarantine => self.quarantine_segment(segment, last),
            SegmentDecision::Refuse => Err(damage(
                &segment.path,
                &format!(
                    "group {} of the log was durable and is missing before or in this segment",
                    self.expected
                ),
            )),
            SegmentDecision::Unsupported => Err(unsupported(segment)),
        }
    }

    /// Whether what was durable is missing here and a segment without a header
    /// may be where it stood.
    fn is_missed(&mut self, found: &[Found], at: usize) -> Result<bool> {
        let dropped = self.report.groups_dropped;
        let is_missing = self.is_headless || self.claimed(&found[at + 1..], Claims::default())?;
        // Not the end of the log yet.
        self.report.groups_dropped = dropped;
        Ok(is_missing && found[at].holds_anything()?)
    }

    /// What `act` does with the quarantine, if there is one.
    pub(super) fn quarantine(
        &self,
        act: impl FnOnce(&Quarantine<'_>) -> Result<String>,
    ) -> Result<Option<String>> {
        match self.on_damage {
            OnDamage::Keep(dir) => act(&Quarantine::new(self.env, dir)).map(Some),
            OnDamage::Refuse | OnDamage::Look => Ok(None),
        }
    }

    /// Reads the groups of a started segment that continues the log.
    fn read(&mut self, found: &[Found], at: usize) -> Result<()> {
        let segment = &found[at];
        let Some(header) = segment.started() else {
            return Ok(());
        };
        let mut reader = segment.reader()?;
        self.synced = self.synced.max(header.synced);
        let mut offset = DATA_OFFSET;
        let mut reported = 0;
        loop {
            let at_limit = self.expected == segment.limit;
            let group = match at_limit {
                true => None,
                false => reader
                    .group(offset, header.salt, self.expected)
                    .map_err(|error| segment.failed(error))?,
            };
            if let Some((group, payload)) = group {
                self.synced = self.synced.max(group.synced());
                self.report.clean = group.flags & FLAG_CLOSED != 0;
                if self.expected >= self.start {
                    self.report.groups += 1;
                    self.report.bytes += (HEADER_BYTES + payload.len()) as u64;
                    self.dispatcher.group(&group, payload)?;
                }
                let payload_bytes = payload.len() as u64;
                offset += HEADER_BYTES as u64 + payload_bytes;
                self.expected += 1;
                self.unlooked_bytes += payload_bytes;
                if self.unlooked_bytes >= LOOK_BYTES {
                    self.unlooked_bytes = 0;
                    self.make_room(segment)?;
                }
                if offset - reported >= PROGRESS_BYTES {
                    reported = offset;
                    self.dispatcher
                        .progress(self.bytes_done + offset, self.bytes_total);
                }
                continue;
            }
            let state = EndState {
                at_limit,
                claimed: !at_limit && self.hole_is_claimed(found, at, &mut reader, offset)?,
                strict: matches!(self.on_damage, OnDamage::Refuse),
            };
            match state.decide() {
                EndDecision::NextSegment => {}
                EndDecision::EndHere => self.ended = true,
                EndDecision::SkipHole => {
                    if let Some(next) = self.skip_hole(segment, header, &mut reader, offset)? {
                        offset = next;
                        continue;
                    }
                }
                EndDecision::Refuse => {
                    return Err(damage(
                        &segment.path,
                        &format!(
                            "group {} of the log was durable and is missing or damaged at offset {offset}",
                            self.expected
                        ),
                    ));
                }
            }
            break;
        }
        self.bytes_done += reader.len_bytes();
        self.dispatcher.progress(self.bytes_done, self.bytes_total);
        self.keep(segment, header, offset, reader.len_bytes())
    }

    /// Lets the sink move to disk what was applied so far, if it wants to.
    fn make_room(&mut self, segment: &Found) -> Result<()> {
        if !self.dispatcher.wants_room() || self.expected <= self.start {
            return Ok(());
        }
        // What the sink writes says that these groups are durable.
        self.sync_read()?;
        let last = self.expected - 1;
        if last > self.synced {
            sync(&*segment.file, &segment.path)?;
            self.synced = last;
        }
        self.dispatcher.make_room(Position(last))
    }

    /// Makes the segments read to their ends durable: a process that was killed
    /// may have left them in the kernel only.
    fn sync_read(&self) -> Result<()> {
        let unsynced = self.read.iter().filter(|(last, ..)| *last > self.synced);
        for (_, path, file) in unsynced {
            sync(&**file, path)?;
        }
        Ok(())
    }

    /// Whether anything behind `offset` says that the expected group was
    /// durable.
    fn hole_is_claimed(
        &mut self,
        found: &[Found],
        at: usize,
        reader: &mut SegmentReader,
        offset: u64,
    ) -> Result<bool> {
        if self.claimed >= self.expected {
            return Ok(true);
        }
        if self.report.clean {
            // The log was closed here: nothing follows.
            return Ok(false);
        }
        let segment = &found[at];
        let here = match segment.started() {
            Some(header) => reader
                .claims_behind(offset, header.salt, self.expected)
                .map_err(|error| segment.failed(error))?,
            None => Claims::default(),
        };
        self.claimed(&found[at + 1..], here)
    }

    /// Whether `claims` or any of `later` says that the expected group was
    /// durable. Counts the groups found, for the report.
    fn claimed(&mut self, later: &[Found], mut claims: Claims) -> Result<bool> {
        for segment in later {
            let more = segment.claims()?;
            claims.synced = claims.synced.max(more.synced);
            claims.groups += more.groups;
        }
        self.claimed = self.claimed.max(claims.synced);
        let is_claimed = self.claimed >= self.expected;
        // Behind the end of the log; behind a hole they are applied.
        self.report.groups_dropped = if is_claimed { 0 } else { claims.groups };
        Ok(is_claimed)
    }

    /// Takes note of a segment that was read up to `used`.
    fn keep(
        &mut self,
        segment: &Found,
        header: &SegmentHeader,
        used: u64,
        len_bytes: u64,
    ) -> Result<()> {
        if self.expected == header.first_sequence {
            // Started and never used.
            self.unneeded.push(segment.number);
            return Ok(());
        }
        self.report.segments += 1;
        let is_synced = self.synced >= header.first_sequence;
        let is_damaged = has_damaged_copy(&*segment.file, header, is_synced);
        if is_damaged.map_err(|error| segment.failed(error))? {
            self.report.damaged_copies.push(segment.path.clone());
        }
        let mut kept_bytes = len_bytes;
        if self.ended && !matches!(self.on_damage, OnDamage::Look) {
            // Nothing is appended to it any more; what is behind the end is
            // of no use.
            let cut = segment.file.truncate(used);
            cut.map_err(|error| Error::io("cannot cut the log's end", &segment.path, error))?;
            kept_bytes = used;
        }
        let last = self.expected - 1;
        self.read
            .push((last, segment.path.clone(), Arc::clone(&segment.file)));
        self.segments.push_back(Started {
            number: segment.number,
            first_sequence: header.first_sequence,
            len_bytes: kept_bytes,
        });
        Ok(())
    }

    /// Makes what was found durable, for new acknowledgements build on it.
    fn finish(mut self, last_number: u64) -> Result<Recovered> {
        if !matches!(self.on_damage, OnDamage::Look) {
            self.sync_read()?;
        }
        self.report.next = Position(self.expected);
        Ok(Recovered {
            report: self.report,
            segments: self.segments,
            unneeded: self.unneeded,
            next_number: last_number + 1,
            start: self.start,
        })
    }
}

/// Whether one of the segments, none of which has a header, holds anything.
fn any_holds(found: &[Found]) -> Result<bool> {
    for segment in found {
        let is_headless = !matches!(segment.header, HeaderState::Other);
        if is_headless && segment.holds_anything()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Progress is told every so many bytes.
const PROGRESS_BYTES: u64 = 8 * 1024 * 1024;
/// The sink is asked whether it wants to make room every so many bytes.
const LOOK_BYTES: u64 = 32 * 1024;

fn sync(file: &dyn File, path: &Path) -> Result<()> {
    let synced = file.sync();
    synced.map_err(|error| Error::io("cannot sync the recovered log", path, error))
}

fn damage(path: &Path, what: &str) -> Error {
    let advice = "the log was not changed; restore the file or move the log away";
    Error::new(ErrorKind::Corrupt, format!("{what}; {advice}")).at(path)
}
