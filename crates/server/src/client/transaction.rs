//! What a connection has queued between MULTI and EXEC.

use std::time::Instant;

/// What was queued since MULTI.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// The commands, encoded one behind the other.
    pub(crate) bytes: Vec<u8>,
    /// The memory granted for them.
    pub(crate) held_bytes: usize,
    /// How many they are.
    pub(crate) commands: usize,
    /// A command was refused: EXEC will run none.
    pub(crate) has_failed: bool,
    pub(crate) has_write: bool,
}

/// What bounds the EXEC that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The length at which its replies end.
    pub(crate) end: usize,
    /// When it stops beginning commands that read.
    pub(crate) until: Instant,
}
