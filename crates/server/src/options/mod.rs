//! The options of `latewood serve`: one row of a table each.
//!
//! A row makes the flag, the key in the configuration file, the environment
//! variable, the text of `--help`, the parameter of CONFIG, and its line in
//! `docs/operations.md`. [`resolve`] makes the settings of what is given.
//!
//! Tested by `tests.rs` and by `tests/config.rs` on the real process.

mod cluster;
mod given;
mod kind;
mod nodes;
#[cfg(test)]
mod page;
mod promql;
mod range;
mod row;
mod rules;
mod senders;
mod server;
mod storage;
// Fuzz targets have users of all commands.
#[cfg_attr(any(fuzzing, feature = "fuzzing"), allow(dead_code))]
#[cfg(any(test, fuzzing, feature = "fuzzing"))]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tls;

pub(crate) use given::{Given, GivenLog, changed, resolve, unknown_variables};
pub(crate) use kind::Kind;
pub(crate) use row::{Apply, Row};

/// Every option, in the order of `--help`.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    let parts = [
        storage::ROWS,
        cluster::ROWS,
        nodes::ROWS,
        server::ROWS,
        senders::ROWS,
        promql::ROWS,
        rules::ROWS,
        tls::ROWS,
    ];
    parts.into_iter().flatten()
}

/// Those of a log in Kafka.
fn of_log() -> impl Iterator<Item = &'static Row> {
    let of_files = ["objects", "cache-size"];
    let rows = cluster::ROWS.iter();
    rows.filter(move |row| !of_files.contains(&row.name()))
}
