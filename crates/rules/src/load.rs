//! Rule files on disk: by name, or by a pattern with `*`.

use crate::fault::Fault;
use crate::file::RuleFile;
use crate::yaml::{FILE_BYTES_MAX, Place};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Reads and checks a rule file.
///
/// # Errors
/// All that is wrong with it, each with the name of the file.
pub fn file(path: &Path, ignores_unknown: bool) -> Result<RuleFile, Vec<String>> {
    let text = text(path).map_err(|error| vec![format!("{}: {error}", path.display())])?;
    RuleFile::parse(&text, ignores_unknown)
        .map_err(|faults| faults.iter().map(|fault| fault.within(path)).collect())
}

/// The text of a file, not more than a rule file may have.
///
/// # Errors
/// Where it cannot be read, is too long, or is no UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    let opened = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => {
            io::Error::new(error.kind(), "it is a link to a file that is not there")
        }
        _ => error,
    });
    read(opened?)
}

/// The same of what is read from `from`.
///
/// # Errors
/// As [`text`].
pub fn read(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    // One byte more, so that the parser says that it is too long.
    let limit = FILE_BYTES_MAX as u64 + 1;
    let read = from.take(limit).read_to_string(&mut text);
    read.map(|_| text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => io::Error::new(
            error.kind(),
            "it is no text in UTF-8, as a rule file has to be",
        ),
        _ => error,
    })
}

/// The files that a pattern names, in their order; none if no file does. A relative pattern starts
/// at `base`.
///
/// # Errors
/// Where it is no pattern.
pub fn expand(base: &Path, pattern: &str) -> Result<Vec<PathBuf>, Fault> {
    let whole = base.join(pattern);
    let fail = |why: &str| Fault::at(Place::default(), format!("{pattern}: {why}"));
    let Some(whole) = whole.to_str() else {
        return Err(fail("the name is no UTF-8"));
    };
    let found = glob::glob(whole).map_err(|error| fail(error.msg))?;
    // What may not be read is no file that it names.
    Ok(found.filter_map(Result::ok).collect())
}
