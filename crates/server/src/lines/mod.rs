//! Protocols of one line after the other on sockets of their own: OpenTSDB's telnet
//! and Akumuli's own on TCP, InfluxDB's on TCP and UDP. Off until an address is
//! given.
//!
//! A connection is a task of the runtime. What has arrived is one batch, which is
//! applied on a thread that may block; its errors are answered before more is read,
//! which makes the sender wait. These protocols know no password. So in protected
//! mode only peers on this machine are served, and all write with the rights of one
//! user, `default` unless the port names another; only with TLS may certificates
//! name users. InfluxDB's senders hear nothing: what is refused is counted and told
//! to the log.
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

pub(crate) use listener::{Bound, bind, serve};
