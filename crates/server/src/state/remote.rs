//! What a database beyond this machine tells of its log in Kafka and of its checkpoints.
//!
//! The thread that saves checkpoints notes how they end; INFO, `/metrics` and the status API show
//! it. SAVE and BGSAVE ask it for one. Tested by `tests/kafka/` with brokers, and below.

use latewood_cluster::checkpoint::Uploads;
use latewood_cluster::remote::TabletLog;
use latewood_cluster::tablet::{Cache, CacheFigures, CheckpointFigures, Tablet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The log and the checkpoints of a database.
#[derive(Debug)]
pub(crate) struct Remote {
    log: Arc<TabletLog>,
    uploads: Arc<Uploads>,
    epoch: u64,
    /// The blocks on this machine.
    pub(crate) cache: Cache,
    /// Those who wait for a checkpoint watch it.
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    checkpoints: Checkpoints,
    /// How often one was asked for, and how many of these were answered by one that began later.
    asked: u64,
    answered: u64,
    has_ended: bool,
}

/// What became of checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoints {
    /// Saved since the start.
    pub(crate) saved: u64,
    /// Failed since the start.
    pub(crate) failed: u64,
    /// Why the last one failed; `None` where it did not.
    pub(crate) last_error: Option<String>,
    /// How long the last one took that was saved since the start, milliseconds.
    pub(crate) last_ms: u64,
    /// The newest that counts, whoever saved it.
    pub(crate) newest: Option<CheckpointFigures>,
}

/// How things are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteFigures {
    /// The epoch in which this process owns the log.
    pub(crate) epoch: u64,
    /// Bytes of the log that wait for Kafka.
    pub(crate) queued_bytes: u64,
    /// Bytes of the log in Kafka that no checkpoint holds.
    pub(crate) log_bytes: u64,
    /// Reads need a lease, and there is none.
    pub(crate) lacks_lease: bool,
    /// Bytes of the log written to Kafka since the start.
    pub(crate) written_bytes: u64,
    /// Bytes uploaded for checkpoints since the start.
    pub(crate) uploaded_bytes: u64,
    /// Bytes of the log after which a checkpoint is due.
    pub(crate) interval_bytes: u64,
    pub(crate) checkpoints: Checkpoints,
    /// The blocks on this machine.
    pub(crate) cache: CacheFigures,
}

impl Remote {
    /// Of a tablet that was opened now.
    pub(crate) fn new(tablet: &Tablet) -> Self {
        Self {
            log: Arc::clone(tablet.log()),
            uploads: Arc::clone(tablet.uploads()),
            epoch: tablet.epoch(),
            cache: tablet.cache(),
            state: watch::Sender::new(State {
                checkpoints: Checkpoints {
                    newest: tablet.newest(),
                    ..Checkpoints::default()
                },
                ..State::default()
            }),
        }
    }

    /// Asks for a checkpoint that begins later, without waiting for it: the number of the question.
    pub(crate) fn ask(&self) -> u64 {
        let mut mine = 0;
        self.state.send_modify(|state| {
            state.asked += 1;
            mine = state.asked;
        });
        mine
    }

    /// Comes when the question `mine` is answered, or never will be.
    pub(crate) fn answered(&self, mine: u64) -> impl Future<Output = ()> + Send + use<> {
        let mut state = self.state.subscribe();
        async move {
            let is_over = |state: &State| state.answered >= mine || state.has_ended;
            // It outlives whoever waits.
            let _ = state.wait_for(is_over).await;
        }
    }

    /// What became of the question `mine`.
    ///
    /// # Errors
    /// Why there is no checkpoint.
    pub(crate) fn outcome(&self, mine: u64) -> Result<(), String> {
        let state = self.state.borrow();
        if state.answered < mine {
            return Err("the server stops".to_owned());
        }
        state.checkpoints.last_error.clone().map_or(Ok(()), Err)
    }

    /// The number of the newest question that has no answer.
    pub(crate) fn wanted(&self) -> Option<u64> {
        let state = self.state.borrow();
        (state.answered < state.asked).then_some(state.asked)
    }

    /// Takes note of a checkpoint that was tried, begun after the question of number `asked`.
    pub(crate) fn note(
        &self,
        asked: Option<u64>,
        took: Duration,
        result: Result<CheckpointFigures, String>,
    ) {
        self.state.send_modify(|state| {
            state.checkpoints.note(took, result);
            state.answered = state.answered.max(asked.unwrap_or(0));
        });
    }

    /// No checkpoint is saved any more.
    pub(crate) fn end(&self) {
        self.state.send_modify(|state| state.has_ended = true);
    }

    /// How things are now.
    pub(crate) fn figures(&self) -> RemoteFigures {
        RemoteFigures {
            epoch: self.epoch,
            queued_bytes: self.log.queued_bytes(),
            log_bytes: self.log.log_bytes(),
            lacks_lease: (self.log.lease()).is_some_and(|lease| !lease.covers(lease.now_ns())),
            written_bytes: self.log.written_bytes(),
            uploaded_bytes: self.uploads.total_bytes(),
            interval_bytes: self.uploads.interval_bytes(self.log.bounds().log_bytes),
            checkpoints: self.state.borrow().checkpoints.clone(),
            cache: self.cache.figures(),
        }
    }
}

impl Checkpoints {
    fn note(&mut self, took: Duration, result: Result<CheckpointFigures, String>) {
        match result {
            Ok(figures) => {
                self.saved += 1;
                self.last_error = None;
                self.last_ms = took.as_millis() as u64;
                self.newest = Some(figures);
            }
            Err(error) => {
                self.failed += 1;
                self.last_error = Some(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_the_checkpoint_before_and_a_success_ends_it() {
        let mut checkpoints = Checkpoints::default();
        let figures = CheckpointFigures {
            made_at_ms: 5,
            bytes: 7,
            files: 2,
        };
        checkpoints.note(Duration::from_millis(3), Ok(figures));
        checkpoints.note(Duration::from_millis(9), Err("no space".to_owned()));
        let failed = Checkpoints {
            saved: 1,
            failed: 1,
            last_error: Some("no space".to_owned()),
            last_ms: 3,
            newest: Some(figures),
        };
        assert_eq!(checkpoints, failed);
        checkpoints.note(Duration::from_millis(4), Ok(figures));
        assert_eq!((checkpoints.saved, checkpoints.last_error), (2, None));
    }
}
