//! A measurement as it is kept in a file: raw runs, of which every page is made.
//!
//! The family says what was measured and with it what the file holds
//! ([`families`]). A file is written whole or not at all, so that what lies in the folder of
//! reports can always be read.
//!
//! Invariant: files that are committed stay readable. What a family gains has a default. Tested
//! by the pages, which are made of the committed files.

mod families;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use self::families::{
    DurableReport, FleetReport, InProcessReport, LateReport, LinesReport, MixedReport, NewReport,
    QueryReport, RecoverReport, Run, SendersReport, Settings, SizeReport, SoakReport, StagesReport,
    TargetInfo, WearReport,
};
use crate::error::{Doing, Result};
use crate::machine::Machine;

/// A measurement of any family.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "lowercase")]
pub(crate) enum Measurement {
    /// What a share of late samples costs.
    Late(LateReport),
    /// What the same lines cost many systems.
    Lines(LinesReport),
    /// What senders of files cost, log off and on.
    Senders(SendersReport),
    /// What the log costs.
    Durable(DurableReport),
    /// How fast a killed server comes back.
    Recover(RecoverReport),
    /// What reads cost.
    Query(QueryReport),
    /// What the engine takes without sockets.
    InProcess(InProcessReport),
    /// What new series cost beside known ones.
    New(NewReport),
    /// What a large fleet of sensors takes.
    Fleet(FleetReport),
    /// What is written for what is kept.
    Wear(WearReport),
    /// What reads cost beside writes.
    Mixed(MixedReport),
    /// What real measurements take on disk.
    Size(SizeReport),
    /// Where the time of a write goes.
    Stages(StagesReport),
    /// A mixed load through stops and kills.
    Soak(SoakReport),
}

impl Measurement {
    /// Where it ran.
    pub(crate) fn machine(&self) -> &Machine {
        match self {
            Measurement::Late(report) => &report.machine,
            Measurement::Lines(report) => &report.machine,
            Measurement::Senders(report) => &report.machine,
            Measurement::Durable(report) => &report.machine,
            Measurement::Recover(report) => &report.machine,
            Measurement::Query(report) => &report.machine,
            Measurement::InProcess(report) => &report.machine,
            Measurement::New(report) => &report.machine,
            Measurement::Fleet(report) => &report.machine,
            Measurement::Wear(report) => &report.machine,
            Measurement::Mixed(report) => &report.machine,
            Measurement::Size(report) => &report.machine,
            Measurement::Stages(report) => &report.machine,
            Measurement::Soak(report) => &report.machine,
        }
    }

    /// What is to be said of peers that could not be measured.
    pub(crate) fn absent(&self) -> Vec<String> {
        match self {
            Measurement::Late(report) => report.absent.beside(&report.runs),
            Measurement::Lines(report) => report.absent.beside(&report.runs),
            Measurement::Query(report) => report.absent.beside(&report.runs),
            Measurement::Durable(report) => report.absent.beside(&report.rates),
            _ => Vec::new(),
        }
    }
}

/// Reads a measurement.
///
/// # Errors
/// When the file is missing or no measurement.
pub(crate) fn read(path: &Path) -> Result<Measurement> {
    let doing = format!("read {}", path.display());
    let text = std::fs::read_to_string(path).doing(&doing)?;
    serde_json::from_str(&text).doing(&doing)
}

/// Writes a measurement if there is a file to write it to.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn save(measurement: &Measurement, path: Option<&Path>) -> Result<()> {
    path.map_or(Ok(()), |path| write(measurement, path))
}

/// Writes a measurement, whole or not at all; makes the folder where it is missing.
///
/// # Errors
/// When the file cannot be written.
fn write(measurement: &Measurement, path: &Path) -> Result<()> {
    let doing = format!("write {}", path.display());
    let mut text = serde_json::to_string_pretty(measurement).doing(&doing)?;
    text.push('\n');
    let draft = path.with_extension("json.part");
    std::fs::write(&draft, text).doing(&doing)?;
    std::fs::rename(&draft, path).doing(&doing)
}
