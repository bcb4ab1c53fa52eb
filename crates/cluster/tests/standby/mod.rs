//! Nodes that follow a log and take it over, in simulated time.

mod files;
mod ledger;
mod life;
mod members;
mod net;
mod plain;
mod simulation;
mod takeover;
mod threads;
