//! Starts and stops the process: command line, sockets, threads, signals, the
//! background thread. Tested by `tests/`.

mod alone;
mod cli;
mod damage;
mod downloading;
mod jobs;
mod node;
mod notices;
mod open;
mod rules;
mod server;
mod tablet;
mod waiting;
mod watching;

pub(crate) use cli::{Cli, Command};
pub(crate) use server::run;
