//! Prometheus, which takes remote writes.

use std::time::Duration;

use super::store::{Sender, Store};
use super::{Process, peer, promql};
use crate::address::Address;
use crate::error::Result;
use crate::http::Http;
use crate::lines::CpuLoad;
use crate::protocol::{PROMETHEUS_HEADERS, Protocol};

/// The script, within the project.
const SCRIPT: &str = "bench/peers/prometheus.sh";

/// A running one.
#[derive(Debug)]
pub(crate) struct Prometheus {
    address: Address,
    http: Http,
}

/// Starts it; returns its settings too.
///
/// # Errors
/// When it cannot be installed or does not come up.
pub(super) fn start() -> Result<(Process, String)> {
    let process = peer::start(SCRIPT, |http| http.get("/-/ready", &[]).is_ok())?;
    let settings = "out_of_order_time_window: 1000d --storage.tsdb.retention.time=100y";
    Ok((process, settings.to_owned()))
}

impl Prometheus {
    /// The one at `address`.
    pub(super) fn at(address: &Address) -> Self {
        Prometheus {
            address: address.clone(),
            http: Http::new(address),
        }
    }
}

impl Store for Prometheus {
    fn version(&self) -> Result<String> {
        let about = self.http.get_json("/api/v1/status/buildinfo", &[])?;
        let version = about["data"]["version"].as_str().unwrap_or_default();
        Ok(format!("Prometheus {version}"))
    }

    fn protocol(&self) -> Protocol {
        Protocol::Prometheus
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let http = Http::new(&self.address);
        let poster = peer::Poster::new(http, "/api/v1/write", &PROMETHEUS_HEADERS);
        Ok(Box::new(poster))
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    /// It looks once a minute whether samples are to become blocks.
    fn rest(&self) -> Duration {
        Duration::from_secs(75)
    }

    fn values(&self, load: &CpuLoad) -> Result<u64> {
        promql::values(&self.http, load)
    }

    fn series(&self, load: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>> {
        promql::series(&self.http, load, host, field)
    }
}
