//! `latewood import influx`: writes files of InfluxDB line protocol, or JSON lines of InfluxDB 3, to a
//! server.
//!
//! The server parses the lines, received over HTTP as from any sender, so that a file makes the
//! same series as a sender. `scan` splits a file into pieces of whole lines and finds bad lines by
//! the server's grammar; `json_lines` makes lines of rows; `send` sends the pieces to the server on its
//! own thread and reports the results. One piece is sent while the next is read. Blank lines replace
//! skipped ones, so that the line numbers in replies can be mapped to the file.
//!
//! Tested in `scan`, in `json_lines` and by `crates/server/tests/migrate/influx.rs`.

#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod json_lines;
mod scan;
mod send;

use crate::args::InfluxImport;
use crate::error::{Error, Result};
use crate::input;
use crate::outcome::Outcome;
use json_lines::{Rows, Table};
use latewood_wire::influx::Precision;
use scan::{Piece, Scan};
use send::Sender;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Pieces waiting to be sent.
const WAITING_MAX: usize = 1;

/// Reads every file and sends its lines to the target.
///
/// # Errors
/// At the first bad line, unless bad lines are skipped; when the target or a file fails.
pub(crate) fn run(options: &InfluxImport) -> Result<Outcome> {
    let precision = Precision::parse(&options.precision)
        .ok_or_else(|| Error::Failed(format!("unknown precision {:?}", options.precision)))?;
    let mut sender = Sender::open(options)?;
    let (pieces, waiting) = sync_channel(WAITING_MAX);
    let (read, sent) = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let outcome = waiting.iter().try_for_each(|piece| sender.send(&piece));
            // Makes the reader stop.
            drop(waiting);
            outcome
        });
        let read = read_files(options, precision, &pieces);
        drop(pieces);
        let sent = sending.join();
        (read, sent)
    });
    // An error of the server is about earlier lines than one of the reader.
    sent.unwrap_or_else(|_| Err(Error::Failed("a thread of the import panicked".to_owned())))
        .map_err(|error| sender.stopped(error))?;
    read.map_err(|error| sender.stopped(error))?;
    Ok(sender.finish())
}

fn read_files(
    options: &InfluxImport,
    precision: Precision,
    pieces: &SyncSender<Piece>,
) -> Result<()> {
    let mut table = options
        .measurement
        .as_ref()
        .map(|name| Table::new(name, &options.tags))
        .transpose()?;
    for path in &options.lines.files {
        let name: Arc<str> = path.display().to_string().into();
        let (file, skips_bad) = (input::open(path)?, options.lines.skip_bad);
        let is_sent = match &mut table {
            Some(table) => {
                let mut rows = Rows::new(file, name, table, skips_bad);
                send_pieces(|| rows.next_piece(), pieces)?
            }
            None => {
                let mut scan = Scan::new(file, name, precision, skips_bad);
                send_pieces(|| scan.next_piece(), pieces)?
            }
        };
        if !is_sent {
            // The sender stopped and reports the error.
            return Ok(());
        }
    }
    table.map_or(Ok(()), |table| table.finish())
}

/// Sends all pieces of a file; `false` where the sender stopped.
fn send_pieces(
    mut next: impl FnMut() -> Result<Option<Piece>>,
    pieces: &SyncSender<Piece>,
) -> Result<bool> {
    while let Some(piece) = next()? {
        if pieces.send(piece).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
