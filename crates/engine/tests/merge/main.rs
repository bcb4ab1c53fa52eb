//! Merging through the database, on a simulated disk without threads.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod clock;
#[path = "../db_support/mod.rs"]
mod db_support;
mod disk;
mod faults;
mod histories;
mod hooked;
mod meanwhile;
mod random;
mod threads;
mod world;
