//! Every file name of a database directory, spelled once.
//!
//! ```text
//! DIR/LOCK                              held by the process that serves DIR
//! DIR/FORMAT                            the version of the directory's layout
//! DIR/FORMAT.new                        FORMAT while it is being written
//! DIR/wal/segment-0000000000000001.wal  log segments by number, hexadecimal
//! ```
//! Parsing and building stand side by side and are tested as a round trip.

use std::path::{Path, PathBuf};

/// The lock file.
pub(crate) const LOCK: &str = "LOCK";
/// The file that names the directory's format version.
pub(crate) const FORMAT: &str = "FORMAT";
/// The name FORMAT has until it is whole.
pub(crate) const FORMAT_NEW: &str = "FORMAT.new";
/// The folder of the log.
pub(crate) const WAL: &str = "wal";

const SEGMENT_PREFIX: &str = "segment-";
const SEGMENT_SUFFIX: &str = ".wal";

/// The folder of the log inside the database directory `dir`.
pub(crate) fn wal_dir(dir: &Path) -> PathBuf {
    dir.join(WAL)
}

/// The file name of log segment `number`.
pub(crate) fn segment(number: u64) -> String {
    format!("{SEGMENT_PREFIX}{number:016x}{SEGMENT_SUFFIX}")
}

/// The number of the log segment that `name` names, if it names one.
pub(crate) fn parse_segment(name: &str) -> Option<u64> {
    let digits = name
        .strip_prefix(SEGMENT_PREFIX)?
        .strip_suffix(SEGMENT_SUFFIX)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    // Only the spelling that `segment` builds: no sign, no capitals, no gaps.
    (segment(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_names_round_trip_and_sort_by_number() {
        let numbers = [0, 1, 9, 10, 15, 16, 255, 1 << 40, u64::MAX];
        let names: Vec<String> = numbers.map(segment).to_vec();
        assert!(names.is_sorted());
        for (number, name) in numbers.into_iter().zip(&names) {
            assert_eq!(parse_segment(name), Some(number));
        }
    }

    #[test]
    fn other_names_are_no_segments() {
        for name in [
            "",
            "LOCK",
            "segment-.wal",
            "segment-1.wal",
            "segment-000000000000000A.wal",
            "segment-+00000000000000a.wal",
            "segment-0000000000000001.wal.bak",
            "segment-00000000000000001.wal",
        ] {
            assert_eq!(parse_segment(name), None, "{name}");
        }
    }
}
