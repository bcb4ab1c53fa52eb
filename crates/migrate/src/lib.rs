//! Moving series between servers and files: `latewood import`, `latewood export`.
//!
//! A crate of its own, because its dependencies (clients, CSV, progress bars) are no
//! business of the server's. It links no engine: both ends are running servers spoken to over
//! their sockets, so whatever is written here went through the checks every client's writes
//! go through.
//!
//! Invariants: nothing is deleted on the target unless `--delete` was given; a series that was
//! on the target before is left alone unless `--overwrite` was; what could not be carried over
//! is named and changes the exit status.
//!
//! Tested here as far as no server is needed (merging, the state file, the CSV format) and in
//! `crates/server/tests/migrate` against a real RedisTimeSeries with concurrent writers.

mod args;
mod connect;
mod csv_file;
mod error;
mod influx_file;
mod keys;
mod other_port;
mod outcome;
mod progress;
mod rate;
mod redis_import;
mod samples;
mod series;
mod value;

pub use args::{CsvExport, CsvImport, Export, Import, InfluxImport, Login, RedisImport, Target};

use outcome::Outcome;
use std::process::ExitCode;

/// Exit status of a run that ended in order but left something behind.
const INCOMPLETE: u8 = 3;

/// Runs `latewood import`: 0 when everything was carried over, 1 when it stopped with an
/// error, 3 when it ended and named what it left behind.
pub fn import(import: Import) -> ExitCode {
    finish(match import {
        Import::Redis(options) => redis_import::run(&options),
        Import::Csv(options) => csv_file::import(&options),
        Import::Influx(options) => influx_file::run(&options),
    })
}

/// Runs `latewood export`: exit status as for [`import`].
pub fn export(export: Export) -> ExitCode {
    finish(match export {
        Export::Csv(options) => csv_file::export(&options),
    })
}

fn finish(outcome: error::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Complete) => ExitCode::SUCCESS,
        Ok(Outcome::Incomplete) => ExitCode::from(INCOMPLETE),
        Err(reason) => {
            eprintln!("latewood: {reason}");
            ExitCode::FAILURE
        }
    }
}
