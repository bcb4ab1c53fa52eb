//! The files that exports write.

use crate::error::{Doing, Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A new file; `-` is standard output.
///
/// # Errors
/// Where the file is there already, which may be the only copy, or cannot be created.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    match File::create_new(path) {
        Ok(file) => Ok(Box::new(BufWriter::new(file))),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(is_there(path)),
        Err(error) => Err(error).doing(format!("create {}", path.display())),
    }
}

/// Refuses a file that is there already.
///
/// # Errors
/// That it is.
pub(crate) fn require_new(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(is_there(path)),
        Err(_) => Ok(()),
    }
}

fn is_there(path: &Path) -> Error {
    Error::Failed(format!("{} already exists", path.display()))
}
