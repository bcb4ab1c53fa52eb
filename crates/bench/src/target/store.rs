//! What the lines benchmark needs of a server, whatever protocol it speaks.

use std::time::Duration;

use crate::error::Result;
use crate::lines::CpuLoad;
use crate::protocol::{Body, Protocol};

/// A running server that takes lines.
pub(crate) trait Store: Send + Sync {
    /// Its name and version, as it tells them.
    ///
    /// # Errors
    /// When it does not answer.
    fn version(&self) -> Result<String>;

    /// Makes ready for a load: a database, where one is needed.
    ///
    /// # Errors
    /// When the server refuses.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// The form in which it takes batches.
    fn protocol(&self) -> Protocol;

    /// Opens a connection.
    ///
    /// # Errors
    /// When the server is not there.
    fn sender(&self) -> Result<Box<dyn Sender>>;

    /// Waits until everything sent can be read and late samples are merged.
    ///
    /// # Errors
    /// When the server is gone.
    fn drain(&self) -> Result<()>;

    /// Asks for everything to be put on disk, where the server knows such a command.
    ///
    /// # Errors
    /// When the server refuses.
    fn persist(&self) -> Result<()> {
        Ok(())
    }

    /// How long after a load the server may still begin work of its own.
    fn rest(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// Values it holds.
    ///
    /// # Errors
    /// When the question fails.
    fn values(&self, load: &CpuLoad) -> Result<u64>;

    /// All samples of a field of a host, by time.
    ///
    /// # Errors
    /// When the question fails.
    fn series(&self, load: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>>;
}

/// One connection of a load.
pub(crate) trait Sender: Send {
    /// Sends a batch and waits until all of it is acknowledged, where the protocol does that.
    ///
    /// # Errors
    /// When the server refuses any of it, or goes away.
    fn send(&mut self, body: &Body) -> Result<()>;

    /// Ends the load: waits until all of it is acknowledged, where the protocol tells only then.
    ///
    /// # Errors
    /// When the server refused any of it, or went away.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
