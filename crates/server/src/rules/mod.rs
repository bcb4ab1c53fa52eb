//! Rule files, evaluated live: recording rules write series, alerts are told to Alertmanagers.
//!
//! ```text
//! files -> load     what is in them, or what is wrong
//!       -> group    a group and what its rules have done
//!       -> turns    threads take the group that is due first (grid) and evaluate it:
//!                   reader (series, rows), owners (a series has one rule), restore, notify
//!       -> delays   how late the samples come that rules read
//! ```
//!
//! A group is evaluated by one thread at a time, at the times of its grid; times that passed
//! meanwhile are missed and counted. Nobody waits for rules: while the disk is full, the log is
//! halted or memory is short they are not evaluated; queries, writers and Alertmanagers that hang
//! are bounded or on threads of their own. In a cluster the owner of the log evaluates and notifies,
//! nobody else; a new owner goes on from what is stored, as a server that starts.
//!
//! Files that are wrong change nothing: the rules that run stay. A group that a reload does not
//! change goes on as if there had been none.
//!
//! Tested by `tests/`, `tests/http/rules.rs` and `tests/clients/test_rules.py`.

mod corrections;
mod delays;
mod due;
mod figures;
mod gone;
mod grid;
mod group;
mod load;
mod manager;
mod notify;
mod owners;
mod reader;
mod restore;
mod stamp;
#[cfg(test)]
mod tests;
mod turns;

pub(crate) use corrections::{Chosen, Found, Status, Verifying};
pub(crate) use delays::ShownDelays;
pub(crate) use figures::{BOUNDS_S, Durations};
pub(crate) use group::{LiveGroup, Shown, ShownRule};
pub(crate) use manager::Manager;
pub(crate) use notify::{QUEUE_MAX, Target};
pub(crate) use stamp::rfc3339_ms;
pub(crate) use turns::THREADS;

/// No rules, for tests of the floors above.
#[cfg(any(test, fuzzing, feature = "fuzzing"))]
pub(crate) fn none() -> std::sync::Arc<Manager> {
    let (rules, promql) = (
        crate::state::Rules::default(),
        crate::state::Promql::default(),
    );
    let manager = Manager::new(&rules, &promql);
    std::sync::Arc::new(manager.expect("there are no files that could be wrong"))
}
