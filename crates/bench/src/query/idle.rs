//! What a series costs a server that holds it and does nothing.
//!
//! Anonymous memory of the process, as the kernel counts it: pages of files, such as those of a
//! log, belong to the kernel and go when it needs room.

use serde::{Deserialize, Serialize};

/// Memory of a server that holds idle series of one sample and six labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IdleRun {
    /// Name of the server.
    pub(crate) target: String,
    /// Series it holds.
    pub(crate) series: u64,
    /// Whether they were created with the smallest chunk size there is, 48 bytes.
    pub(crate) small_chunks: bool,
    /// Anonymous memory of the empty server.
    pub(crate) empty_bytes: u64,
    /// Anonymous memory of the loaded one.
    pub(crate) loaded_bytes: u64,
}

impl IdleRun {
    /// Bytes a series costs.
    pub(crate) fn bytes_per_series(&self) -> f64 {
        self.loaded_bytes.saturating_sub(self.empty_bytes) as f64 / self.series as f64
    }
}
