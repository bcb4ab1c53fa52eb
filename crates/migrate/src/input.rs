//! Files to import: `-` is standard input, and what is compressed with gzip is inflated, whatever
//! its name.
//!
//! Tested by `crates/server/tests/migrate/` and the fuzz targets of the formats.

use crate::error::{Doing, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes of the read buffer.
const BUFFER_BYTES: usize = 256 * 1024;
/// The first bytes of a gzip file, RFC 1952.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a file.
///
/// # Errors
/// Those of the file, with its name.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>> {
    let doing = || format!("open {}", path.display());
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).doing(doing())?)
    };
    inflated(BufReader::with_capacity(BUFFER_BYTES, file)).doing(doing())
}

/// What the file holds, compressed or not.
///
/// # Errors
/// Those of the reader.
pub(crate) fn inflated<'a>(mut reader: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(if reader.fill_buf()?.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(reader))
    } else {
        Box::new(reader)
    })
}
