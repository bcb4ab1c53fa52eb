//! Rows of recording rules that are computed again once samples change that they were made of.
//!
//! ```text
//! plan    which rules are corrected, who reads what, in which order
//! begin   before a live evaluation: the horizon of its rules, steps that were missed
//! work    what changed -> steps, whole or of groups; which of them are final
//! pace    how many steps are computed at a time
//! rows    what the rule gives at steps, against what is stored: the comparison
//! write   rows and gaps, beside the live evaluation
//! turn    one pass of one rule: drain, compare, write, done
//! run     the thread: pass after pass, with rests; whoever waits for fresh rows first
//! ask     verify, fresh rows and what is told of each rule
//! backfill   steps that are asked for, and how that is cancelled
//! ```
//!
//! Invariants:
//! 1. A reader's horizon is logged before its rule reads, and so is what it missed or failed at: a
//!    step up to the horizon has its rows, or is pending.
//! 2. What was drained is done only once all its rows are written.
//! 3. The newest step that is corrected is never newer than the last one that the live evaluation
//!    has ended: a change that it did not see is not overwritten by rows that it still has to write.
//! 4. Steps before `since` of a reader are never touched.
//!
//! One thread computes. Locks: a group's `run` before those here, of which `state` is never held
//! while the database is used. Tested by `tests`.

mod ask;
mod backfill;
mod begin;
pub(super) mod faults;
mod pace;
pub(super) mod plan;
mod rows;
mod run;
mod sound;
pub(super) mod state;
pub(super) mod turn;
mod work;
mod write;

pub(crate) use ask::{Chosen, Found, Status, Verifying};
