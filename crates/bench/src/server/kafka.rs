//! Brokers of Kafka on this machine, by `tests/cluster/kafka.sh`, and what they take.
//!
//! Dropping them kills them and removes their data. Tried by `latewood-bench remote` and `cluster`.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::install::install;
use super::latewood::program;
use crate::base::address::free_port;
use crate::base::error::{Doing, Error, Result};
use crate::base::files::files_below;
use crate::measure::usage;

const SCRIPT: &str = "tests/cluster/kafka.sh";
/// Ports of each broker: plain, with TLS, and for the other controllers.
const PORTS: u16 = 3;

/// Running brokers of one cluster.
#[derive(Debug)]
pub(crate) struct Brokers {
    script: PathBuf,
    port: u16,
    count: u16,
    dir: TempDir,
}

/// A log in Kafka, made by `latewood cluster init`.
#[derive(Clone, Debug)]
pub(crate) struct RemoteLog {
    pub(super) url: String,
    /// Whether its topic has one replica.
    pub(super) is_single: bool,
}

/// What a log holds in Kafka.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogSize {
    /// Records with groups of writes.
    pub(crate) records: u64,
    /// Bytes of the topic's segments on one broker.
    pub(crate) bytes: u64,
}

impl Brokers {
    /// Installs Kafka where that is needed, and starts `count` brokers.
    pub(crate) fn start(count: u16) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("latewood-bench-kafka-")
            .tempdir();
        let brokers = Brokers {
            script: install(SCRIPT)?.get_program().into(),
            port: free_ports(count * PORTS)?,
            count,
            dir: dir.doing("make a directory for brokers")?,
        };
        run(&mut brokers.script("start"))?;
        Ok(brokers)
    }

    /// Makes the log `name`, which is new.
    pub(crate) fn make_log(&self, name: &str) -> Result<RemoteLog> {
        let at = |broker: u16| format!("127.0.0.1:{}", self.port + PORTS * broker);
        let addresses: Vec<String> = (0..self.count).map(at).collect();
        let log = RemoteLog {
            url: format!("kafka://{}/{name}", addresses.join(",")),
            is_single: self.count == 1,
        };
        let mut command = program()?;
        command.args(["cluster", "init"]).args(log.flags());
        run(&mut command)?;
        Ok(log)
    }

    /// Processor seconds of all brokers since they began.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let doing = "read the process id of a broker";
        let of = |broker| {
            let path = self.dir.path().join(format!("{broker}/pid"));
            let id = fs::read_to_string(path).doing(doing)?;
            Ok(usage::of(id.trim().parse().doing(doing)?)?.cpu_seconds)
        };
        (1..=self.count).map(of).sum()
    }

    /// What the log `name` holds.
    pub(crate) fn size(&self, name: &str, log: &RemoteLog) -> Result<LogSize> {
        let mut command = program()?;
        command.args(["cluster", "inspect", "--log", &log.url]);
        let output = run(&mut command)?;
        let partition = self.dir.path().join(format!("1/data/{name}-log-0"));
        let mut segments = files_below(&partition);
        segments.retain(|path| path.extension().is_some_and(|end| end == "log"));
        if segments.is_empty() {
            let place = partition.display();
            return Err(Error::new(format!("no segments of the topic in {place}")));
        }
        let mut bytes = 0;
        for segment in segments {
            bytes += fs::metadata(segment).doing("look at a segment")?.len();
        }
        Ok(LogSize {
            records: data_records(&String::from_utf8_lossy(&output.stdout)),
            bytes,
        })
    }

    /// Lets all of them hang, with SIGSTOP, until they `resume`.
    pub(crate) fn pause(&self) -> Result<()> {
        self.each("pause")
    }

    pub(crate) fn resume(&self) -> Result<()> {
        self.each("resume")
    }

    fn each(&self, action: &str) -> Result<()> {
        let mut brokers = 1..=self.count;
        brokers.try_for_each(|broker| run(self.script(action).arg(broker.to_string())).map(drop))
    }

    fn script(&self, action: &str) -> Command {
        let mut command = Command::new(&self.script);
        command
            .arg(action)
            .env("BROKERS", self.count.to_string())
            .env("PORT", self.port.to_string())
            .env("KAFKA_DIR", self.dir.path());
        command
    }
}

impl Drop for Brokers {
    fn drop(&mut self) {
        if let Err(error) = run(&mut self.script("stop")) {
            eprintln!("{error}");
        }
    }
}

impl RemoteLog {
    /// Options that name it.
    pub(super) fn flags(&self) -> Vec<&str> {
        let mut flags = vec!["--log", &self.url];
        if self.is_single {
            flags.extend(["--kafka-any-replication", "on"]);
        }
        flags
    }
}

/// Records with groups, of the lines of `latewood cluster inspect`.
fn data_records(lines: &str) -> u64 {
    let data = lines.lines().filter(|line| line.contains(" data: "));
    data.count() as u64
}

/// The first of `count` ports that are free.
fn free_ports(count: u16) -> Result<u16> {
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    for _ in 0..100 {
        let first = free_port()?;
        let end = first.checked_add(count);
        if end.is_some_and(|end| (first..end).all(is_free)) {
            return Ok(first);
        }
    }
    Err(Error::new(format!("no {count} free ports in a row")))
}

fn run(command: &mut Command) -> Result<Output> {
    let doing = format!("run {}", command.get_program().display());
    let output = command.output().doing(&doing)?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(format!("{doing}: {}", said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_log_are_those_with_groups() {
        let lines = "0 0 75 epoch of node 0 at 127.0.0.1:1\n\
                     0 1 115 counts, n 0, sequence 1, data: 2 groups\n\
                     0 2 115 counts, n 1, sequence 3, checkpoint\n";
        assert_eq!(data_records(lines), 1);
    }

    #[test]
    fn one_replica_must_be_allowed() {
        let log = |is_single| RemoteLog {
            url: "kafka://a:1/x".to_owned(),
            is_single,
        };
        assert_eq!(log(false).flags(), ["--log", "kafka://a:1/x"]);
        assert_eq!(log(true).flags()[2..], ["--kafka-any-replication", "on"]);
    }
}
