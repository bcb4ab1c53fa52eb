//! The walk along the segments of a log that is opened.
//!
//! Segment by segment it finds out what the tables need to know, does what they
//! decide, and takes down what the log and its report will hold. What anything
//! calls durable is gathered on the way: a group that is missing was durable if
//! anything read so far, or anything further on, says so.
//!
//! Invariants: `expected` only grows; no group is applied twice, and none
//! behind the end of the log; with [`OnDamage::Look`] no file changes. Tested by
//! `tests/log_crash.rs`, `tests/log_write.rs` and `tests/log_quarantine.rs`.

mod read;

use crate::base::error::{Error, ErrorKind, Result};
use crate::io::Env;
use crate::io::quarantine::Quarantine;
use crate::io::small::Context;
use crate::log::found::{FoundSegment, total_bytes, unsupported};
use crate::log::options::Position;
use crate::log::reader::{Claims, SegmentReader};
use crate::log::replay::Dispatcher;
use crate::log::report::{OnDamage, Recovered, RecoveryReport};
use crate::log::segment::{SegmentHeader, has_damaged_copy};
use crate::log::table::{Header, Order, SegmentDecision, SegmentState};
use crate::log::tail::Started;
use std::collections::VecDeque;
use std::path::Path;

/// Where a walk begins, and what is known before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    /// The oldest group that is needed.
    pub(crate) start: u64,
    /// The first group of the segment it is in.
    pub(crate) expected: u64,
    /// Groups up to this one were durable once.
    pub(crate) durable: u64,
    /// Groups were durable, and there is no header left.
    pub(crate) is_headless: bool,
}

/// The walk along the log.
pub(crate) struct Walk<'a, 'b> {
    env: &'a Env,
    on_damage: OnDamage<'a>,
    pub(crate) dispatcher: &'a mut Dispatcher<'b>,
    pub(crate) start: u64,
    /// The sequence that comes next.
    pub(crate) expected: u64,
    /// The newest sequence that a group or header that was read calls durable.
    synced: u64,
    /// The same of groups and headers further on, and of the manifest.
    claimed: u64,
    /// Groups were durable, and there is no header left.
    is_headless: bool,
    /// The first group of the first hole.
    pub(crate) lost_from: Option<u64>,
    bytes_total: u64,
    bytes_done: u64,
    /// Bytes of records since the sink was asked whether memory is short.
    unasked_bytes: u64,
    /// The log has ended: no later segment holds anything.
    pub(crate) ended: bool,
    pub(crate) report: RecoveryReport,
    segments: VecDeque<Started>,
    unneeded: Vec<u64>,
}

impl<'a, 'b> Walk<'a, 'b> {
    /// Walks along all of `found`.
    pub(crate) fn along(
        env: &'a Env,
        on_damage: OnDamage<'a>,
        dispatcher: &'a mut Dispatcher<'b>,
        found: &[FoundSegment],
        begin: Begin,
    ) -> Result<Recovered> {
        let mut walk = Self {
            env,
            on_damage,
            dispatcher,
            start: begin.start,
            expected: begin.expected,
            synced: 0,
            claimed: begin.durable,
            is_headless: begin.is_headless,
            lost_from: None,
            bytes_total: total_bytes(found)?,
            bytes_done: 0,
            unasked_bytes: 0,
            ended: false,
            report: RecoveryReport::default(),
            segments: VecDeque::new(),
            unneeded: Vec::new(),
        };
        for at in 0..found.len() {
            walk.segment(found, at)?;
        }
        // Positions that files hold must not be given again.
        walk.expected = walk.expected.max(begin.durable.saturating_add(1));
        walk.finish(found.last().map_or(0, |last| last.number))
    }

    fn segment(&mut self, found: &[FoundSegment], at: usize) -> Result<()> {
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
    fn is_missed(&mut self, found: &[FoundSegment], at: usize) -> Result<bool> {
        let dropped = self.report.groups_dropped;
        let is_missing = self.is_headless || self.claimed(&found[at + 1..], Claims::default())?;
        // Not the end of the log yet.
        self.report.groups_dropped = dropped;
        Ok(is_missing && found[at].holds_anything()?)
    }

    /// What `act` does with the quarantine, if there is one.
    pub(crate) fn quarantine(
        &self,
        act: impl FnOnce(&Quarantine<'_>) -> Result<String>,
    ) -> Result<Option<String>> {
        match self.on_damage {
            OnDamage::Keep(dir) => act(&Quarantine::new(self.env, dir)).map(Some),
            OnDamage::Refuse | OnDamage::Look => Ok(None),
        }
    }

    /// Whether anything behind `offset` says that the expected group was
    /// durable.
    fn hole_is_claimed(
        &mut self,
        found: &[FoundSegment],
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
    fn claimed(&mut self, later: &[FoundSegment], mut claims: Claims) -> Result<bool> {
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
        segment: &FoundSegment,
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
            let file = self.env.disk.open_to_write(&segment.path);
            let cut = file.and_then(|file| file.truncate(used));
            cut.context("cannot cut the log's end", &segment.path)?;
            kept_bytes = used;
        }
        self.segments.push_back(Started {
            number: segment.number,
            first_sequence: header.first_sequence,
            len_bytes: kept_bytes,
        });
        Ok(())
    }

    fn finish(mut self, last_number: u64) -> Result<Recovered> {
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

fn damage(path: &Path, what: &str) -> Error {
    let advice = "the log was not changed; restore the file or move the log away";
    Error::new(ErrorKind::Corrupt, format!("{what}; {advice}")).at(path)
}
