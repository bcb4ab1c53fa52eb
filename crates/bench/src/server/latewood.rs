//! Starting Latewood: the `latewood` binary that lies beside this program.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::kafka::RemoteLog;
use super::process::{Process, Start};
use crate::base::address::{Address, free_port};
use crate::base::error::{Doing, Error, Result};
use crate::protocol::Protocol;

/// Recovery of a large log may take this long before the server answers.
const PATIENCE: Duration = Duration::from_secs(300);

/// When a sample is safe: on disk before the reply, or in the kernel before it and on disk within
/// a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Sync,
    Interval,
}

#[derive(Clone, Debug)]
pub(crate) struct Latewood {
    settings: String,
    is_tls: bool,
    senders: Option<(Protocol, Address)>,
    remote: Option<RemoteLog>,
    /// Where its objects lie, if not beside its data.
    objects: Option<PathBuf>,
    /// What its rule file holds.
    rules: Option<&'static str>,
}

impl Default for Latewood {
    fn default() -> Self {
        Self::with(Durability::Interval)
    }
}

impl Latewood {
    /// With these words on its command line.
    pub(super) fn new(settings: &str, is_tls: bool) -> Self {
        Latewood {
            settings: settings.to_owned(),
            is_tls,
            senders: None,
            remote: None,
            objects: None,
            rules: None,
        }
    }

    pub(crate) fn with(durability: Durability) -> Self {
        let durability = format!("{durability:?}").to_lowercase();
        Self::new(&format!("--wal on --durability {durability}"), false)
    }

    pub(crate) fn without_log() -> Self {
        Self::new("--wal off", false)
    }

    /// With its log in Kafka, and its objects in a folder beside its data.
    pub(crate) fn remote(mut self, log: RemoteLog) -> Self {
        self.remote = Some(log);
        self
    }

    /// As one of the nodes that share a log and a folder for objects.
    pub(super) fn node(log: RemoteLog, objects: PathBuf) -> Self {
        let mut node = Self::with(Durability::Sync).remote(log);
        node.settings += " --cluster on";
        node.objects = Some(objects);
        node
    }

    /// With a budget for its memory, as `--memory` takes it: `512mb`; without one as it comes.
    pub(crate) fn budget(mut self, memory: Option<&str>) -> Self {
        if let Some(memory) = memory {
            self.settings += &format!(" --memory {memory}");
        }
        self
    }

    /// Taking samples by `protocol` too; returns where as well.
    pub(crate) fn taking(mut self, protocol: Protocol) -> Result<(Self, Address)> {
        let address = Address::loopback(free_port()?);
        self.senders = Some((protocol, address.clone()));
        Ok((self, address))
    }

    pub(crate) fn with_http(mut self, address: &Address) -> Self {
        self.senders = Some((Protocol::Influx, address.clone()));
        self
    }

    /// With a rule file that holds this.
    pub(crate) fn with_rules(mut self, rules: &'static str) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Its settings as they stand on its command line, but for addresses.
    pub(crate) fn settings(&self) -> String {
        self.settings.clone()
    }

    /// Starts it on a free port with an empty directory.
    pub(crate) fn start(&self) -> Result<Process> {
        let address = Address::loopback(free_port()?);
        let taken = self
            .senders
            .as_ref()
            .map(|(_, address)| address.to_string());
        if taken == Some(address.to_string()) {
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
            .args(self.settings.split(' '));
        let address = process.address().to_string();
        if self.is_tls {
            command.args(["--listen", "", "--tls-listen", &address]);
            process.encrypt(&mut command)?;
        } else {
            command.args(["--listen", &address]);
        }
        if let Some(log) = &self.remote {
            let beside = process.dir().join("objects");
            let objects = self.objects.clone().unwrap_or(beside);
            std::fs::create_dir_all(&objects).doing("make a folder for objects")?;
            let url = format!("file://{}", objects.display());
            command.args(log.flags()).args(["--objects", &url]);
        }
        if let Some((protocol, address)) = &self.senders {
            match protocol {
                Protocol::Opentsdb | Protocol::Akumuli => {
                    let lines = format!("{}={address}", protocol.name());
                    command.args(["--listen-lines", &lines])
                }
                _ => command.args(["--http", &address.to_string()]),
            };
            if *protocol == Protocol::Otlp {
                // The tags are attributes of resources.
                command.args(["--otlp-promote", "*"]);
            }
        }
        if let Some(rules) = self.rules {
            let file = process.dir().join("rules.yml");
            std::fs::write(&file, rules).doing("write a rule file")?;
            command.arg("--rules").arg(file);
        }
        process.start(command, PATIENCE, "")
    }
}

/// Runs a tool of `latewood`; returns what it prints.
///
/// # Errors
/// With that and what it says besides, where it does not end well.
pub(crate) fn tool(words: &[String]) -> Result<String> {
    let ended = program()?.args(words).output().doing("run latewood")?;
    let said = String::from_utf8_lossy(&ended.stdout);
    if ended.status.success() {
        return Ok(said.into_owned());
    }
    let why = String::from_utf8_lossy(&ended.stderr);
    let words = words.join(" ");
    Err(Error::new(format!(
        "`latewood {words}` failed: {said}{why}"
    )))
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
