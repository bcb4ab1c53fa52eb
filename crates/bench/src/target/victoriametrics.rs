//! VictoriaMetrics, which takes Influx line protocol.

use super::store::{Sender, Store};
use super::{Process, peer, promql};
use crate::address::Address;
use crate::error::Result;
use crate::http::Http;
use crate::lines::CpuLoad;
use crate::protocol::Protocol;

/// The script, within the project.
const SCRIPT: &str = "bench/peers/victoriametrics.sh";

/// A running one.
#[derive(Debug)]
pub(crate) struct VictoriaMetrics {
    address: Address,
    http: Http,
}

/// Starts it; returns its settings too.
///
/// # Errors
/// When it cannot be installed or does not come up.
pub(super) fn start() -> Result<(Process, String)> {
    let process = peer::start(SCRIPT, |http| http.get("/health", &[]).is_ok())?;
    Ok((process, "-retentionPeriod=100y".to_owned()))
}

impl VictoriaMetrics {
    /// The one at `address`.
    pub(super) fn at(address: &Address) -> Self {
        VictoriaMetrics {
            address: address.clone(),
            http: Http::new(address),
        }
    }
}

impl Store for VictoriaMetrics {
    fn version(&self) -> Result<String> {
        let metrics = self.http.get("/metrics", &[])?;
        let version = metrics
            .lines()
            .find(|line| line.starts_with("vm_app_version{"))
            .and_then(|line| line.split("short_version=\"").nth(1))
            .and_then(|rest| rest.split('"').next())
            .filter(|version| !version.is_empty());
        // Debian's build does not know its own version.
        let version = match version {
            Some(version) => version.to_owned(),
            None => peer::package_version("victoria-metrics")?,
        };
        Ok(format!("VictoriaMetrics {version}"))
    }

    fn protocol(&self) -> Protocol {
        Protocol::Influx
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let http = Http::new(&self.address);
        Ok(Box::new(peer::Poster::new(http, "/write", &[])))
    }

    fn drain(&self) -> Result<()> {
        self.http.get("/internal/force_flush", &[]).map(drop)
    }

    fn values(&self, load: &CpuLoad) -> Result<u64> {
        promql::values(&self.http, load)
    }

    fn series(&self, load: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>> {
        promql::series(&self.http, load, host, field)
    }
}
