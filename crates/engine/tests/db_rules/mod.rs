//! Compaction rules as callers of `Db` see them.

mod backfill;
mod chains;
mod damage;
mod damaged_chain;
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
