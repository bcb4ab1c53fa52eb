//! What the file of a measurement holds, family by family.
//!
//! Each names its machine, without which its figures mean nothing. What one run holds stands beside
//! the code that measures it. Tested by the pages of the committed files.

use serde::{Deserialize, Serialize};

use crate::absent::{Absent, OfTarget};
use crate::durable::{SyncRun, TailRun};
use crate::fleet::{FleetRun, LoadArgs, Plan};
use crate::inprocess::InProcessRun;
use crate::late::{Cell, Measured};
use crate::lines::LinesRun;
use crate::machine::Machine;
use crate::mixed::MixedRun;
use crate::new::{BeforeRun, GrowRun, IdleSeriesRun, NewRun, WireRun};
use crate::query::{IdleRun, QueryRun, Sizes};
use crate::recover::Recovery;
use crate::senders::SendersRun;
use crate::size::{SeriesSize, Stored};
use crate::soak::SoakRound;
use crate::stages::{SamplingCost, StagesRun};
use crate::wear::WearRun;

/// All runs of a late benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LateReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// What is the same for all runs.
    pub(crate) settings: Settings,
    /// The servers.
    pub(crate) targets: Vec<TargetInfo>,
    /// Peers that could not be measured.
    #[serde(default, skip_serializing_if = "Absent::is_empty")]
    pub(crate) absent: Absent,
    /// Every run, in the order they were made.
    pub(crate) runs: Vec<Run>,
}

/// All runs of a lines benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinesReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// Hosts, each with ten tags and ten fields.
    pub(crate) hosts: u32,
    /// Lines of all hosts.
    pub(crate) lines: u32,
    /// Lines of a batch.
    pub(crate) batch: usize,
    /// The servers.
    pub(crate) targets: Vec<TargetInfo>,
    /// Peers that could not be measured.
    #[serde(default, skip_serializing_if = "Absent::is_empty")]
    pub(crate) absent: Absent,
    /// Every run, in the order they were made.
    pub(crate) runs: Vec<LinesRun>,
}

/// All runs of a senders benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SendersReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// Senders at a time, each with a file of its own.
    pub(crate) senders: usize,
    /// What the files hold, all together.
    pub(crate) plan: Plan,
    /// Whether they are compressed.
    pub(crate) gzip: bool,
    /// Bytes of all files.
    pub(crate) file_bytes: u64,
    /// Every run, in the order they were made.
    pub(crate) runs: Vec<SendersRun>,
}

/// All runs of a durable benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DurableReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// The servers of the throughput runs.
    #[serde(default)]
    pub(crate) targets: Vec<TargetInfo>,
    /// Peers that could not be measured.
    #[serde(default, skip_serializing_if = "Absent::is_empty")]
    pub(crate) absent: Absent,
    /// Throughput runs.
    pub(crate) rates: Vec<Run>,
    /// Long runs with all that goes on behind the writers.
    #[serde(default)]
    pub(crate) tails: Vec<TailRun>,
    /// Latency runs under `sync`.
    pub(crate) syncs: Vec<SyncRun>,
}

/// All runs of a recovery benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecoverReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// How the server was started.
    pub(crate) settings: String,
    /// What was sent.
    pub(crate) plan: Plan,
    /// Whether everything was in blocks before the kill.
    pub(crate) flushed: bool,
    /// Every run.
    pub(crate) runs: Vec<Recovery>,
}

/// All rounds of a query benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct QueryReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// How much data was asked about.
    pub(crate) sizes: Sizes,
    /// Rounds of every question.
    pub(crate) repeats: usize,
    /// The servers.
    pub(crate) targets: Vec<TargetInfo>,
    /// Peers that could not be measured.
    #[serde(default, skip_serializing_if = "Absent::is_empty")]
    pub(crate) absent: Absent,
    /// Every round, in the order they were made.
    pub(crate) runs: Vec<QueryRun>,
    /// What idle series cost.
    pub(crate) idle: Vec<IdleRun>,
}

/// All runs of an in-process benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InProcessReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// Series each thread wrote to.
    pub(crate) series: u64,
    /// Every run.
    pub(crate) runs: Vec<InProcessRun>,
}

/// All runs of a new-series benchmark; parts that were left out are empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NewReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// Series of a run in process, and of idle ones.
    pub(crate) series: u64,
    /// In process.
    pub(crate) runs: Vec<NewRun>,
    /// Every write timed while a database grows.
    pub(crate) grown: Vec<GrowRun>,
    /// Memory of series without samples.
    pub(crate) idle: Vec<IdleSeriesRun>,
    /// Over the wire.
    pub(crate) wire: Vec<WireRun>,
    /// A block for each new series, and without.
    pub(crate) before: Vec<BeforeRun>,
}

/// All runs of a fleet benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FleetReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// What was sent.
    pub(crate) plan: Plan,
    /// How it was sent, and the budget of the server.
    pub(crate) load: LoadArgs,
    /// That budget in words, of the server and of the engine in process alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<String>,
    /// Every run.
    pub(crate) runs: Vec<FleetRun>,
}

/// All runs of a wear benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WearReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// How the server was started.
    pub(crate) settings: String,
    /// Every run.
    pub(crate) runs: Vec<WearRun>,
}

/// All figures of a mixed benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MixedReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// How the server was started.
    pub(crate) settings: String,
    /// What was sent; half of it before the first question.
    pub(crate) plan: Plan,
    /// Samples a second that were sent beside the questions; 0 for no limit.
    pub(crate) rate: f64,
    /// Every round.
    pub(crate) runs: Vec<MixedRun>,
}

/// Sizes of real measurements.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SizeReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// How the server was started.
    pub(crate) settings: String,
    /// Every series.
    pub(crate) series: Vec<SeriesSize>,
    /// All of them in a server.
    pub(crate) stored: Stored,
}

/// All runs of the stages benchmark; parts that were left out are empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StagesReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// New and known series.
    pub(crate) series: u64,
    /// Labels of each.
    pub(crate) labels: usize,
    /// One batch in so many was timed for the tables.
    pub(crate) sampling: u32,
    /// Every run.
    pub(crate) runs: Vec<StagesRun>,
    /// What the timing costs.
    pub(crate) costs: Vec<SamplingCost>,
}

/// All rounds of a soak.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SoakReport {
    /// Where it ran.
    pub(crate) machine: Machine,
    /// How the server was started.
    pub(crate) settings: String,
    /// Series that live through the whole soak.
    pub(crate) series: u64,
    /// Series that come and go in each round.
    pub(crate) passing: u64,
    /// Every round.
    pub(crate) rounds: Vec<SoakRound>,
}

/// Knobs that do not vary within a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Runs of each cell.
    pub(crate) repeats: usize,
    /// Samples of each series sent in order before the warm-up.
    #[serde(default)]
    pub(crate) preload: u64,
    /// Samples of each series before the clock starts.
    pub(crate) warmup: u64,
    /// Seed of everything random.
    pub(crate) seed: u64,
    /// Samples per second over all connections; 0 for no limit.
    pub(crate) rate: f64,
    /// Threads of the load generator.
    pub(crate) client_threads: usize,
}

/// A server and how it was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetInfo {
    /// Its name in the report.
    pub(crate) name: String,
    /// Its version, as it tells it.
    pub(crate) version: String,
    /// The settings it was started with.
    pub(crate) settings: String,
}

/// One run of one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Name of the server.
    pub(crate) target: String,
    /// Which repeat, from 0.
    pub(crate) repeat: usize,
    /// The setting of every knob.
    pub(crate) cell: Cell,
    /// What came out.
    pub(crate) measured: Measured,
}

impl OfTarget for Run {
    fn target(&self) -> &str {
        &self.target
    }
}

impl TargetInfo {
    /// Notes the server among `targets`, once.
    pub(crate) fn note_in(self, targets: &mut Vec<TargetInfo>) {
        if !targets.contains(&self) {
            targets.push(self);
        }
    }
}
