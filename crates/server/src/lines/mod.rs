//! Protocols of one line after the other on plain sockets: OpenTSDB's telnet
//! and Akumuli's own on TCP, InfluxDB's on TCP and UDP. Off until an address is
//! given.
//!
//! A connection has a thread: applying a batch may block, so that an event
//! loop must not do it, and a blocked thread does not read, which makes the
//! sender wait. What has arrived is one batch; its errors are answered before
//! more is read. These protocols know no password. So in protected mode only
//! peers on this machine are served, and all write with the rights of the
//! user `default`. InfluxDB's senders hear nothing: what is refused is counted
//! and told to the log.
//!
//! Tested by `tests/lines/`.

mod akumuli;
mod by_line;
mod connection;
mod datagrams;
mod influx;
mod listener;
mod opentsdb;
mod speaker;

pub(crate) use listener::{Bound, Serving, bind};
