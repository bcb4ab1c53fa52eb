//! Protocol errors of requests.
//!
//! After such an error the stream cannot be trusted: the server sends the text as
//! an error reply and closes the connection. It closes [`ProtocolError::Http`]
//! without a reply, so that a browser tricked into posting to this port learns
//! nothing. The texts are those of Redis 7.4.

use thiserror::Error;

/// A violation of the request grammar or of a limit.
///
/// `Display` gives the text after the `-` of the error reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The length after `*` is not a number or above `arguments_max`.
    #[error("ERR Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// More arguments than a client may send before it has authenticated.
    #[error("ERR Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// An argument does not begin with `$`; holds the byte found.
    #[error("ERR Protocol error: expected '$', got '{}'", printable(*.0))]
    ExpectedBulk(u8),
    /// The length after `$` is not a number or above `argument_bytes_max`.
    #[error("ERR Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// An argument longer than a client may send before it has authenticated.
    #[error("ERR Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// The line after `*` has no end within `inline_bytes_max`.
    #[error("ERR Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// The line after `$` has no end within `inline_bytes_max`.
    #[error("ERR Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// An inline command has no end within `inline_bytes_max`.
    #[error("ERR Protocol error: too big inline request")]
    TooBigInline,
    /// A quote in an inline command is never closed, or text follows it without a blank.
    #[error("ERR Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// All arguments together are longer than `command_bytes_max`.
    #[error("ERR Protocol error: too big request")]
    TooBigCommand,
    /// This is an HTTP request, sent to the wrong port or by an attacker: close without a reply.
    #[error("ERR Protocol error: HTTP request on the Redis port")]
    Http,
}

/// The byte in an error line: a line break becomes a blank.
fn printable(byte: u8) -> char {
    if matches!(byte, b'\r' | b'\n') {
        ' '
    } else {
        char::from(byte)
    }
}
