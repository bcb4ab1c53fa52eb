//! `latewood import influx`: writes files of InfluxDB line protocol to a server.
//!
//! The server parses the lines, received over HTTP as from any sender, so that a file makes the
//! same series as a sender. `scan` splits a file into pieces of whole lines and finds bad lines by
//! the server's grammar; `send` sends the pieces to the server on its own thread and reports the
//! results. One piece is sent while the next is read. Blank lines replace skipped ones, so that the
//! line numbers in replies can be mapped to the file.
//!
//! Tested in `scan` and by `crates/server/tests/migrate/influx.rs`.

#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod scan;
mod send;

use crate::args::InfluxImport;
use crate::error::{Error, Result};
use crate::input;
use crate::outcome::Outcome;
use latewood_wire::influx::Precision;
use scan::{Piece, Scan};
use send::Sender;
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
    for path in &options.lines.files {
        let name: std::sync::Arc<str> = path.display().to_string().into();
        let mut scan = Scan::new(input::open(path)?, name, precision, options.lines.skip_bad);
        while let Some(piece) = scan.next_piece()? {
            if pieces.send(piece).is_err() {
                // The sender stopped and reports the error.
                return Ok(());
            }
        }
    }
    Ok(())
}
