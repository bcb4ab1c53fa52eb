//! Nodes that share one log: who owns it, who follows, and what each of them takes.
//!
//! Each has a directory and an address of its own; their objects lie in one folder. A node that was
//! killed keeps its place until it is started again. Dropping them kills all. Tried by
//! `latewood-bench cluster`.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::kafka::RemoteLog;
use super::latewood::Latewood;
use super::{Info, Process};
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Doing, Error, Result};
use crate::measure::usage;

/// Longer than any start or take-over may last.
const PATIENCE: Duration = Duration::from_secs(120);
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Nodes of one log, by their places.
#[derive(Debug)]
pub(crate) struct Nodes {
    latewood: Latewood,
    processes: Vec<Process>,
    objects: TempDir,
}

/// What a node says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Owner,
    /// A follower that answers reads.
    Follower,
    /// One that does not, or that is not there.
    Other,
}

impl Nodes {
    /// One node, which owns the new log.
    pub(crate) fn start(log: RemoteLog) -> Result<Self> {
        let objects = tempfile::Builder::new().prefix("latewood-bench-").tempdir();
        let objects = objects.doing("make a folder for objects")?;
        let mut nodes = Nodes {
            latewood: Latewood::node(log, objects.path().to_owned()),
            processes: Vec::new(),
            objects,
        };
        nodes.resize(1)?;
        Ok(nodes)
    }

    /// Has followers join, or leave in order, until there are `count` nodes. The owner stays, and
    /// comes first then. All others follow it afterwards.
    pub(crate) fn resize(&mut self, count: usize) -> Result<()> {
        if !self.processes.is_empty() {
            let owner = self.settle()?;
            self.processes.swap(0, owner);
        }
        for mut process in self.processes.drain(count.min(self.processes.len())..) {
            process.stop();
        }
        while self.processes.len() < count {
            self.processes.push(self.latewood.start()?);
        }
        self.settle().map(drop)
    }

    /// Waits until one node owns the log; returns its place. Others may be gone.
    pub(crate) fn owner(&self) -> Result<usize> {
        self.wait(|roles| roles.contains(&Role::Owner))
    }

    /// Waits until one node owns the log and all others follow it; returns the owner's place.
    pub(crate) fn settle(&self) -> Result<usize> {
        self.wait(|roles| {
            let count = |wanted| roles.iter().filter(|&&role| role == wanted).count();
            count(Role::Owner) == 1 && count(Role::Follower) + 1 == roles.len()
        })
    }

    /// Starts the node of a place, which has ended, on its directory; it follows afterwards.
    pub(crate) fn start_again(&mut self, place: usize) -> Result<()> {
        self.latewood.start_again(&mut self.processes[place])?;
        self.settle().map(drop)
    }

    pub(crate) fn process(&mut self, place: usize) -> &mut Process {
        &mut self.processes[place]
    }

    pub(crate) fn len(&self) -> usize {
        self.processes.len()
    }

    pub(crate) fn address(&self, place: usize) -> &Address {
        self.processes[place].address()
    }

    pub(crate) fn addresses(&self) -> Vec<Address> {
        let addresses = self.processes.iter().map(Process::address);
        addresses.cloned().collect()
    }

    pub(crate) fn control(&self, place: usize) -> Result<Control> {
        Control::connect(self.address(place))
    }

    /// The epoch that the node of a place has read.
    pub(crate) fn epoch(&self, place: usize) -> Result<f64> {
        let info = self.control(place)?.info("cluster")?;
        info.required("cluster_epoch")
    }

    /// Processor seconds of the node of a place since it began.
    pub(crate) fn cpu_seconds(&self, place: usize) -> Result<f64> {
        Ok(usage::of(self.processes[place].running()?)?.cpu_seconds)
    }

    /// Where the objects of all lie.
    pub(crate) fn objects(&self) -> &Path {
        self.objects.path()
    }

    /// How they were run.
    pub(crate) fn info(&self) -> Result<Info> {
        Ok(Info {
            name: "Latewood, each node".to_owned(),
            version: self.control(self.owner()?)?.version()?,
            settings: self.latewood.settings(),
        })
    }

    fn role(&self, place: usize) -> Role {
        let read = || -> Result<Role> {
            self.processes[place].running()?;
            let info = self.control(place)?.info("cluster")?;
            Ok(match info.text("cluster_role") {
                Some("owner") => Role::Owner,
                Some("follower") if info.number("cluster_takes_reads") == Some(1.0) => {
                    Role::Follower
                }
                _ => Role::Other,
            })
        };
        read().unwrap_or(Role::Other)
    }

    /// Waits until the roles are as wanted; returns the place of the owner.
    fn wait(&self, is_wanted: impl Fn(&[Role]) -> bool) -> Result<usize> {
        let began = Instant::now();
        loop {
            let roles: Vec<Role> = (0..self.len()).map(|place| self.role(place)).collect();
            let owner = roles.iter().position(|&role| role == Role::Owner);
            if let Some(owner) = owner.filter(|_| is_wanted(&roles)) {
                return Ok(owner);
            }
            if began.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                let what = format!("the nodes did not settle within {seconds} s: {roles:?}");
                return Err(Error::new(what));
            }
            thread::sleep(ASK_AGAIN);
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // They are about to lose their directories, and nobody is to take over.
            let _ = process.kill();
        }
    }
}
