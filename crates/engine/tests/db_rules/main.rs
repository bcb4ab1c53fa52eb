//! Compaction rules as callers of `Db` see them.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod damage;
#[path = "../db_support/mod.rs"]
mod db_support;
mod ends;
mod facts;
mod floor;
mod lost;
mod naive;
mod nan;
mod policy;
mod random;
mod replayed;
mod states;
mod support;
mod twins;
