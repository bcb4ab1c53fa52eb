//! Limits of one command.
//!
//! The caller passes them with each call because they depend on the connection: a
//! client that has not authenticated has low limits, as in Redis, so that it
//! cannot make the server hold megabytes.

/// Bounds of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most arguments of a command, its name included.
    pub arguments_max: usize,
    /// Most bytes of one argument.
    pub argument_bytes_max: usize,
    /// Most bytes of a command with its headers, capped at 2 GiB.
    pub command_bytes_max: usize,
    /// Most bytes of an inline command, and of any line that holds a length.
    pub inline_bytes_max: usize,
    /// Whether the client has authenticated; affects only error texts.
    pub authenticated: bool,
}

impl Limits {
    /// The limits of a client that has not authenticated: at most 10 arguments of
    /// at most 16 KiB, with their own error texts.
    pub fn before_authentication(self) -> Self {
        Self {
            arguments_max: self.arguments_max.min(10),
            argument_bytes_max: self.argument_bytes_max.min(16 * 1024),
            authenticated: false,
            ..self
        }
    }

    /// `command_bytes_max`, small enough for offsets of 32 bits.
    pub(super) fn command_bytes(&self) -> usize {
        self.command_bytes_max.min(1 << 31)
    }
}
