//! The tests of the codings from outside, as one program.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod common;
mod damage;
mod frames;
mod golden;
