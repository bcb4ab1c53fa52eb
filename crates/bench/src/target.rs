//! The servers that are measured: one file each for those this program starts itself, and plain
//! addresses for those that run already.
//!
//! A started server is a child process on a free loopback port with a directory of its own. Both
//! go away when the value is dropped, whatever happened in between.

mod influxdb;
mod latewood;
mod peer;
mod process;
mod prometheus;
mod promql;
mod questdb;
mod redistimeseries;
mod resp;
mod store;
mod stream;
mod victoriametrics;

use clap::ValueEnum;

use self::influxdb::InfluxDb;
pub(crate) use self::latewood::{Durability, Latewood};
pub(crate) use self::process::{Process, Start};
use self::prometheus::Prometheus;
use self::questdb::QuestDb;
use self::resp::Resp;
pub(crate) use self::store::{Sender, Store};
pub(crate) use self::stream::LineStream;
use self::victoriametrics::VictoriaMetrics;
use crate::address::Address;
use crate::error::{Error, Result};
use crate::protocol::Protocol;

/// Systems this program can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// The `latewood` binary that lies beside this program, log at `interval`.
    Latewood,
    /// The same with `--wal off`.
    LatewoodNoWal,
    /// The same with `--durability none`.
    LatewoodNone,
    /// The same with `--durability sync`.
    LatewoodSync,
    /// Redis with RedisTimeSeries, persistence off.
    Redistimeseries,
    /// The same with the append-only file on, synced every second.
    RedistimeseriesAof,
    /// VictoriaMetrics, single node; for `lines`.
    Victoriametrics,
    /// InfluxDB 1; for `lines`.
    Influxdb,
    /// Prometheus, by remote write; for `lines`.
    Prometheus,
    /// QuestDB; for `lines`.
    Questdb,
}

/// A system under measurement.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Started for a run and stopped after it.
    Start {
        /// Which.
        system: System,
        /// Its `--memory`; only Latewood knows it.
        memory: Option<String>,
    },
    /// Somebody else's process.
    Running {
        /// What the report calls it.
        name: String,
        /// Where it listens.
        address: Address,
    },
}

/// A server that takes lines.
pub(crate) struct Served {
    /// How to speak to it.
    pub(crate) store: Box<dyn Store>,
    /// The server itself.
    pub(crate) process: Process,
    /// How it was started, for the report.
    pub(crate) settings: String,
}

/// A target that answers.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Where it listens.
    pub(crate) address: Address,
    /// How it was started, for the report.
    pub(crate) settings: String,
    process: Option<Process>,
}

impl System {
    /// What the report calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            System::Latewood => "Latewood",
            System::LatewoodNoWal => "Latewood, log off",
            System::LatewoodNone => "Latewood, none",
            System::LatewoodSync => "Latewood, sync",
            System::Redistimeseries => "RedisTimeSeries",
            System::RedistimeseriesAof => "RedisTimeSeries, AOF",
            System::Victoriametrics => "VictoriaMetrics",
            System::Influxdb => "InfluxDB 1",
            System::Prometheus => "Prometheus",
            System::Questdb => "QuestDB",
        }
    }

    /// How to run it, if it is a Latewood.
    fn latewood(self) -> Option<Latewood> {
        match self {
            System::Latewood => Some(Latewood::default()),
            System::LatewoodNoWal => Some(Latewood::without_log()),
            System::LatewoodNone => Some(Latewood::with(Durability::None)),
            System::LatewoodSync => Some(Latewood::with(Durability::Sync)),
            _ => None,
        }
    }

    /// Starts it with an empty directory; returns its settings too.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub(crate) fn start(self, memory: Option<&str>) -> Result<(Process, String)> {
        if let Some(latewood) = self.latewood() {
            return latewood.budget(memory).start();
        }
        if memory.is_some() {
            return Err(Error::new("only Latewood takes --memory"));
        }
        match self {
            System::Victoriametrics => victoriametrics::start(),
            System::Influxdb => influxdb::start(),
            System::Prometheus => prometheus::start(),
            System::Questdb => questdb::start(),
            _ => redistimeseries::start(self == System::RedistimeseriesAof),
        }
    }

    /// Starts it for lines, with an empty directory.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub(crate) fn serve(self, protocol: Protocol) -> Result<Served> {
        if let (Some(latewood), true) = (self.latewood(), protocol != Protocol::Redis) {
            let (latewood, senders) = latewood.taking(protocol)?;
            let (process, settings) = latewood.start()?;
            let store = Resp::taking(process.address(), protocol, &senders);
            return Ok(Served {
                store: Box::new(store),
                process,
                settings,
            });
        }
        let (process, settings) = self.start(None)?;
        let address = process.address();
        let store: Box<dyn Store> = match self {
            System::Victoriametrics => Box::new(VictoriaMetrics::at(address)),
            System::Influxdb => Box::new(InfluxDb::at(address)),
            System::Prometheus => Box::new(Prometheus::at(address)),
            System::Questdb => Box::new(QuestDb::at(address)),
            _ => Box::new(Resp::at(address)),
        };
        Ok(Served {
            store,
            process,
            settings,
        })
    }

    /// Whether it takes lines by several protocols, of which one is to be chosen.
    pub(crate) fn chooses_protocol(self) -> bool {
        self.latewood().is_some()
    }

    /// Whether it is somebody else's.
    pub(crate) fn is_peer(self) -> bool {
        self.latewood().is_none()
    }

    /// Whether it takes TS commands.
    fn speaks_resp(self) -> bool {
        self.latewood().is_some()
            || matches!(self, System::Redistimeseries | System::RedistimeseriesAof)
    }
}

impl Target {
    /// Reads `name=host:port`.
    ///
    /// # Errors
    /// When there is no `=`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        let (name, address) = text
            .split_once('=')
            .ok_or("write it as name=host:port or name=/path/of/socket")?;
        let Ok(address) = address.parse();
        Ok(Target::Running {
            name: name.to_owned(),
            address,
        })
    }

    /// A system as it comes.
    pub(crate) fn start(system: System) -> Self {
        Target::Start {
            system,
            memory: None,
        }
    }

    /// What the report calls it.
    pub(crate) fn name(&self) -> String {
        match self {
            Target::Start { system, .. } => system.name().to_owned(),
            Target::Running { name, .. } => name.clone(),
        }
    }

    /// Whether it is a peer that this program starts: one that not every machine can have.
    pub(crate) fn is_started_peer(&self) -> bool {
        matches!(self, Target::Start { system, .. } if system.is_peer())
    }

    /// Starts it if it is ours to start, and waits until it answers.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub(crate) fn ready(&self) -> Result<Ready> {
        let (system, memory) = match self {
            Target::Start { system, memory } => (*system, memory.as_deref()),
            Target::Running { address, .. } => {
                return Ok(Ready {
                    address: address.clone(),
                    settings: format!("already running at {address}"),
                    process: None,
                });
            }
        };
        if !system.speaks_resp() {
            let name = system.name();
            return Err(Error::new(format!(
                "{name} takes no TS commands; see `lines`"
            )));
        }
        let (process, settings) = system.start(memory)?;
        Ok(Ready {
            address: process.address().clone(),
            settings,
            process: Some(process),
        })
    }
}

impl Ready {
    /// Its process, if this program started it.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().and_then(Process::id)
    }
}

/// A file of the project that this program needs at run time, looked for from the working
/// directory and from this program upwards.
fn project_file(relative: &str) -> Result<std::path::PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_default();
    here.ancestors()
        .chain(program.ancestors())
        .map(|folder| folder.join(relative))
        .find(|path| path.is_file())
        .ok_or_else(|| Error::new(format!("{relative} not found; run this inside the project")))
}
