//! Reading the groups of one segment.
//!
//! Groups are passed to the workers as they are read. At intervals the sink is
//! asked whether replay memory is short, and informed of the progress.
//!
//! Invariant: everything that is read is durable ([`crate::log::found`]), because the
//! files that the sink writes to free memory rely on that. Tested by `tests/log_write.rs`,
//! `tests/log_quarantine.rs` and the tests of the replay.

use crate::base::error::Result;
use crate::log::found::FoundSegment;
use crate::log::group::{FLAG_CLOSED, HEADER_BYTES};
use crate::log::options::Position;
use crate::log::report::OnDamage;
use crate::log::segment::DATA_OFFSET;
use crate::log::table::{EndDecision, EndState};
use crate::log::walk::{Walk, damage};

/// Bytes between two reports of progress.
const PROGRESS_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of records between two questions to the sink.
const ASK_BYTES: u64 = 32 * 1024;

impl Walk<'_, '_> {
    /// Reads the groups of a started segment that continues the log.
    pub(crate) fn read(&mut self, found: &[FoundSegment], at: usize) -> Result<()> {
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
            let mut group = None;
            if !at_limit {
                let read = reader.group(offset, header.salt, self.expected);
                group = read.map_err(|error| segment.failed(error))?;
            }
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
                self.unasked_bytes += payload_bytes;
                if self.unasked_bytes >= ASK_BYTES {
                    self.unasked_bytes = 0;
                    self.free_memory()?;
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

    /// Lets the sink flush what was applied so far, if it wants to.
    fn free_memory(&mut self) -> Result<()> {
        if !self.dispatcher.wants_memory() || self.expected <= self.start {
            return Ok(());
        }
        self.dispatcher.free_memory(Position(self.expected - 1))
    }
}
