//! Whether nodes of a cluster live on a log, for a server that is about to take it without following
//! it: its claim would depose their owner.
//!
//! ```text
//! tail     the last records: who said HELLO there and did not leave, and whether the owner gave the
//!          log up
//! watch    records that come from then on: a HELLO among them is of a node that lives. Not at all
//!          where nobody can; briefly where the log stands still and its tail has no HELLO
//! ```
//! Nothing is appended. A HELLO in the tail alone says nothing: whoever said it may be dead since.
//!
//! Invariant: a start is refused only for a HELLO that arrived while it watched.
//!
//! Tested by `tests/living.rs`.

use crate::envelope::{Body, Envelope};
use crate::kafka::{Kafka, KafkaError, Offset, Partition};
use crate::node::{Member, NodeId};
use latewood_engine::io::Clock;
use std::collections::BTreeSet;
use std::time::Duration;

/// Records before the end that are looked at: where fewer come in the time of a HELLO, one is among
/// them.
const TAIL: u64 = 64;
/// A log to which nothing is appended for this time has no owner that lives: it ticks.
const STILL: Duration = Duration::from_millis(750);
/// A node says HELLO within this time.
const HELLO_WITHIN: Duration = Duration::from_secs(6);
/// How long one read waits for a record.
const READ_WAIT: Duration = Duration::from_millis(250);
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The end of a log.
#[derive(Default)]
struct Tail {
    /// Who said HELLO last, and not that it leaves.
    there: BTreeSet<NodeId>,
    /// The newest record but HELLOs is a FAREWELL, or there is none.
    is_free: bool,
    next: Offset,
}

/// A node that says HELLO in the log while it is watched, if there is one. Waits up to six seconds,
/// where the end of the log does not show that there is none.
///
/// # Errors
/// [`KafkaError`], also if the log is trimmed meanwhile: `OutOfRange`.
pub fn living(
    kafka: &dyn Kafka,
    partition: &Partition,
    clock: &dyn Clock,
) -> Result<Option<Member>, KafkaError> {
    let tail = Tail::read(kafka, partition)?;
    if tail.is_free && tail.there.is_empty() {
        return Ok(None);
    }
    let began_ns = clock.monotonic_ns();
    let mut limit = if tail.there.is_empty() {
        STILL
    } else {
        HELLO_WITHIN
    };
    let mut next = tail.next;
    loop {
        let read = kafka.read(partition, next, READ_BYTES_MAX, READ_WAIT)?;
        next = read.next.max(next);
        for (_, value) in &read.records {
            // An owner lives, of a cluster or not.
            limit = HELLO_WITHIN;
            if let Ok(Envelope::Hello(hello)) = Envelope::decode(value)
                && !hello.leaves
            {
                return Ok(Some(hello.by));
            }
        }
        let passed_ns = clock.monotonic_ns().saturating_sub(began_ns);
        if u128::from(passed_ns) >= limit.as_nanos() {
            return Ok(None);
        }
    }
}

impl Tail {
    fn read(kafka: &dyn Kafka, partition: &Partition) -> Result<Self, KafkaError> {
        let (begin, end) = kafka.bounds(partition)?;
        let mut tail = Self {
            is_free: true,
            next: begin.max(end.saturating_sub(TAIL)),
            ..Self::default()
        };
        while tail.next < end {
            let read = kafka.read(partition, tail.next, READ_BYTES_MAX, READ_WAIT)?;
            if read.next <= tail.next {
                return Err(KafkaError::Unavailable(format!(
                    "no record at offset {}",
                    tail.next
                )));
            }
            tail.next = read.next;
            read.records.iter().for_each(|(_, value)| tail.note(value));
        }
        Ok(tail)
    }

    fn note(&mut self, value: &[u8]) {
        match Envelope::decode(value) {
            Ok(Envelope::Hello(hello)) if hello.leaves => {
                self.there.remove(&hello.by.id);
            }
            Ok(Envelope::Hello(hello)) => {
                self.there.insert(hello.by.id);
            }
            Ok(Envelope::Record { body, .. }) => self.is_free = body == Body::Farewell,
            Ok(Envelope::Epoch { .. }) => self.is_free = false,
            Err(_) => {}
        }
    }
}
