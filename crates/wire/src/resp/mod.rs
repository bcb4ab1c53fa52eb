//! RESP2 and RESP3, the protocols of Redis clients.
//!
//! A server reads commands with [`Parser`] and replies through [`Reply`]; a
//! client encodes commands with [`encode_command`] and reads replies with
//! [`skip_reply`] or [`parse_reply`]. [`number`] and [`double`] hold the text
//! forms of numbers, which follow RedisTimeSeries byte for byte because
//! clients compare, parse and store them.
//!
//! The grammar is the one published at
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>; error texts
//! and corner cases were observed on a running Redis 7.4.

mod command;
pub mod digits;
pub mod double;
mod error;
mod inline;
mod limits;
mod line;
pub mod number;
mod parser;
mod reply;
mod value;

pub use command::{Command, encode_command};
pub use error::ProtocolError;
pub use limits::Limits;
pub use parser::{Parsed, Parser};
pub use reply::Reply;
pub use value::{ReplyError, ReplyKind, Value, parse_reply, skip_reply};

/// The version of the protocol that a connection speaks; `HELLO` changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2, the version of a new connection.
    #[default]
    Resp2,
    /// RESP3, after `HELLO 3`.
    Resp3,
}
