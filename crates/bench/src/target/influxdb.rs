//! InfluxDB 1, which made the line protocol.

use std::time::Duration;

use serde_json::Value;

use super::store::{Sender, Store};
use super::{Process, peer};
use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::Http;
use crate::lines::{CpuLoad, FIELDS};
use crate::protocol::Protocol;

/// The script, within the project.
const SCRIPT: &str = "bench/peers/influxdb.sh";
const DATABASE: &str = "benchmark";

/// A running one.
#[derive(Debug)]
pub(crate) struct InfluxDb {
    address: Address,
    http: Http,
}

/// Starts it; returns its settings too.
///
/// # Errors
/// When it cannot be installed or does not come up.
pub(super) fn start() -> Result<(Process, String)> {
    let process = peer::start(SCRIPT, |http| http.get("/ping", &[]).is_ok())?;
    let settings = "index-version=tsi1 cache-snapshot-write-cold-duration=10s store-enabled=false";
    Ok((process, settings.to_owned()))
}

impl InfluxDb {
    /// The one at `address`.
    pub(super) fn at(address: &Address) -> Self {
        InfluxDb {
            address: address.clone(),
            http: Http::new(address),
        }
    }

    fn ask(&self, question: &str) -> Result<Value> {
        let query = [("db", DATABASE), ("epoch", "ms"), ("q", question)];
        let answer = self.http.get_json("/query", &query)?;
        match answer["results"][0]["error"].as_str() {
            Some(error) => Err(Error::new(format!("{question} was answered: {error}"))),
            None => Ok(answer["results"][0]["series"][0]["values"].clone()),
        }
    }
}

impl Store for InfluxDb {
    fn version(&self) -> Result<String> {
        let shown = self.http.get_json("/query", &[("q", "SHOW DIAGNOSTICS")])?;
        let all = shown["results"][0]["series"].as_array();
        let build = all.and_then(|all| all.iter().find(|one| one["name"] == "build"));
        let version = build.and_then(|build| {
            let columns = build["columns"].as_array()?;
            let at = columns.iter().position(|name| name == "Version")?;
            build["values"][0][at].as_str()
        });
        Ok(format!("InfluxDB {}", version.unwrap_or("1")))
    }

    fn prepare(&self) -> Result<()> {
        let create = format!("/query?q=CREATE%20DATABASE%20{DATABASE}");
        self.http.post(&create, &[], &[])
    }

    fn protocol(&self) -> Protocol {
        Protocol::Influx
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let http = Http::new(&self.address);
        let path = format!("/write?db={DATABASE}");
        Ok(Box::new(peer::Poster::new(http, &path, &[])))
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    /// It empties its cache ten seconds after the last write, and compacts then.
    fn rest(&self) -> Duration {
        Duration::from_secs(15)
    }

    fn values(&self, _: &CpuLoad) -> Result<u64> {
        let counts = FIELDS.map(|field| format!("count({field})"));
        let rows = self.ask(&format!("SELECT {} FROM cpu", counts.join(",")))?;
        // The first column is a time.
        let counts = rows[0].as_array().into_iter().flatten().skip(1);
        Ok(counts.filter_map(Value::as_u64).sum())
    }

    fn series(&self, _: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>> {
        let name = FIELDS[field];
        let question = format!("SELECT {name} FROM cpu WHERE hostname='host_{host}'");
        let rows = self.ask(&question)?;
        peer::samples(&rows).ok_or_else(|| Error::new(format!("{question} has no rows")))
    }
}
