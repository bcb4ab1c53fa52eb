//! Giving up the records that an owner needs no more.
//!
//! A follower that has not read them would have to load a checkpoint, and could answer nothing
//! meanwhile. So it is waited for, if it was heard lately, but not for long: the log must not grow
//! for one that hangs.
//!
//! Tested by `tests/remote.rs` and `tests/standby/`.

use super::error::{Error, Result};
use super::link::Link;
use crate::envelope::State;
use crate::kafka::Offset;
use crate::node::Node;
use latewood_engine::io::Clock;
use std::sync::Arc;
use std::time::Duration;

/// How long followers are waited for: they say HELLO more often, and read as fast as an owner
/// writes; one that just started is not known at once.
const WAIT_MIN: Duration = Duration::from_secs(5);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How soon it is looked again what they said.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Gives up the records that an owner needs no more.
pub struct Trimmer {
    link: Arc<Link>,
    before: (Offset, State),
    watch: Option<Watch>,
}

/// What is known of followers.
pub(super) struct Watch {
    pub(super) node: Arc<Node>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Watch {
    /// Whether all others that are there have said, since `since_ns` by the monotonic clock, that
    /// they applied the groups before `sequence`.
    fn have_applied(&self, sequence: u64, since_ns: u64) -> bool {
        let standing = self.node.standing();
        let mut others = standing.members.iter().skip(1);
        others.all(|other| other.heard_ns > since_ns && other.applied + 1 >= sequence)
    }
}

impl Trimmer {
    pub(super) fn new(link: &Arc<Link>, before: (Offset, State), watch: Option<Watch>) -> Self {
        Self {
            link: Arc::clone(link),
            before,
            watch,
        }
    }

    /// Asks Kafka once: what it cannot do now is left to the next checkpoint.
    ///
    /// # Errors
    /// `NotTrimmed`; `Stopped` if the topic is another.
    pub fn run(&self) -> Result<()> {
        let link = &self.link;
        match link.kafka.describe(&link.partition.topic) {
            Ok(topic) => link.compare(&topic)?,
            Err(error) => return Err(Error::NotTrimmed(error)),
        }
        let trimmed = link.kafka.trim(&link.partition, self.before.0);
        trimmed.map_err(Error::NotTrimmed)
    }

    /// Waits 5 seconds for followers, and up to 10 if they lag.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn wait_for_followers(&self) -> Result<()> {
        let Some(watch) = &self.watch else {
            return Ok(());
        };
        let begun_ns = watch.clock.monotonic_ns();
        let sequence = self.before.1.sequence;
        loop {
            let waited_ns = watch.clock.monotonic_ns() - begun_ns;
            let have_applied = watch.have_applied(sequence, begun_ns);
            let wait = if have_applied { WAIT_MIN } else { WAIT_MAX };
            if u128::from(waited_ns) >= wait.as_nanos() {
                return Ok(());
            }
            self.link.retry.rest(LOOK_EVERY)?;
        }
    }
}
