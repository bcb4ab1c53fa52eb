//! An Arrow IPC stream of [`Rows`].

use super::rows::{Rows, failed};
use crate::http::answer::Answer;
use arrow_ipc::writer::StreamWriter;

/// The batch under way, and the stream.
pub(super) struct Writer {
    pub(super) rows: Rows,
    stream: StreamWriter<Vec<u8>>,
}

impl Writer {
    /// Of rows, none so far.
    ///
    /// # Errors
    /// Where the schema cannot be written.
    pub(super) fn new(rows: Rows) -> Result<Self, Answer> {
        let stream = StreamWriter::try_new(Vec::new(), rows.schema()).map_err(failed)?;
        Ok(Self { rows, stream })
    }

    /// Writes the batch to `out`, and the end of the stream behind the last.
    ///
    /// # Errors
    /// Where Arrow refuses the batch.
    pub(super) fn end_piece(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<(), Answer> {
        if let Some(batch) = self.rows.take()? {
            self.stream.write(&batch).map_err(failed)?;
        }
        if is_last {
            self.stream.finish().map_err(failed)?;
        }
        out.append(self.stream.get_mut());
        Ok(())
    }
}
