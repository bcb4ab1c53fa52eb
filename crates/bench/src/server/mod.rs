//! The servers that are measured: Latewood, peers that this program starts, and plain addresses of
//! those that run already. A started server is a child process with a directory of its own; both
//! go away when the value is dropped.

mod install;
mod kafka;
mod latewood;
mod nodes;
mod process;
mod store;
mod systems;

use clap::ValueEnum;
use latewood_tls::Connector;
use serde::Serialize;

pub(crate) use self::install::project_file;
pub(crate) use self::kafka::{Brokers, LogSize, RemoteLog};
pub(crate) use self::latewood::{Durability, Latewood, tool};
pub(crate) use self::nodes::Nodes;
pub(crate) use self::process::Process;
pub(crate) use self::store::{LineStream, Sender, Store};
use self::systems::{SPECS, Spec};
use crate::base::address::Address;
use crate::base::error::{Error, Result};
use crate::protocol::Protocol;

/// Systems this program can start, in the order of `systems.json`, which describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    Latewood,
    LatewoodNoWal,
    LatewoodNone,
    LatewoodSync,
    LatewoodTls,
    Redistimeseries,
    RedistimeseriesAof,
    RedistimeseriesTls,
    Victoriametrics,
    Influxdb,
    Prometheus,
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
    fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }

    /// What the report calls it.
    pub(crate) fn name(self) -> &'static str {
        &self.spec().name
    }

    /// Whether it is somebody else's; Latewood alone takes lines by several protocols.
    pub(crate) fn is_peer(self) -> bool {
        !self.spec().script.is_empty()
    }

    /// Starts it with an empty directory, Latewood also with a budget for its memory and taking
    /// samples by `senders`; returns its settings and where it takes samples too.
    fn start(
        self,
        memory: Option<&str>,
        senders: Protocol,
    ) -> Result<(Process, String, Option<Address>)> {
        let spec = self.spec();
        if self.is_peer() && memory.is_some() {
            return Err(Error::new("only Latewood takes --memory"));
        }
        if self.is_peer() {
            return Ok((spec.start()?, spec.settings.clone(), None));
        }
        let mut latewood = Latewood::new(&spec.settings, spec.is_tls).budget(memory);
        let mut address = None;
        if senders != Protocol::Redis {
            let (taking, at) = latewood.taking(senders)?;
            (latewood, address) = (taking, Some(at));
        }
        Ok((latewood.start()?, latewood.settings(), address))
    }

    /// Starts it for lines, with an empty directory, ready for a load.
    pub(crate) fn serve(self, protocol: Protocol) -> Result<(Store, Process, Info)> {
        let (process, settings, senders) = self.start(None, protocol)?;
        let spec = self.spec();
        let store = Store {
            spec,
            address: process.address().clone(),
            protocol: senders.as_ref().map_or(spec.protocol, |_| protocol),
            senders: senders.unwrap_or_else(|| process.address().clone()),
        };
        store.prepare()?;
        let info = Info {
            name: self.name().to_owned(),
            version: store.version()?,
            settings,
        };
        Ok((store, process, info))
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
        if !system.spec().speaks_resp() {
            let name = system.name();
            let what = format!("{name} takes no TS commands; see `lines`");
            return Err(Error::new(what));
        }
        let (process, settings, _) = system.start(memory, Protocol::Redis)?;
        Ok(Ready {
            address: process.address().clone(),
            settings,
            process: Some(process),
        })
    }
}
