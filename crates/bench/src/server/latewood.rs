//! Starting Latewood: the `latewood` binary that lies beside this program.

use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;

use super::certificate::Certificate;
use super::kafka::RemoteLog;
use super::process::{Process, Start};
use crate::base::address::{Address, free_port};
use crate::base::error::{Doing, Error, Result};
use crate::protocol::Protocol;

/// Recovery of a large log may take this long before the server answers.
const PATIENCE: Duration = Duration::from_secs(300);

/// When a sample is safe, as `--durability` says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// On disk before the reply.
    Sync,
    /// In the kernel before the reply, on disk within a second.
    #[default]
    Interval,
    /// Whenever the buffer is full.
    None,
}

/// How to run it.
#[derive(Clone, Debug)]
pub(crate) struct Latewood {
    durability: Durability,
    wal: bool,
    memory: Option<String>,
    senders: Option<(Protocol, Address)>,
    is_tls: bool,
    remote: Option<RemoteLog>,
}

impl Default for Latewood {
    fn default() -> Self {
        Self::with(Durability::default())
    }
}

impl Latewood {
    /// With the log on, at this durability.
    pub(crate) fn with(durability: Durability) -> Self {
        Latewood {
            durability,
            wal: true,
            memory: None,
            senders: None,
            is_tls: false,
            remote: None,
        }
    }

    /// With the log off.
    pub(crate) fn without_log() -> Self {
        Latewood {
            wal: false,
            ..Latewood::default()
        }
    }

    /// Served with TLS alone.
    pub(crate) fn encrypted(self) -> Self {
        Latewood {
            is_tls: true,
            ..self
        }
    }

    /// With its log in Kafka, and its objects in a folder beside its data.
    pub(crate) fn remote(self, log: RemoteLog) -> Self {
        Latewood {
            remote: Some(log),
            ..self
        }
    }

    /// With a budget for its memory, as `--memory` takes it: `512mb`; without one as it comes.
    pub(crate) fn budget(mut self, memory: Option<&str>) -> Self {
        self.memory = memory.map(str::to_owned);
        self
    }

    /// Taking samples by `protocol` too; returns where as well.
    pub(crate) fn taking(mut self, protocol: Protocol) -> Result<(Self, Address)> {
        let address = Address::loopback(free_port()?);
        self.senders = Some((protocol, address.clone()));
        Ok((self, address))
    }

    /// Serving HTTP at `address`.
    pub(crate) fn with_http(self, address: &Address) -> Self {
        Latewood {
            senders: Some((Protocol::Influx, address.clone())),
            ..self
        }
    }

    /// Its settings as they stand on its command line, but for addresses.
    pub(crate) fn settings(&self) -> String {
        let value = self.durability.to_possible_value();
        let name = value.as_ref().map_or("interval", |v| v.get_name());
        let log = if self.wal {
            format!("--wal on --durability {name}")
        } else {
            "--wal off".to_owned()
        };
        match &self.memory {
            Some(memory) => format!("{log} --memory {memory}"),
            None => log,
        }
    }

    /// Starts it on a free port with an empty directory.
    pub(crate) fn start(&self) -> Result<Process> {
        let taken = self.senders.as_ref().map(|(_, address)| address);
        let address = Address::loopback(free_port()?);
        if taken == Some(&address) {
            return self.start();
        }
        let mut process = Process::prepare(address)?;
        self.start_again(&mut process)?;
        Ok(process)
    }

    /// Starts it on the directory and address of `process`, where it may have run before.
    pub(crate) fn start_again(&self, process: &mut Process) -> Result<Start> {
        let mut command = program()?;
        command
            // Another server may have its port; a flag wins over this.
            .env("LATEWOOD_HTTP", "off")
            .args(["serve", "--dir"])
            .arg(process.data())
            .args(self.settings().split(' '));
        let address = process.address().to_string();
        if self.is_tls {
            let certificate = Certificate::make(process.dir())?;
            command.args(["--listen", "", "--tls-listen", &address]);
            command.args(certificate.flags());
            process.connect_by(certificate.connector()?);
        } else {
            command.args(["--listen", &address]);
        }
        if let Some(log) = &self.remote {
            let objects = process.dir().join("objects");
            std::fs::create_dir_all(&objects).doing("make a folder for objects")?;
            let url = format!("file://{}", objects.display());
            command.args(log.flags()).args(["--objects", &url]);
        }
        if let Some((protocol, address)) = &self.senders {
            match protocol {
                Protocol::Opentsdb => {
                    command.args(["--listen-lines", &format!("opentsdb={address}")])
                }
                Protocol::Akumuli => {
                    command.args(["--listen-lines", &format!("akumuli={address}")])
                }
                _ => command.args(["--http", &address.to_string()]),
            };
            if *protocol == Protocol::Otlp {
                // The tags are attributes of resources.
                command.args(["--otlp-promote", "*"]);
            }
        }
        process.start(&mut command, PATIENCE)
    }
}

/// The `latewood` that lies beside this program.
pub(super) fn program() -> Result<Command> {
    let program = std::env::current_exe().doing("find `latewood`")?;
    let program = program.with_file_name("latewood");
    if !program.is_file() {
        let hint = "no `latewood` beside this program; build both: cargo build --release";
        return Err(Error::new(hint));
    }
    Ok(Command::new(program))
}
