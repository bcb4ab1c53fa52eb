//! Moving series between servers and files: `latewood import`, `latewood export`.
//!
//! A separate crate, because the server does not need its dependencies (clients, CSV, progress
//! bars). It does not link the engine: both ends are running servers, so every write passes the
//! same checks as that of any client.
//!
//! Invariants: nothing is deleted on the target without `--delete`; a series that existed on the
//! target is not changed without `--overwrite`; anything that could not be copied is reported and
//! changes the exit status.
//!
//! Unit tests cover the parts that need no server (the state file, the CSV format);
//! `crates/server/tests/migrate` tests against a real RedisTimeSeries with concurrent writers.

mod args;
mod blocks;
mod connect;
mod csv_file;
mod error;
mod http;
mod influx_file;
mod input;
mod keys;
mod other_port;
mod outcome;
mod output;
mod parquet_file;
mod progress;
mod rate;
mod rdb_file;
mod redis_import;
mod samples;
mod series;
mod value;

#[cfg(any(fuzzing, feature = "fuzzing"))]
pub use blocks::fuzz::fuzz_prometheus;
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub use csv_file::fuzz::fuzz_csv;
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub use influx_file::fuzz::fuzz_influx;

pub use args::{
    CsvExport, CsvImport, Export, Import, InfluxImport, Login, ParquetExport, PrometheusImport,
    RdbImport, RedisImport, Target,
};

use outcome::Outcome;
use std::process::ExitCode;

/// Exit status of a run that finished but did not copy everything.
const INCOMPLETE: u8 = 3;

/// Runs `latewood import`. Exit status: 0 everything was copied, 1 stopped by an error, 3
/// finished, but not everything was copied.
pub fn import(import: Import) -> ExitCode {
    finish(match import {
        Import::Redis(options) => redis_import::run(&options),
        Import::Rdb(options) => rdb_file::run(&options),
        Import::Csv(options) => csv_file::import(&options),
        Import::Influx(options) => influx_file::run(&options),
        Import::Prometheus(options) => blocks::run(&options),
    })
}

/// Runs `latewood export`: exit status as for [`import`].
pub fn export(export: Export) -> ExitCode {
    finish(match export {
        Export::Csv(options) => csv_file::export(&options),
        Export::Parquet(options) => parquet_file::run(&options),
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
