//! Why a node does not own a tablet, or no longer does.

use crate::envelope::Claimant;
use crate::kafka::{KafkaError, Offset};
use crate::retry::Cancelled;

/// Why a call of an owner failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Another node owns the tablet. What was being appended does not count and never will.
    #[error("node {} at {} owns this log since offset {epoch}", by.node, by.address)]
    Deposed {
        /// Who.
        by: Claimant,
        /// Its epoch.
        epoch: Offset,
    },
    /// Another node owns the tablet, and the place of what was being appended is gone: that node
    /// trimmed it, or all replicas lost it. It may count.
    #[error(
        "another node owns this log since offset {epoch}, and the records before are gone since: \
         whether the newest writes of this node count is not known"
    )]
    Succeeded {
        /// Its epoch.
        epoch: Offset,
    },
    /// The log cannot be used. What was being appended may count.
    #[error("the log of this tablet cannot be used: {0}")]
    Stopped(Stop),
    /// Ended by [`crate::retry::Cancel`]. What was being appended may count.
    #[error("given up because the node stops")]
    Cancelled,
    /// A trim was not done; the log is as it was. No other call fails this way.
    #[error("the log was not trimmed: {0}")]
    NotTrimmed(KafkaError),
}

/// Why a log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// There is no such topic, or it has fewer partitions.
    #[error("no such topic or partition")]
    NoSuchTopic,
    /// The topic was deleted and made again: these are not the records of this log.
    #[error("the topic was deleted and created again")]
    Recreated,
    /// Records that are needed were deleted, by hand or by a retention.
    #[error("records from offset {needed} on are needed, the partition begins at {begin}")]
    Trimmed {
        /// The first record that is needed.
        needed: Offset,
        /// The first that is held.
        begin: Offset,
    },
    /// The newest checkpoint that counts needs records that were deleted.
    #[error(
        "the newest checkpoint needs records from offset {needed} on, the partition begins at {begin}"
    )]
    Missing {
        /// The first record that is needed.
        needed: Offset,
        /// The first that is held.
        begin: Offset,
    },
    /// The partition does not begin where an owner trims it to.
    #[error("the partition begins at offset {begin}, where no log can begin")]
    Beginning {
        /// The first record that is held.
        begin: Offset,
    },
    /// A record was written by a later version of Latewood.
    #[error("the record at offset {offset} has version {version} of the format")]
    Newer {
        /// Of the record.
        version: u8,
        /// Where it is.
        offset: Offset,
    },
    /// Kafka refuses for good.
    #[error("{0}")]
    Refused(String),
    /// What was to be appended exceeds the bounds of an envelope.
    #[error("longer than a record may be")]
    TooLong,
    /// The groups to be appended do not follow those before.
    #[error("group {given} cannot follow, {expected} comes next")]
    Sequence {
        /// Of the first group to be appended.
        given: u64,
        /// Which it must be.
        expected: u64,
    },
    /// An offset was given to two records: all replicas lost what they had acknowledged.
    #[error(
        "the brokers lost records that they had acknowledged: they gave offset {offset} again, \
         {next} comes next"
    )]
    TailLost {
        /// The offset that was given again.
        offset: Offset,
        /// The one that comes next.
        next: Offset,
    },
    /// Two processes append in one epoch, such as a machine and its copy.
    #[error("another process appends in this epoch, at offset {0}")]
    Copied(Offset),
}

impl Error {
    /// Whether another node owns the log: whoever claims it again takes it from that one.
    pub fn is_succession(&self) -> bool {
        matches!(self, Self::Deposed { .. } | Self::Succeeded { .. })
    }

    /// Whether the log lacks records that were acknowledged, and nobody else owns it: what this
    /// process has in memory is all that is left of them.
    pub fn loses_records(&self) -> bool {
        matches!(
            self,
            Self::Stopped(
                Stop::NoSuchTopic
                    | Stop::Recreated
                    | Stop::Trimmed { .. }
                    | Stop::Missing { .. }
                    | Stop::Beginning { .. }
                    | Stop::TailLost { .. }
            )
        )
    }
}

impl From<Cancelled> for Error {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

/// The result of a call of an owner.
pub type Result<T> = std::result::Result<T, Error>;
