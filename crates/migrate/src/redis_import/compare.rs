//! Makes one series of the target equal to the source's, and reports the differences.
//!
//! Both sides are read in ascending order, side by side, and every difference is repaired at
//! once. Writes go behind the reading position, so they never change what is still to be read. A
//! new series is the same walk with an empty target.
//!
//! The source is read up to its last timestamp at the start of the walk: a writer that is faster
//! than the walk would never let it end. Later samples are left to the next walk, on the target
//! too. Later samples of the target are extra only if the source still ends there.

use super::Import;
use crate::connect::Link;
use crate::error::Result;
use crate::samples::{Cursor, Sample, Stop, Tally};
use crate::value::value_text;
use redis::Pipeline;
use std::cmp::Ordering;

/// Repair commands per pipeline.
const WRITE_BATCH: usize = 5_000;

/// The differences found and repaired by a walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Differences {
    /// Samples that only the source had; written.
    pub(crate) missing: u64,
    /// Samples with another value; overwritten.
    pub(crate) other_value: u64,
    /// Samples that only the target had; deleted with `--delete`.
    pub(crate) extra: u64,
    /// The target's first refusal of a write.
    pub(crate) refused: Option<String>,
}

impl Differences {
    pub(crate) fn none(&self) -> bool {
        self.samples() == 0 && self.refused.is_none()
    }

    /// Samples that differed.
    pub(crate) fn samples(&self) -> u64 {
        self.missing + self.other_value + self.extra
    }
}

/// The result of a walk.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) source: Tally,
    /// The samples of the target before the repair.
    pub(crate) target: Tally,
    pub(crate) differences: Differences,
}

impl Compared {
    /// Whether both sides held the same number of samples with the same checksum.
    pub(crate) fn agree(&self) -> bool {
        self.source.samples == self.target.samples
            && self.source.checksum() == self.target.checksum()
            && self.differences.none()
    }
}

/// The start of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    /// The target's series was just created and is empty.
    Fresh,
    /// Both sides from this timestamp on.
    At(i64),
    /// The same, and on the target no further than on the source.
    Part(i64),
}

/// Pending commands to the target.
struct Writes {
    pipe: Pipeline,
    /// The sample of each command.
    sent: Vec<Sample>,
    refused: Option<String>,
}

impl Writes {
    fn new() -> Self {
        Self {
            pipe: redis::pipe(),
            sent: Vec::new(),
            refused: None,
        }
    }

    fn flush(&mut self, target: &mut Link) -> Result<()> {
        let answers = target.ask_all(&mut self.pipe)?;
        self.pipe = redis::pipe();
        let sent = std::mem::take(&mut self.sent);
        let refusal = answers.into_iter().zip(sent).find_map(|(answer, sample)| {
            let Sample { timestamp, value } = sample;
            let text = answer.err()?;
            Some(format!("{} at {timestamp}: {text}", value_text(value)))
        });
        self.refused = self.refused.take().or(refusal);
        Ok(())
    }

    /// LAST prefers a number to NaN, so replacing a number by NaN requires deleting the old
    /// sample first.
    fn put(&mut self, target: &Link, key: &[u8], sample: &Sample, replaces: bool) {
        if replaces && sample.value.is_nan() {
            self.delete(key, sample);
        }
        let mut add = sample.add(target, key);
        self.pipe
            .add_command(add.arg("ON_DUPLICATE").arg("LAST").take());
        self.sent.push(*sample);
    }

    fn delete(&mut self, key: &[u8], sample: &Sample) {
        let delete = self.pipe.cmd("TS.DEL").arg(key);
        delete.arg(sample.timestamp).arg(sample.timestamp);
        self.sent.push(*sample);
    }
}

impl Import<'_> {
    /// Walks over `key` on both sides, on the source up to `end`, and repairs the target.
    ///
    /// # Errors
    /// [`Stop::SeriesGone`] when either side no longer has it.
    pub(crate) fn mend(
        &mut self,
        key: &[u8],
        begin: Begin,
        end: i64,
    ) -> std::result::Result<Compared, Stop> {
        let (start, mut theirs) = match begin {
            Begin::Fresh => (0, Cursor::empty()),
            Begin::At(start) | Begin::Part(start) => (start, Cursor::new(key, start, end)),
        };
        let mut ours = Cursor::new(key, start, end);
        let mut writes = Writes::new();
        let mut compared = Compared {
            source: Tally::new(),
            target: Tally::new(),
            differences: Differences::default(),
        };
        let differences = &mut compared.differences;
        loop {
            let source = ours.peek(&mut self.source)?;
            let target = theirs.peek(&mut self.target)?;
            let fetched = ours.take_fetched();
            if fetched > 0 {
                self.rate.take(fetched);
                self.progress.add(fetched);
            }
            let order = match (&source, &target) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(source), Some(target)) => source.timestamp.cmp(&target.timestamp),
            };
            if let Some(sample) = source.filter(|_| order.is_le()) {
                compared.source.add(&sample);
                ours.pass();
                match target.filter(|_| order.is_eq()) {
                    None => {
                        differences.missing += 1;
                        writes.put(&self.target, key, &sample, false);
                    }
                    Some(other) if !sample.same_value(&other) => {
                        differences.other_value += 1;
                        writes.put(&self.target, key, &sample, true);
                    }
                    Some(_) => {}
                }
            }
            if let Some(sample) = target.filter(|_| order.is_ge()) {
                compared.target.add(&sample);
                theirs.pass();
                if order.is_gt() {
                    differences.extra += 1;
                    if self.options.delete {
                        writes.delete(key, &sample);
                    }
                }
            }
            if writes.pipe.len() >= WRITE_BATCH {
                writes.flush(&mut self.target)?;
            }
        }
        if let Begin::At(start) = begin {
            self.mend_behind(key, end.max(start - 1), &mut compared, &mut writes)?;
        }
        writes.flush(&mut self.target)?;
        compared.differences.refused = writes.refused;
        Ok(compared)
    }

    /// Walks over the target's samples after `end`, as long as the source has none there. The
    /// source is checked after each page, so that samples written to both are not extra.
    fn mend_behind(
        &mut self,
        key: &[u8],
        end: i64,
        compared: &mut Compared,
        writes: &mut Writes,
    ) -> std::result::Result<(), Stop> {
        let Some(start) = end.checked_add(1) else {
            return Ok(());
        };
        let mut theirs = Cursor::new(key, start, i64::MAX);
        while let Some(sample) = theirs.peek(&mut self.target)? {
            if theirs.take_fetched() > 0 {
                let mut ours = Cursor::new(key, start, i64::MAX);
                if ours.peek(&mut self.source)?.is_some() {
                    break;
                }
            }
            theirs.pass();
            compared.target.add(&sample);
            compared.differences.extra += 1;
            if self.options.delete {
                writes.delete(key, &sample);
            }
            if writes.pipe.len() >= WRITE_BATCH {
                writes.flush(&mut self.target)?;
            }
        }
        Ok(())
    }
}
