//! What a tablet's log holds, for a recovery.

use super::error::{Error, Result, Stop};
use super::link::Link;
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

/// The groups that count, from where the log begins up to the EPOCH of its owner. Ends with the
/// first error. Memory: a few megabytes.
pub struct History {
    link: Arc<Link>,
    reader: Reader,
    /// The first record that counts must be this one, unless the log begins at its start.
    begin: (Offset, State),
    epoch: Offset,
    ready: VecDeque<Data>,
    done: bool,
}

impl History {
    pub(super) fn new(link: Arc<Link>, begin: (Offset, State), epoch: Offset) -> Self {
        Self {
            link,
            reader: Reader::new(begin.0, begin.1),
            begin,
            epoch,
            ready: VecDeque::new(),
            done: false,
        }
    }

    /// Reads on until some groups are ready or the EPOCH was seen.
    fn fill(&mut self) -> Result<()> {
        let mut pauses = self.link.retry.pauses();
        while self.ready.is_empty() && !self.done {
            let (begin, epoch) = (self.begin, self.epoch);
            let (ready, mut bytes) = (&mut self.ready, 0);
            let read = self.reader.read_on(&self.link, |offset, _, verdict| {
                let counts = matches!(verdict, Verdict::Counts { .. });
                if offset == begin.0 && begin.1 != State::START && !counts {
                    return ControlFlow::Break(Err(Stop::Beginning { begin: offset }));
                }
                match verdict {
                    Verdict::Epoch(_) if offset == epoch => return ControlFlow::Break(Ok(true)),
                    Verdict::Counts {
                        at,
                        body: Body::Data { groups, payload },
                    } => {
                        bytes += payload.len();
                        ready.push_back(Data {
                            offset,
                            sequence: at.sequence,
                            groups,
                            payload: payload.to_vec(),
                        });
                    }
                    _ => {}
                }
                match bytes < COLLECT_BYTES {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(Ok(false)),
                }
            })?;
            match read {
                Some(end) => self.done = end?,
                None if self.reader.next > epoch => return Err(missing(epoch, &self.reader)),
                None if self.ready.is_empty() => pauses.pause()?,
                None => {}
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
        let filled = match self.ready.is_empty() && !self.done {
            true => self.fill(),
            false => Ok(()),
        };
        if let Err(error) = filled {
            self.done = true;
            self.ready.clear();
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}
