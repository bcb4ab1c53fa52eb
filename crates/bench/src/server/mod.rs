//! The servers that are measured: Latewood, peers that this program starts, and plain addresses of
//! those that run already. A started server is a child process with a directory of its own; both
//! go away when the value is dropped.

mod certificate;
mod install;
mod kafka;
mod latewood;
mod peer;
mod process;
mod store;
mod stream;

use clap::ValueEnum;
use latewood_tls::Connector;
use serde::Serialize;

pub(crate) use self::install::project_file;
pub(crate) use self::kafka::{Brokers, LogSize, RemoteLog};
pub(crate) use self::latewood::{Durability, Latewood};
use self::peer::Peer;
pub(crate) use self::process::Process;
pub(crate) use self::store::{Sender, Store};
pub(crate) use self::stream::LineStream;
use crate::base::address::Address;
use crate::base::error::{Error, Result};
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
    /// The first, with TLS.
    LatewoodTls,
    /// Redis with RedisTimeSeries, persistence off.
    Redistimeseries,
    /// The same with the append-only file on, synced every second.
    RedistimeseriesAof,
    /// The first of these two, with TLS.
    RedistimeseriesTls,
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
    /// Started for a run and stopped after it; only Latewood takes a budget for its memory.
    Start {
        system: System,
        memory: Option<String>,
    },
    Running {
        name: String,
        address: Address,
    },
}

/// A server and how it was run, for the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Info {
    pub(crate) name: String,
    /// As it tells it.
    pub(crate) version: String,
    pub(crate) settings: String,
}

/// A target that answers: where it listens, how it was started, and its process if it is ours.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) address: Address,
    pub(crate) settings: String,
    pub(crate) process: Option<Process>,
}

impl System {
    /// What the report calls it.
    pub(crate) fn name(self) -> &'static str {
        self.own().map_or(self.peer().name, |(name, _)| name)
    }

    /// How to run it, if it is a Latewood.
    pub(crate) fn latewood(self) -> Option<Latewood> {
        self.own().map(|(_, latewood)| latewood)
    }

    fn own(self) -> Option<(&'static str, Latewood)> {
        Some(match self {
            System::Latewood => ("Latewood", Latewood::default()),
            System::LatewoodNoWal => ("Latewood, log off", Latewood::without_log()),
            System::LatewoodNone => ("Latewood, none", Latewood::with(Durability::None)),
            System::LatewoodSync => ("Latewood, sync", Latewood::with(Durability::Sync)),
            System::LatewoodTls => ("Latewood, TLS", Latewood::default().encrypted()),
            _ => return None,
        })
    }

    fn peer(self) -> &'static Peer {
        match self {
            System::Victoriametrics => &peer::VICTORIAMETRICS,
            System::Influxdb => &peer::INFLUXDB,
            System::Prometheus => &peer::PROMETHEUS,
            System::Questdb => &peer::QUESTDB,
            System::RedistimeseriesAof => &peer::REDISTIMESERIES_AOF,
            System::RedistimeseriesTls => &peer::REDISTIMESERIES_TLS,
            _ => &peer::REDISTIMESERIES,
        }
    }

    /// Starts it with an empty directory; returns its settings too.
    fn start(self, memory: Option<&str>) -> Result<(Process, String)> {
        if let Some(latewood) = self.latewood() {
            let latewood = latewood.budget(memory);
            return Ok((latewood.start()?, latewood.settings()));
        }
        match memory {
            Some(_) => Err(Error::new("only Latewood takes --memory")),
            None => Ok((self.peer().start()?, self.peer().settings.to_owned())),
        }
    }

    /// Starts it for lines, with an empty directory, ready for a load.
    pub(crate) fn serve(self, protocol: Protocol) -> Result<(Store, Process, Info)> {
        let (store, process, settings) = match self.latewood() {
            Some(latewood) if protocol != Protocol::Redis => {
                let (latewood, senders) = latewood.taking(protocol)?;
                let process = latewood.start()?;
                let store = Store::resp(process.address(), protocol, &senders);
                (store, process, latewood.settings())
            }
            _ => {
                let (process, settings) = self.start(None)?;
                let address = process.address();
                let store = if self.speaks_resp() {
                    Store::resp(address, Protocol::Redis, address)
                } else {
                    Store::peer(address, self.peer())
                };
                (store, process, settings)
            }
        };
        store.prepare()?;
        let info = Info {
            name: self.name().to_owned(),
            version: store.version()?,
            settings,
        };
        Ok((store, process, info))
    }

    /// Whether it is somebody else's; Latewood alone takes lines by several protocols.
    pub(crate) fn is_peer(self) -> bool {
        self.latewood().is_none()
    }

    fn speaks_resp(self) -> bool {
        let is_redis = matches!(
            self,
            System::Redistimeseries | System::RedistimeseriesAof | System::RedistimeseriesTls
        );
        !self.is_peer() || is_redis
    }
}

impl Target {
    /// Reads `name=host:port`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        let (name, address) = text.split_once('=').ok_or("write it as name=host:port")?;
        Ok(Target::Running {
            name: name.to_owned(),
            address: Address::new(address),
        })
    }

    /// The same, connected to by `connector` if it runs already.
    pub(crate) fn by(self, connector: &Connector) -> Self {
        match self {
            Target::Running { name, address } => Target::Running {
                name,
                address: address.by(connector.clone()),
            },
            started => started,
        }
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
            let what = format!("{name} takes no TS commands; see `lines`");
            return Err(Error::new(what));
        }
        let (process, settings) = system.start(memory)?;
        Ok(Ready {
            address: process.address().clone(),
            settings,
            process: Some(process),
        })
    }
}
