//! `BACKUP.json`: the list of the objects of a backup. `docs/format/backup.md`.
//!
//! Objects may have been altered: the list is accepted only if its own checksum
//! matches and every path is that of a database file.

use crate::digest::{Content, Digest};
use crate::error::{Error, Result};
use latewood_engine::tools::place_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The name of the listing; present in every finished backup.
pub const LISTING: &str = "BACKUP.json";
/// The format version, the only one supported.
const FORMAT: u64 = 1;

/// One file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the database and in the backup.
    pub path: String,
    /// Its length and SHA-256.
    #[serde(flatten)]
    pub content: Content,
}

impl Entry {
    /// Its line in the checksum of a list, without the end: `SHA-256 BYTES PATH`.
    pub fn line(&self) -> String {
        let Content { bytes, sha256 } = &self.content;
        format!("{sha256} {bytes} {}", self.path)
    }
}

/// All files of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    format: u64,
    /// The version of the program that wrote it.
    pub made_by: String,
    /// Time of the backup, milliseconds since 1970.
    pub made_at_ms: u64,
    /// The files, by path.
    pub files: Vec<Entry>,
    /// Checksum of the list: see [`sum`].
    sha256: String,
}

#[derive(Deserialize)]
struct Version {
    format: u64,
}

impl Listing {
    /// The listing of these files.
    pub fn new(mut files: Vec<Entry>, made_at_ms: u64) -> Self {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Self {
            format: FORMAT,
            made_by: format!("latewood {}", env!("CARGO_PKG_VERSION")),
            made_at_ms,
            sha256: sum(&files),
            files,
        }
    }

    /// The bytes of the object.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes =
            serde_json::to_vec_pretty(self).expect("text and numbers can be written as JSON");
        bytes.push(b'\n');
        bytes
    }

    /// The listing in these bytes.
    ///
    /// # Errors
    /// `Version` for another version, `Damaged` for bytes that [`Listing::encode`]
    /// does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let unreadable = |error: serde_json::Error| Error::damaged(format!("{LISTING}: {error}"));
        let version: Version = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version.format != FORMAT {
            return Err(Error::Version {
                what: LISTING,
                found: version.format,
                known: FORMAT,
            });
        }
        let listing: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        if sum(&listing.files) != listing.sha256 {
            return Err(Error::damaged(format!(
                "{LISTING}: the list does not match its checksum"
            )));
        }
        let mut seen = BTreeSet::new();
        for file in &listing.files {
            if place_of(Path::new(""), &file.path).is_none() || !seen.insert(&file.path) {
                return Err(Error::damaged(format!(
                    "{LISTING}: invalid or duplicate file {:?}",
                    file.path
                )));
            }
        }
        Ok(listing)
    }
}

/// The checksum of a list: over one line `SHA-256 BYTES PATH` per file.
fn sum(files: &[Entry]) -> String {
    let mut digest = Digest::default();
    for file in files {
        digest.add(file.line().as_bytes());
        digest.add(b"\n");
    }
    digest.content().sha256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Entry {
        Entry {
            path: path.to_owned(),
            content: Content {
                bytes: 27,
                sha256: "00".repeat(32),
            },
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let listing = Listing::new(vec![entry("MANIFEST"), entry("FORMAT")], 5);
        assert_eq!(Listing::decode(&listing.encode()).unwrap(), listing);
    }

    #[test]
    fn nothing_altered_is_taken() {
        let good = String::from_utf8(Listing::new(vec![entry("FORMAT")], 5).encode()).unwrap();
        for (from, to, wanted) in [
            ("FORMAT", "MANIFEST", "checksum"),
            ("27", "28", "checksum"),
            ("00", "01", "checksum"),
            ("\"format\": 1", "\"format\": 2", "format version 2"),
            ("{", "", "BACKUP.json"),
            ("files", "fires", "missing field"),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good);
            let refused = Listing::decode(text.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
        for files in [
            vec![entry("../FORMAT")],
            vec![entry("FORMAT"), entry("FORMAT")],
        ] {
            let refused = Listing::decode(&Listing::new(files, 5).encode()).unwrap_err();
            assert!(
                refused.to_string().contains("invalid or duplicate file"),
                "{refused}"
            );
        }
    }

    /// Damaged bytes are refused or list the same files.
    #[test]
    fn no_flipped_bit_and_no_cut_changes_the_files() {
        let listing = Listing::new(vec![entry("FORMAT"), entry("MANIFEST")], 5);
        let good = listing.encode();
        let mut refused = 0;
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                match Listing::decode(&bytes) {
                    Ok(read) => assert_eq!(read.files, listing.files, "bit {bit} of byte {at}"),
                    Err(_) => refused += 1,
                }
            }
            if at < good.len() - 1 {
                assert!(Listing::decode(&good[..at]).is_err(), "cut at {at}");
            }
        }
        assert!(refused > good.len() * 4, "{refused}");
    }
}
