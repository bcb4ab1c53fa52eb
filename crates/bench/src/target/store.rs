//! What the lines benchmark needs of a server, whatever protocol it speaks.

use std::fmt::Write;
use std::time::Duration;

use crate::error::Result;
use crate::lines::{Batch, CpuLoad, FIELDS, TAGS};

/// A batch as it goes over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// The bytes of the request.
    pub(crate) bytes: Vec<u8>,
    /// Commands in it; 1 where a batch is one request.
    pub(crate) commands: usize,
}

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

    /// Puts a batch into the form the server takes.
    ///
    /// # Errors
    /// When the form cannot hold it.
    fn encode(&self, load: &CpuLoad, batch: &Batch) -> Result<Body>;

    /// Opens a connection.
    ///
    /// # Errors
    /// When the server is not there.
    fn sender(&self) -> Result<Box<dyn Sender>>;

    /// Waits until everything sent can be read, and asks for it to be put on disk where the
    /// server knows such a command.
    ///
    /// # Errors
    /// When the server is gone.
    fn drain(&self) -> Result<()>;

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
    /// Sends a batch and waits until all of it is acknowledged.
    ///
    /// # Errors
    /// When the server refuses any of it, or goes away.
    fn send(&mut self, body: &Body) -> Result<()>;
}

/// A batch as Influx line protocol.
pub(super) fn line_protocol(load: &CpuLoad, batch: &Batch) -> Body {
    let mut text = String::with_capacity(batch.lines.len() * 400);
    for &line in &batch.lines {
        text += "cpu";
        for (name, value) in TAGS.iter().zip(load.tags(load.host(line))) {
            text.extend([",", name, "=", value]);
        }
        for (at, (name, value)) in FIELDS.iter().zip(load.fields(line)).enumerate() {
            let between = if at == 0 { ' ' } else { ',' };
            // Writing to a String cannot fail.
            let _ = write!(text, "{between}{name}={value}i");
        }
        let _ = writeln!(text, " {}000000", load.timestamp_ms(line));
    }
    Body {
        bytes: text.into_bytes(),
        commands: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_tags_fields_and_nanoseconds() {
        let load = CpuLoad::new(2, 3, 1);
        let batch = load.batches(&load.order(0.0, 1), 1, 10).remove(0).remove(0);
        let body = String::from_utf8(line_protocol(&load, &batch).bytes).unwrap();
        assert_eq!(body.lines().count(), 6);
        let line = body.lines().nth(3).unwrap();
        assert!(line.starts_with("cpu,hostname=host_1,region="), "{line}");
        assert!(line.ends_with(" 1451606410000000000"), "{line}");
        let user = format!(" usage_user={}i,usage_system=", load.fields(3)[0]);
        assert!(line.contains(&user), "{line}");
        assert_eq!(line.matches('=').count(), 20);
    }
}
