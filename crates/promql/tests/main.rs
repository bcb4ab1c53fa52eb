//! The tests of the language from outside, as one program.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod beside_prometheus;
mod evaluation;
mod oracle;
mod reads;
mod syntax;
