//! The names of all files in a database directory.
//!
//! ```text
//! DIR/LOCK                              held by the process that serves DIR
//! DIR/FORMAT                            the version of the directory's layout
//! DIR/FORMAT.new                        FORMAT while it is being written
//! DIR/MANIFEST                          the list of blocks and series files
//! DIR/MANIFEST.new                      MANIFEST while it is being written
//! DIR/METADATA                          type, help and unit of metrics
//! DIR/METADATA.new                      METADATA while it is being written
//! DIR/REMOTE                            says that the log is elsewhere: DIR is a cache
//! DIR/wal/segment-0000000000000001.wal  log segments by number, hexadecimal
//! DIR/blocks/block-0000000000000001.blk blocks by number
//! DIR/series/series-0000000000000002.cat series files by number
//! DIR/quarantine/                       damaged files, moved out of the way
//! DIR/upload/                           a copy that is being uploaded to an object store
//! DIR/parked-keys-0                     hashes of keys; it loses its name as soon as it is there
//! ```
//! Blocks and series files share one sequence of numbers. Building and parsing of
//! names are tested as a round trip.

use std::path::{Path, PathBuf};

/// The lock file.
pub const LOCK: &str = "LOCK";
/// The file that names the directory's format version.
pub(crate) const FORMAT: &str = "FORMAT";
/// The name of FORMAT until it is complete.
pub(crate) const FORMAT_NEW: &str = "FORMAT.new";
/// The folder of the log.
pub const LOG: &str = "wal";

/// The file that lists the blocks and series files.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// The name of MANIFEST until it is complete.
pub(crate) const MANIFEST_NEW: &str = "MANIFEST.new";
/// The file of the metadata of metrics.
pub(crate) const METADATA: &str = "METADATA";
/// The name of METADATA until it is complete.
pub(crate) const METADATA_NEW: &str = "METADATA.new";
/// The file that says that the log is elsewhere.
pub(crate) const REMOTE: &str = "REMOTE";
/// The folder of the blocks.
pub const BLOCKS: &str = "blocks";
/// The folder of the series files.
pub const SERIES: &str = "series";
/// The folder of damaged files.
pub(crate) const QUARANTINE: &str = "quarantine";
/// The folder of the copy that is being uploaded.
pub(crate) const UPLOAD: &str = "upload";

/// Prefix and suffix of the names of one kind of numbered files.
struct Numbered {
    prefix: &'static str,
    suffix: &'static str,
}

const SEGMENT_NAMES: Numbered = Numbered {
    prefix: "segment-",
    suffix: ".wal",
};
const BLOCK_NAMES: Numbered = Numbered {
    prefix: "block-",
    suffix: ".blk",
};
const SERIES_NAMES: Numbered = Numbered {
    prefix: "series-",
    suffix: ".cat",
};

impl Numbered {
    fn name(&self, number: u64) -> String {
        format!("{}{number:016x}{}", self.prefix, self.suffix)
    }

    fn parse(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(self.prefix)?.strip_suffix(self.suffix)?;
        let number = u64::from_str_radix(digits, 16).ok()?;
        // Accepts only what `name` builds: no sign, no capitals, all digits.
        (self.name(number) == name).then_some(number)
    }
}

pub(crate) fn log_dir(dir: &Path) -> PathBuf {
    dir.join(LOG)
}

pub(crate) fn blocks_dir(dir: &Path) -> PathBuf {
    dir.join(BLOCKS)
}

pub(crate) fn series_dir(dir: &Path) -> PathBuf {
    dir.join(SERIES)
}

/// Begins the name that a file of fingerprints has while it is made.
const PARKED_KEYS: &str = "parked-keys-";

/// The name that a file of fingerprints has while it is made, by number.
pub(crate) fn parked_keys(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{PARKED_KEYS}{number}"))
}

/// Whether a file has such a name.
pub(crate) fn is_parked_keys(name: &str) -> bool {
    name.starts_with(PARKED_KEYS)
}

/// The folder of damaged files inside the database directory `dir`.
pub(crate) fn quarantine_dir(dir: &Path) -> PathBuf {
    dir.join(QUARANTINE)
}

pub(crate) fn segment(number: u64) -> String {
    SEGMENT_NAMES.name(number)
}

/// The number of the log segment that `name` names, if it names one.
pub(crate) fn parse_segment(name: &str) -> Option<u64> {
    SEGMENT_NAMES.parse(name)
}

pub(crate) fn block(number: u64) -> String {
    BLOCK_NAMES.name(number)
}

/// The number of the block that `name` names, if it names one.
pub(crate) fn parse_block(name: &str) -> Option<u64> {
    BLOCK_NAMES.parse(name)
}

pub(crate) fn series_file(number: u64) -> String {
    SERIES_NAMES.name(number)
}

/// The number of the series file that `name` names, if it names one.
pub(crate) fn parse_series_file(name: &str) -> Option<u64> {
    SERIES_NAMES.parse(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_names_round_trip_and_sort_by_number() {
        for sort in [SEGMENT_NAMES, BLOCK_NAMES, SERIES_NAMES] {
            let numbers = [0, 1, 9, 10, 15, 16, 255, 1 << 40, u64::MAX];
            let names: Vec<String> = numbers.map(|number| sort.name(number)).to_vec();
            assert!(names.is_sorted());
            for (number, name) in numbers.into_iter().zip(&names) {
                assert_eq!(sort.parse(name), Some(number));
            }
        }
    }

    #[test]
    fn a_name_is_of_one_sort() {
        assert_eq!(block(255), "block-00000000000000ff.blk");
        assert_eq!(series_file(2), "series-0000000000000002.cat");
        let of = |name: &str| {
            [
                parse_segment(name),
                parse_block(name),
                parse_series_file(name),
            ]
        };
        assert_eq!(of(&segment(1)), [Some(1), None, None]);
        assert_eq!(of(&block(1)), [None, Some(1), None]);
        assert_eq!(of(&series_file(1)), [None, None, Some(1)]);
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
