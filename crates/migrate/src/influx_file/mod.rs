//! `latewood import influx`: files of InfluxDB line protocol into a server.
//!
//! The server reads the lines itself, over HTTP as from any sender, so that a file names the same
//! series as the senders do. `scan` cuts a file into pieces of whole lines and finds the bad ones
//! by the grammar the server uses; `send` brings one piece after the other to the server, on a
//! thread of its own, and tells what became of them. One piece is always under way while the next
//! is read. Blank lines stand for what is left out, so that the numbers the server answers with
//! lead back to lines of the file.
//!
//! Tested in `scan` and by `crates/server/tests/migrate/influx.rs`.

mod scan;
mod send;

use crate::args::InfluxImport;
use crate::error::{Doing, Error, Result};
use crate::outcome::Outcome;
use flate2::bufread::MultiGzDecoder;
use latewood_wire::influx::Precision;
use scan::{Piece, Scan};
use send::Sender;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Pieces that wait for the one under way.
const WAITING_MAX: usize = 1;
/// The first bytes of gzip's format, RFC 1952.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads every file and brings its lines to the target.
///
/// # Errors
/// At the first bad line, unless bad lines are skipped; when the target or a file fails.
pub(crate) fn run(options: &InfluxImport) -> Result<Outcome> {
    let precision = Precision::parse(&options.precision)
        .ok_or_else(|| Error::Failed(format!("there is no precision {:?}", options.precision)))?;
    let mut sender = Sender::open(options)?;
    let (pieces, waiting) = sync_channel(WAITING_MAX);
    let (read, sent) = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let outcome = waiting.iter().try_for_each(|piece| sender.send(&piece));
            // Who reads finds out that nobody takes pieces any more.
            drop(waiting);
            outcome
        });
        let read = read_files(options, precision, &pieces);
        drop(pieces);
        let sent = sending.join();
        (read, sent)
    });
    // What the server says concerns earlier lines than what the reader says.
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
    for path in &options.files {
        let name: std::sync::Arc<str> = path.display().to_string().into();
        let mut scan = Scan::new(open(path)?, name, precision, options.skip_bad);
        while let Some(piece) = scan.next_piece()? {
            if pieces.send(piece).is_err() {
                // The sender has ended and says why.
                return Ok(());
            }
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    let doing = || format!("open {}", path.display());
    let file: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).doing(doing())?),
    };
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    match reader.fill_buf().doing(doing())?.starts_with(&GZIP) {
        true => Ok(Box::new(MultiGzDecoder::new(reader))),
        false => Ok(Box::new(reader)),
    }
}
