//! The tests of rules from outside, as one program.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod correct;
mod edges;
mod evaluate;
mod file;
mod mutations;
mod prometheus;
mod template;
mod unit;
