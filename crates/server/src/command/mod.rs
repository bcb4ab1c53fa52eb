//! The commands of the Redis port.
//!
//! One file per command or close family: its grammar in the doc comment, then
//! parse, apply, reply. From top to bottom: `catalogue` and `registry` (the table
//! of commands), `dispatch` with `admit`, the commands, what several of them read
//! or write alike (`rows`, `range_options`), `call`, `work`, `spec`, `fault`, `args`.

mod acl;
mod add;
mod admit;
mod alter;
mod args;
mod arguments;
mod auth;
mod call;
mod catalogue;
mod client;
mod cluster;
mod command_info;
mod config;
mod connection;
mod copy;
mod create;
mod database;
mod delete;
mod dispatch;
mod docs;
mod dump;
mod exact;
mod expire;
mod facts;
mod fault;
mod filter;
mod get;
mod increment;
mod info;
mod keys;
mod keyspace;
mod label_options;
mod latency;
mod latewood;
mod madd;
mod memory;
mod merge;
mod mget;
mod module;
mod monitor;
mod mrange;
mod nrange;
mod object;
mod permission;
mod persistence;
mod pubsub;
mod query_index;
mod query_labels;
mod range;
mod range_options;
mod read;
mod registry;
mod rename;
mod reply_limit;
mod role;
mod roles;
mod rows;
mod rules;
mod scan;
mod series_info;
mod series_options;
mod slowlog;
mod spec;
mod time;
mod transaction;
mod words;
mod work;

#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) use acl::fuzz;
pub(crate) use add::sample;
pub(crate) use args::Args;
pub(crate) use catalogue::CATALOGUE;
pub(crate) use fault::{engine_text, refusal_text};
pub(crate) use merge::fields as merge_fields;
pub(crate) use registry::{all_commands, exec_awaits_rows, execute};
pub(crate) use roles::lost;
pub(crate) use work::LOOP_SAMPLES_MAX;
