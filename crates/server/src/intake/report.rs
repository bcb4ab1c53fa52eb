//! What became of the lines of a request.

use crate::observe::{Ages, IntakeCounters, Protocol};
use latewood_engine::{Error, ErrorKind, Position};
use latewood_wire::intake::Reason;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::fmt::{self, Arguments};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lines whose reason is kept; the others are counted.
const LINES_MAX: usize = 1000;
/// Bytes of a reason that are kept: with what is sent it may be of any length.
const TEXT_BYTES_MAX: usize = 1024;
/// Bytes of a key that a reason shows, so that there is room for why.
const KEY_BYTES_MAX: usize = 200;

/// The outcome of what an intake was given.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Samples that were taken.
    pub(crate) samples: u64,
    /// Samples or lines that were refused, by the number of the reason.
    pub(crate) refused: [u64; Reason::ALL.len()],
    /// Those of them that the engine counts as well.
    pub(super) by_engine: u64,
    /// The first of them, in the order in which they were found.
    pub(crate) lines: Vec<Line>,
    /// All lines of which something was refused.
    numbers: Numbers,
    /// Texts that were not stored.
    pub(crate) texts: u64,
    /// Samples that took the place of one in the same millisecond, where the
    /// sender told them apart.
    pub(crate) merged: u64,
    /// Samples brought to the engine, by age.
    pub(crate) ages: Ages,
    /// Where the last sample stands in the log.
    pub(crate) position: Position,
    /// What kept samples from being applied that are not their fault.
    pub(crate) failure: Option<Failure>,
    /// Samples that were not applied for that.
    pub(crate) failed: u64,
    /// Samples of which nobody knows whether they are kept, among these and those that were taken.
    pub(crate) unknown: u64,
    /// Who sent the first of what was refused or not applied.
    pub(super) sender: Option<Sender>,
    /// ACL LOG was told of a series that the user may not write.
    pub(super) has_denied: bool,
}

/// What keeps samples from being applied that are not at fault.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database does not take them.
    Engine(Error),
    /// The log was lost while they were written.
    Unknown(Error),
    /// The memory budget has no room for the new series that this names.
    NoRoom(String),
    /// CLIENT PAUSE holds writes up, and the sender can come again.
    Paused,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Unknown(error) => {
                write!(f, "unknown: nobody knows whether samples are kept: {error}")
            }
            Self::NoRoom(text) => f.write_str(text),
            Self::Paused => f.write_str("writes are paused by CLIENT PAUSE"),
        }
    }
}

/// Who sends samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sender {
    /// An IP address.
    pub(super) address: String,
    pub(super) user: Box<[u8]>,
}

/// Something of a line that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The line, counted from 1; 0 for what the request has no line of.
    pub(crate) number: u32,
    /// As it is counted.
    pub(crate) reason: Reason,
    /// A sentence.
    pub(crate) text: String,
}

/// The most lines that are counted once each, whatever order refusals come in.
const EXACT_LINES: u32 = 1 << 24;

/// A set of line numbers. Beyond [`EXACT_LINES`] each refusal counts.
#[derive(Debug, Default)]
struct Numbers {
    exact: RoaringBitmap,
    beyond: u64,
}

impl Numbers {
    /// Adds a line; 0 is none.
    fn insert(&mut self, number: u32) {
        if number > EXACT_LINES {
            self.beyond += 1;
        } else if number > 0 {
            self.exact.insert(number);
        }
    }
}

impl Report {
    /// Of how many lines something was refused.
    pub(crate) fn refused_lines(&self) -> u64 {
        self.numbers.exact.len() + self.numbers.beyond
    }

    /// The first refused lines by their numbers, at most `most`. Of each, the text is that of the
    /// first refusal, and tells how many more there are.
    pub(crate) fn told(&self, most: usize) -> Vec<Line> {
        let mut told: BTreeMap<u32, (&Line, u64)> = BTreeMap::new();
        for line in &self.lines {
            let first = told.entry(line.number).or_insert((line, 0));
            first.1 += 1;
        }
        let told = told.into_values().take(most).map(|(line, refusals)| {
            let mut line = line.clone();
            if refusals > 1 {
                line.text += &format!(" (and {} more of it)", refusals - 1);
            }
            line
        });
        told.collect()
    }

    /// How much was refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Tells the log of the first refusal, with key and timestamp where it has
    /// them, of what kept samples from being applied, and of how many there
    /// were since the last time.
    pub(super) fn warn(
        &self,
        counters: &IntakeCounters,
        protocol: Protocol,
        sender: &Sender,
        now_ms: i64,
    ) {
        let (protocol, address) = (protocol.name(), &*sender.address);
        let user = &*String::from_utf8_lossy(&sender.user);
        if let Some(line) = self.lines.first()
            && let Some(refused) = counters.refusals.due(self.refused(), now_ms)
        {
            tracing::warn!(
                protocol,
                address,
                user,
                reason = line.reason.name(),
                first = line.text,
                refused,
                "samples were refused"
            );
        }
        if let Some(error) = &self.failure
            && let Some(failed) = counters.failures.due(self.failed, now_ms)
        {
            tracing::warn!(protocol, address, user, %error, failed, "samples were not applied");
        }
    }

    /// Adds all of it to the counters of its protocol.
    pub(super) fn count(&self, counters: &IntakeCounters, now_ms: i64) {
        let add = |counter: &AtomicU64, more: u64| {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        add(&counters.samples, self.samples);
        add(&counters.texts, self.texts);
        add(&counters.merged, self.merged);
        add(&counters.failed, self.failed);
        add(&counters.refused_by_engine, self.by_engine);
        if self.refused() > 0 {
            counters.last_refused_ms.store(now_ms, Ordering::Relaxed);
        }
        counters.ages.add(&self.ages);
        for (counter, more) in counters.refused.iter().zip(self.refused) {
            add(counter, more);
        }
    }

    pub(super) fn refuse(&mut self, number: u32, reason: Reason, text: Arguments<'_>) {
        self.refused[reason as usize] += 1;
        self.numbers.insert(number);
        if self.lines.len() < LINES_MAX {
            let text = cut(text.to_string(), TEXT_BYTES_MAX);
            self.lines.push(Line {
                number,
                reason,
                text,
            });
        }
    }

    /// Notes that nobody knows whether `samples` are kept.
    pub(super) fn doubt(&mut self, error: Error, samples: u64) {
        self.unknown += samples;
        // Who sends all of it again must know this, whatever became of others.
        self.failure = Some(Failure::Unknown(error));
    }

    /// What kept samples from being applied, and how many.
    pub(crate) fn told_failure(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let failed = match failure {
            Failure::Unknown(_) => format!("{} samples may be stored, or may not", self.unknown),
            _ => format!("{} samples are not stored", self.failed),
        };
        Some(format!("{failure}; {failed}"))
    }

    /// Counts a sample of a new series that there is no memory for; `text` names it.
    pub(super) fn fail_series(&mut self, text: Arguments<'_>) {
        self.failed += 1;
        self.failure
            .get_or_insert_with(|| Failure::NoRoom(text.to_string()));
    }

    /// Counts samples that were not applied, or of which the database does not know.
    pub(super) fn fail_samples(&mut self, failure: Failure, samples: usize) {
        self.failed += samples as u64;
        match failure {
            Failure::Engine(error) if error.kind() == ErrorKind::Unknown => {
                self.doubt(error, samples as u64);
            }
            failure => {
                self.failure.get_or_insert(failure);
            }
        }
    }
}

/// A key for a sentence, and not too much of it.
pub(super) fn shown(key: &[u8]) -> String {
    // What is cut off of a last character is more than is shown.
    let some = key.get(..KEY_BYTES_MAX + 4).unwrap_or(key);
    cut(String::from_utf8_lossy(some).into_owned(), KEY_BYTES_MAX)
}

/// A text of at most `bytes_max` bytes, and dots if it was longer.
fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push_str("...");
        text.shrink_to_fit();
    }
    text
}
