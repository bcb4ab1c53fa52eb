//! Whether nodes of a cluster live on a log, for a server that is about to take it without following
//! it: its claim would depose their owner.
//!
//! ```text
//! tail     the last records: who said HELLO there and did not leave, and whether the owner gave the
//!          log up
//! watch    records that come from then on: a HELLO among them is of a node that lives. A log that
//!          was given up and has no HELLO is not watched; one whose owner is no node, and whose tail
//!          has no HELLO, is watched briefly
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
/// A log of a server without followers to which nothing is appended for this time has no owner that
/// lives. Of nodes more is asked: they may pause, and their HELLOs lie behind many records.
const STILL: Duration = Duration::from_millis(750);
/// A node says HELLO within this time.
const HELLO_WITHIN: Duration = Duration::from_secs(6);
/// How long one read waits for a record.
const READ_WAIT: Duration = Duration::from_millis(250);
/// How often a read of a record that is there may find nothing in that time: brokers may be slow.
const EMPTY_READS_MAX: u32 = 40;
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The end of a log.
#[derive(Default)]
struct Tail {
    /// Who said HELLO last, and not that it leaves.
    there: BTreeSet<NodeId>,
    /// The newest record but HELLOs is a FAREWELL, or there is none.
    is_free: bool,
    /// Where the newest claim that is known of is, in whose epoch the log is written.
    claim: Option<Offset>,
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
    let mut limit = if tail.there.is_empty() && !tail.is_of_node(kafka, partition)? {
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
        let mut empty = 0;
        while tail.next < end {
            let read = kafka.read(partition, tail.next, READ_BYTES_MAX, READ_WAIT)?;
            empty = if read.next > tail.next { 0 } else { empty + 1 };
            if empty > EMPTY_READS_MAX {
                return Err(KafkaError::Unavailable(format!(
                    "the record at offset {} does not come",
                    tail.next
                )));
            }
            tail.next = read.next.max(tail.next);
            for (offset, value) in &read.records {
                tail.note(*offset, value);
            }
        }
        Ok(tail)
    }

    /// Whether a node claimed the log last, as far as can be told: a server without others has no
    /// address in its claim.
    fn is_of_node(&self, kafka: &dyn Kafka, partition: &Partition) -> Result<bool, KafkaError> {
        let Some(at) = self.claim else {
            return Ok(false);
        };
        let (begin, _) = kafka.bounds(partition)?;
        if at < begin {
            return Ok(true);
        }
        let read = kafka.read(partition, at, READ_BYTES_MAX, READ_WAIT)?;
        let claim = read.records.iter().find(|(offset, _)| *offset == at);
        Ok(match claim.map(|(_, value)| Envelope::decode(value)) {
            Some(Ok(Envelope::Epoch { claimant, .. })) => !claimant.address.is_empty(),
            _ => true,
        })
    }

    fn note(&mut self, offset: Offset, value: &[u8]) {
        match Envelope::decode(value) {
            Ok(Envelope::Hello(hello)) if hello.leaves => {
                self.there.remove(&hello.by.id);
            }
            Ok(Envelope::Hello(hello)) => {
                self.there.insert(hello.by.id);
            }
            Ok(Envelope::Record { at, body }) => {
                self.is_free = body == Body::Farewell;
                self.claim = at.epoch.or(self.claim);
            }
            Ok(Envelope::Epoch { .. }) => {
                self.is_free = false;
                self.claim = Some(offset);
            }
            Err(_) => {}
        }
    }
}
