//! The side of a follower that appends: HELLOs and claims.

use super::Shared;
use super::core::{Act, Claim};
use crate::envelope::{Claimant, Envelope};
use crate::kafka::KafkaError;
use crate::owner::{Link, claim_value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How often it looks whether there is something to say.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The appending side of a follower.
#[derive(Clone)]
pub struct Speaker {
    link: Arc<Link>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Speaker({:?})", self.link)
    }
}

impl Speaker {
    pub(super) fn new(link: Arc<Link>, shared: Arc<Shared>) -> Self {
        Self { link, shared }
    }

    /// Appends what is to be said until the log is followed no more: on a thread of its own.
    pub fn run(self) {
        while self.step() {
            let mut inner = self.shared.core.lock();
            if !inner.ended {
                self.shared.wake.wait_for(&mut inner, LOOK_EVERY);
            }
        }
    }

    /// Appends what is to be said now, if anything; waits as long as Kafka does. Returns whether the
    /// log is still followed.
    pub fn step(&self) -> bool {
        let (act, value) = {
            let mut inner = self.shared.core.lock();
            if inner.ended || self.link.retry.cancel.is_cancelled() {
                return false;
            }
            let now_ns = self.shared.clock.boottime_ns();
            let ready = self.shared.ready(&inner);
            let act = inner.core.tick(now_ns, ready);
            let value = match act {
                Act::Nothing => return true,
                Act::Hello(nonce) => {
                    let myself = inner.core.myself(inner.applied, ready, now_ns);
                    let node = &self.shared.node;
                    let hello = inner.core.presence().hello(nonce, node, myself);
                    self.shared.tell(&inner, now_ns);
                    Envelope::Hello(hello).encode()
                }
                Act::Claim(claim) => {
                    let why = inner.core.why(&claim, now_ns);
                    tracing::info!(after = claim.after, why, "this node claims the log");
                    self.claim(claim)
                }
            };
            (act, value)
        };
        let Some(value) = value else {
            tracing::warn!("the addresses of this node are too long: no node hears of it");
            return true;
        };
        let link = &self.link;
        if let Err(error) = link.kafka.append(&link.partition, &value) {
            match error {
                KafkaError::Refused(_) => tracing::warn!(%error, "a follower cannot say anything"),
                _ => tracing::debug!(%error, "what a follower says may not be in the log"),
            }
            self.shared.core.lock().core.failed(act);
        }
        true
    }

    /// Says that the node leaves, and nothing more from then on; waits as long as Kafka does. It was
    /// said before, or the node owns the log, if it follows no more.
    pub fn leave(&self) {
        let hello = {
            let mut inner = self.shared.core.lock();
            if std::mem::replace(&mut inner.ended, true) {
                return;
            }
            let applied = inner.applied;
            inner.core.goodbye(&self.shared.node, applied)
        };
        self.shared.wake.notify_all();
        let link = &self.link;
        if let Some(value) = Envelope::Hello(hello).encode()
            && let Err(error) = link.kafka.append(&link.partition, &value)
        {
            tracing::debug!(%error, "others may take this node for a member for a while");
        }
    }

    fn claim(&self, claim: Claim) -> Option<Vec<u8>> {
        let Claim { nonce, after, n } = claim;
        let claimant = Claimant {
            nonce,
            ..self.shared.claimant.clone()
        };
        claim_value(after, n, &claimant).ok()
    }
}
