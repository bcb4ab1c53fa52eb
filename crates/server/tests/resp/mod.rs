//! The server as clients meet it: the built binary, a real socket, exact bytes.
//!
//! Expected replies were taken from RedisTimeSeries 1.12 on Redis 7.4, but for
//! what `docs/compatibility.md` lists as different.

mod acl;
mod acl_refusals;
mod admin;
mod client_state;
mod clients;
mod clock;
mod copies;
mod damage;
mod delete_matching;
mod durability;
mod events;
mod fast_path;
mod full_disk;
mod held;
mod keyspace;
mod lifetime;
mod limits;
mod loading;
mod long_copies;
mod long_reads;
mod long_reads_users;
mod long_replies;
mod many;
mod memory;
mod observe;
mod protocol;
mod pubsub;
mod races;
mod slow_readers;
mod small_memory;
mod transaction;
mod ts_change;
mod ts_compatibility;
mod ts_info;
mod ts_policy;
mod ts_range;
mod ts_read;
mod ts_rules;
mod ts_write;
