//! What a tablet's log holds, for a recovery.

use super::error::{Error, Result, Stop};
use super::kept::Kept;
use super::link::{Link, Reign};
use super::reader::Reader;
use crate::envelope::{Body, State};
use crate::kafka::Offset;
use crate::scan::Verdict;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many bytes are collected before they are handed out.
const COLLECT_BYTES: usize = 4 * 1024 * 1024;

/// Groups of a record that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// The offset of the record.
    pub offset: Offset,
    /// The sequence of the first group.
    pub sequence: u64,
    /// How many groups.
    pub groups: u32,
    /// Their bytes.
    pub payload: Vec<u8>,
}

impl Data {
    /// The groups of the record at `offset`, before which the state is `at`.
    pub(super) fn new(offset: Offset, at: State, groups: u32, payload: &[u8]) -> Self {
        Self {
            offset,
            sequence: at.sequence,
            groups,
            payload: payload.to_vec(),
        }
    }
}

/// Up to where a history goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The EPOCH of this reign.
    Epoch(Reign),
    /// Behind the group before this one, which is known to be in the log.
    Sequence(u64),
}

impl Until {
    fn is_epoch_at(self, offset: Offset) -> bool {
        matches!(self, Self::Epoch(own) if own.epoch == offset)
    }
}

/// The groups that count, from some place of the log up to another one. Ends with the first
/// error. Memory: a few megabytes beside what was kept.
pub struct History {
    link: Arc<Link>,
    reader: Reader,
    /// The first record that counts must be this one, unless the log begins at its start.
    begin: (Offset, State),
    until: Until,
    ready: VecDeque<Data>,
    done: bool,
}

impl History {
    pub(super) fn new(link: Arc<Link>, begin: (Offset, State), until: Until) -> Self {
        Self {
            link,
            reader: Reader::new(begin.0, begin.1),
            begin,
            until,
            ready: VecDeque::new(),
            done: until == Until::Sequence(begin.1.sequence),
        }
    }

    /// With what was kept on the way to the EPOCH: only what is behind that is read.
    pub(super) fn beginning_with(mut self, kept: Kept) -> Self {
        match kept.rest {
            Some((offset, state)) => self.reader = Reader::new(offset, state),
            None => self.done = true,
        }
        self.ready = kept.data;
        self
    }

    /// Reads on until some groups are ready or the end was seen.
    fn fill(&mut self) -> Result<()> {
        let mut pauses = self.link.retry.pauses("cannot read the log on");
        while self.ready.is_empty() && !self.done {
            let (begin, until) = (self.begin, self.until);
            let (ready, mut bytes) = (&mut self.ready, 0);
            let read = self.reader.read_on(&self.link, |offset, _, verdict| {
                let counts = matches!(verdict, Verdict::Counts { .. });
                if offset == begin.0 && begin.1 != State::START && !counts {
                    return ControlFlow::Break(Err(Stop::Beginning { begin: offset }));
                }
                match verdict {
                    Verdict::Epoch(_) if until.is_epoch_at(offset) => {
                        return ControlFlow::Break(Ok(true));
                    }
                    Verdict::Counts {
                        at,
                        body: Body::Data { groups, payload },
                    } => {
                        bytes += payload.len();
                        ready.push_back(Data::new(offset, at, groups, payload));
                        let next = at.sequence + u64::from(groups);
                        if matches!(until, Until::Sequence(end) if next >= end) {
                            return ControlFlow::Break(Ok(true));
                        }
                    }
                    _ => {}
                }
                if bytes >= COLLECT_BYTES {
                    return ControlFlow::Break(Ok(false));
                }
                ControlFlow::Continue(())
            });
            let explained = |error| match until {
                Until::Epoch(own) => self.link.explain(error, own),
                Until::Sequence(_) => error,
            };
            match (read.map_err(explained)?, until) {
                (Some(end), _) => self.done = end?,
                (None, Until::Epoch(own)) if self.reader.next > own.epoch => {
                    return Err(explained(missing(own.epoch, &self.reader)));
                }
                (None, _) if self.ready.is_empty() => {
                    let next = self.reader.next;
                    pauses.pause(&format!("nothing is shown from offset {next} on"))?;
                }
                (None, _) => {}
            }
        }
        Ok(())
    }
}

/// The log that was claimed is not the one that is read.
fn missing(epoch: Offset, reader: &Reader) -> Error {
    let begin = reader.next;
    let needed = epoch;
    Stop::Trimmed { needed, begin }.into()
}

impl Iterator for History {
    type Item = Result<Data>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && !self.done
            && let Err(error) = self.fill()
        {
            self.done = true;
            self.ready.clear();
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}
