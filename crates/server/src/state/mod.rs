//! What all threads of the server share.
//!
//! [`Shared`] is a list of parts, each the owner of its state; nothing of it is
//! locked on the path of a sample. Tested through the floors above.

mod advertised;
mod alike;
pub(crate) mod database;
mod exec_lock;
mod figures;
mod jobs;
mod lifetime;
mod line_port;
mod pause;
mod protocols;
pub(crate) mod readers;
mod recent;
mod remote;
mod role;
mod runtime;
mod settings;
mod shared;

pub(crate) use alike::{differing, digest, options_of, with_rules};
pub(crate) use database::Database;
pub(crate) use exec_lock::{ExecBeside, ExecShared};
pub(crate) use figures::ListenerFigures;
pub(crate) use jobs::{Job, Jobs, LastBackup};
pub(crate) use lifetime::{Failure, Lifetime, Stop, Way};
pub(crate) use line_port::{LinePort, LineProtocol};
pub(crate) use recent::Named;
pub(crate) use remote::{Remote, RemoteFigures};
pub(crate) use role::{Redirect, host_and_port};
pub(crate) use runtime::Runtime;
pub(crate) use settings::{Cluster, DumpFormat, Http, LogFormat, LogLevel, Reads, Settings, cores};
#[cfg(test)]
pub(crate) use settings::{Nodes, Senders};
pub(crate) use settings::{Promql, Rules};
pub(crate) use shared::Shared;
