//! What the forms of lines have in common.

use std::collections::BTreeMap;

use latewood_wire::series_name::SeriesName;

use crate::base::error::{Doing, Result};
use crate::workload::hosts::{Batch, CpuLoad};

/// A batch as it goes over the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) commands: usize,
}

/// The key of the series with a metric and labels.
pub(crate) fn key<'a>(
    metric: &str,
    labels: impl Iterator<Item = (&'a &'a str, &'a String)>,
) -> Result<String> {
    let mut name = SeriesName::new();
    name.begin(metric.as_bytes());
    for (label, value) in labels {
        name.label(label.as_bytes(), value.as_bytes());
    }
    name.finish().doing(format!("name {metric}"))?;
    Ok(String::from_utf8_lossy(name.key()).into_owned())
}

/// The name of a field where a measurement is no thing of its own: as line protocol makes it.
pub(super) fn metric(field: &str) -> String {
    format!("cpu_{field}")
}

/// The lines of each host in a batch, in the order of their lines.
pub(super) fn by_host(load: &CpuLoad, batch: &Batch) -> BTreeMap<u32, Vec<u32>> {
    let mut by_host: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &line in &batch.lines {
        by_host.entry(load.host(line)).or_default().push(line);
    }
    by_host
}
