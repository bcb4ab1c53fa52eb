//! What one command may cost, before its bytes are believed.
//!
//! The caller passes the numbers with each call, because they change with the
//! connection: a client that has not authenticated gets small ones, as in
//! Redis, so that it cannot make the server hold megabytes.

/// Bounds of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most arguments of a command, its name included.
    pub arguments_max: usize,
    /// Most bytes of one argument.
    pub argument_bytes_max: usize,
    /// Most bytes of a whole command with its headers; values above 2 GiB count as 2 GiB.
    pub command_bytes_max: usize,
    /// Most bytes of an inline command, and of any line that holds a length.
    pub inline_bytes_max: usize,
    /// Whether the client has authenticated; it only changes error texts.
    pub authenticated: bool,
}

impl Limits {
    /// The limits for a client that still has to authenticate: at most 10
    /// arguments of at most 16 KiB, and errors that say so.
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
