//! What is counted of the protocols beside Redis', and what their senders hold.

use crate::observe::{Connections, IntakeFigures, Listeners, Reads};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The protocols beside Redis'.
#[derive(Debug, Default)]
pub(crate) struct Protocols {
    /// Samples by protocol.
    pub(crate) intake: IntakeFigures,
    /// Memory that the senders take.
    pub(crate) remembered: Remembered,
    /// Connections over HTTP.
    pub(crate) http: Connections,
    /// What is read over HTTP.
    pub(crate) reads: Reads,
    /// Connections of line protocols.
    pub(crate) lines: Listeners,
}

/// Memory for what senders have sent before, all of them together.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    pub(crate) bytes: AtomicUsize,
    /// Senders that may hold some.
    pub(crate) owners: AtomicUsize,
}

impl Remembered {
    /// Bytes at this moment.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
