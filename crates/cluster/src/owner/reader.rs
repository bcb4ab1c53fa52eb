//! Reading a log on from one place, record by record.

use super::error::{Result, Stop};
use super::link::Link;
use crate::envelope::{Envelope, Hello, State};
use crate::kafka::Offset;
use crate::scan::{Scan, Verdict, first_state};
use std::ops::ControlFlow;

/// A place in a log, and the state there.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// The offset of the next record to be judged, or one that was not used before it.
    pub(crate) next: Offset,
    pub(crate) scan: Scan,
}

impl Reader {
    pub(crate) fn new(next: Offset, state: State) -> Self {
        let scan = Scan::new(state);
        Self { next, scan }
    }

    /// At the first record that is held, or at the start of a log that never held any. Where
    /// none is shown, only a record can prove that none is held: `probe` is appended, a claim
    /// that cannot count; without one, such a log is refused.
    pub(super) fn at_begin(link: &Link, probe: Option<&[u8]>) -> Result<Self> {
        let mut pauses = link.retry.pauses("cannot see how the log begins");
        loop {
            let begin = link.begin()?;
            if begin == 0 {
                return Ok(Self::new(0, State::START));
            }
            let unusable = Stop::Beginning { begin };
            if let Some((offset, value)) = link.first(begin)? {
                let state = first_state(offset, &value).ok_or(unusable)?;
                return Ok(Self::new(offset, state));
            }
            match link.kafka.append(&link.partition, probe.ok_or(unusable)?) {
                Ok(offset) => {
                    pauses.pause(&format!("the record at offset {offset} is not shown"))?
                }
                Err(error) => link.again(error, &mut pauses)?,
            }
        }
    }

    /// Judges the records that are shown now, until `each` breaks. `None`: it did not, up to the
    /// end that the broker shows, which need not be the end.
    pub(super) fn read_on<R>(
        &mut self,
        link: &Link,
        mut each: impl FnMut(Offset, &[u8], Verdict<'_>) -> ControlFlow<R>,
    ) -> Result<Option<R>> {
        loop {
            let from = self.next;
            let read = link.read(from)?;
            for (offset, value) in &read.records {
                let verdict = self.scan.next(*offset, value);
                if let Verdict::Newer(version) = verdict {
                    let offset = *offset;
                    return Err(Stop::Newer { version, offset }.into());
                }
                self.next = offset + 1;
                if let ControlFlow::Break(found) = each(*offset, value, verdict) {
                    return Ok(Some(found));
                }
            }
            self.next = read.next.max(self.next);
            if self.next >= read.end || self.next == from {
                return Ok(None);
            }
        }
    }

    /// Judges the records before `offset`, as long as they are HELLOs, and gives them to `each`.
    /// Returns whether all were. What is at `offset` is not read.
    pub(super) fn pass_hellos(
        &mut self,
        link: &Link,
        offset: Offset,
        mut each: impl FnMut(Hello),
    ) -> Result<bool> {
        while self.next < offset {
            let from = self.next;
            let read = link.read_few(from)?;
            for (at, value) in read.records.iter().take_while(|(at, _)| *at < offset) {
                let Ok(Envelope::Hello(hello)) = Envelope::decode(value) else {
                    return Ok(false);
                };
                self.scan.next(*at, value);
                self.next = at + 1;
                each(hello);
            }
            self.next = self.next.max(read.next.min(offset));
            if self.next == from {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
