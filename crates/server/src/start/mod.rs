//! Starts and stops the process: command line, sockets, threads, signals, the
//! background thread. Tested by `tests/`.

mod cli;
mod damage;
mod jobs;
mod notices;
mod server;
mod tablet;

pub(crate) use cli::{Cli, Command};
pub(crate) use server::run;
