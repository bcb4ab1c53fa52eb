//! Starting the peer: Redis with RedisTimeSeries, through `bench/peers/redistimeseries.sh`.

use std::time::Duration;

use super::{Process, peer};
use crate::address::{Address, free_port};
use crate::error::Result;

/// The script, within the project.
const SCRIPT: &str = "bench/peers/redistimeseries.sh";
/// Duplicate policy of series that are made without one.
const POLICY: &str = "LAST";
/// Redis comes up within a second; a loaded machine may take longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts it on a free port with an empty directory, with the append-only file on or off;
/// returns its settings too.
///
/// # Errors
/// When it cannot be installed or does not come up.
pub(super) fn start(append_only: bool) -> Result<(Process, String)> {
    let mut command = peer::install(SCRIPT)?;
    let port = free_port()?;
    let mut process = Process::prepare(Address::loopback(port))?;
    command
        .arg("run")
        .arg(port.to_string())
        .env("PEER_DIR", process.data())
        .env("DUP", POLICY)
        .env("AOF", if append_only { "1" } else { "0" });
    process.start(&mut command, PATIENCE)?;
    let settings = if append_only {
        "--save '' --appendonly yes --appendfsync everysec"
    } else {
        "--save '' --appendonly no"
    };
    let settings = format!("{settings} --loadmodule redistimeseries.so DUPLICATE_POLICY {POLICY}");
    Ok((process, settings))
}
