//! When groups are due.

use super::group::LiveGroup;
use super::owners::RuleId;
use latewood_promql::labels::Labels;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A clock that is set back by more than this has groups go on by it.
const BACK_MS: i64 = 60_000;

/// What is to be done, by when it is due.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) due: BinaryHeap<Reverse<Due>>,
    last: u64,
    /// By the clock.
    newest_ms: i64,
    has_stopped: bool,
}

pub(super) struct Due {
    pub(super) at_ms: i64,
    /// Of two at the same time, the one that was put first.
    pub(super) number: u64,
    pub(super) task: Task,
}

pub(super) enum Task {
    /// Evaluate a group at the time when this is due.
    Evaluate(Arc<LiveGroup>),
    /// Mark the series of a group that was removed at `at_ms`.
    Left {
        series: Vec<(RuleId, Labels)>,
        at_ms: i64,
    },
}

impl Turns {
    pub(super) fn put(&mut self, at_ms: i64, task: Task) {
        self.last += 1;
        let number = self.last;
        self.due.push(Reverse(Due {
            at_ms,
            number,
            task,
        }));
    }

    /// Sees what the clock says: where it was set back, groups do not wait until it is there again.
    pub(super) fn see(&mut self, now_ms: i64) {
        if now_ms >= self.newest_ms.saturating_sub(BACK_MS) {
            self.newest_ms = self.newest_ms.max(now_ms);
            return;
        }
        let back_ms = self.newest_ms - now_ms;
        tracing::warn!(back_ms, "the clock was set back: rules go on by it");
        self.newest_ms = now_ms;
        let due = std::mem::take(&mut self.due).into_iter();
        let due = due.map(|Reverse(mut due)| {
            if let Task::Evaluate(group) = &due.task {
                due.at_ms = due.at_ms.min(group.grid.after(now_ms));
            }
            Reverse(due)
        });
        self.due = due.collect();
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    pub(super) fn stop(&mut self) {
        self.has_stopped = true;
        self.due.clear();
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}
