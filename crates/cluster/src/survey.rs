//! What a tablet's log holds, read by somebody who does not own it.
//!
//! Invariants: nothing is appended, trimmed or claimed; which records count is decided by
//! [`crate::scan`], as owners decide it. What the broker shows is a prefix of the log: the owner
//! may have appended more meanwhile.
//!
//! Tested by `tests/owner.rs`, and as a command by the server's `tests/kafka/`.

use crate::envelope::{Body, Checkpoint, Claimant, State};
use crate::kafka::{Kafka, KafkaError, Offset, Partition};
use crate::owner::Stop;
use crate::scan::{Counters, Scan, Verdict, first_state};
use std::time::Duration;

/// Bytes of one read.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a record that is said to be there is waited for.
const READ_WAIT: Duration = Duration::from_secs(5);

/// What a log holds.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The first offset that is held, and the one behind the newest that was shown.
    pub bounds: (Offset, Offset),
    /// The verdicts on the records.
    pub counters: Counters,
    /// The state behind the newest; `None` in a log that holds nothing.
    pub state: Option<State>,
    /// Since when the newest owner owns it, and who that is. `None` if its EPOCH was trimmed.
    pub owner: Option<(Offset, Claimant)>,
    /// The newest owner gave it up.
    pub farewell: bool,
    /// Where the newest checkpoint stands that counts, and what it says.
    pub checkpoint: Option<(Offset, Checkpoint)>,
    /// Groups that count.
    pub groups: u64,
    /// Bytes of these groups.
    pub group_bytes: u64,
}

/// Why a log was not surveyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Kafka.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    /// It is no log that a node could own.
    #[error("the log of this tablet cannot be used: {0}")]
    Stopped(Stop),
}

/// Reads a log from its beginning to the end that is shown, and gives `each` every record: its
/// offset, its length and what it is to the log. Keeps none of it.
///
/// # Errors
/// `Kafka`: also if the owner trims the log meanwhile. `Stopped` for a log that begins where none
/// can, that lacks what its checkpoint needs, or has a record of a later version.
pub fn survey(
    kafka: &dyn Kafka,
    partition: &Partition,
    each: &mut dyn FnMut(Offset, usize, &Verdict<'_>),
) -> Result<Survey, Error> {
    let (begin, end) = kafka.bounds(partition)?;
    let mut found = Survey {
        bounds: (begin, end),
        ..Survey::default()
    };
    let mut scan: Option<Scan> = None;
    let mut next = begin;
    while next < end {
        let read = kafka.read(partition, next, READ_BYTES_MAX, READ_WAIT)?;
        if read.next <= next {
            let missing = format!("no record at offset {next}");
            return Err(KafkaError::Unavailable(missing).into());
        }
        next = read.next;
        for (offset, value) in &read.records {
            let scan = match &mut scan {
                Some(scan) => scan,
                None => {
                    let state = first_state(*offset, value);
                    let state = state.ok_or(Error::Stopped(Stop::Beginning { begin }))?;
                    scan.insert(Scan::new(state))
                }
            };
            let verdict = scan.next(*offset, value);
            if let Verdict::Newer(version) = verdict {
                let offset = *offset;
                return Err(Error::Stopped(Stop::Newer { version, offset }));
            }
            each(*offset, value.len(), &verdict);
            found.note(*offset, verdict);
        }
    }
    found.bounds.1 = next;
    found.counters = scan.as_ref().map(Scan::counters).unwrap_or_default();
    found.state = scan.as_ref().map(Scan::state);
    match &found.checkpoint {
        Some((_, checkpoint)) if checkpoint.begin < begin => {
            let needed = checkpoint.begin;
            Err(Error::Stopped(Stop::Missing { needed, begin }))
        }
        // Logs are trimmed only behind a checkpoint.
        None if begin > 0 => Err(Error::Stopped(Stop::Beginning { begin })),
        _ => Ok(found),
    }
}

impl Survey {
    fn note(&mut self, offset: Offset, verdict: Verdict<'_>) {
        match verdict {
            Verdict::Epoch(claimant) => {
                self.owner = Some((offset, claimant));
                self.farewell = false;
            }
            Verdict::Counts { body, .. } => {
                self.farewell = body == Body::Farewell;
                match body {
                    Body::Data { groups, payload } => {
                        self.groups += u64::from(groups);
                        self.group_bytes += payload.len() as u64;
                    }
                    Body::Checkpoint(checkpoint) => self.checkpoint = Some((offset, checkpoint)),
                    Body::Tick | Body::Farewell | Body::Skipped { .. } => {}
                }
            }
            _ => {}
        }
    }
}
