//! The listing of a checkpoint: which objects are the files of the database.
//!
//! It is accepted only if its own checksum matches, its names are those of database
//! files and of objects of no later epoch, and it lists no log.

use super::names;
use crate::envelope;
use latewood_engine::tools::{FORMAT as DATABASE_FORMAT, place_of};
use latewood_offsite::{Content, Entry, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// The format version, the only one supported.
const FORMAT: u64 = 1;

/// An object of a checkpoint, as the tablet's log names its listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListingRef {
    /// Its name below the folder of the tablet.
    pub object: String,
    /// Its length and SHA-256.
    #[serde(flatten)]
    pub content: Content,
}

/// The listing that a record of the log names.
impl From<&envelope::Checkpoint> for ListingRef {
    fn from(named: &envelope::Checkpoint) -> Self {
        let digits = named.sha256.iter().map(|byte| format!("{byte:02x}"));
        Self {
            object: named.manifest.clone(),
            content: Content {
                bytes: named.bytes,
                sha256: digits.collect(),
            },
        }
    }
}

impl ListingRef {
    /// The bytes of its SHA-256.
    pub fn sha256(&self) -> [u8; 32] {
        let (mut digest, digits) = ([0; 32], &self.content.sha256);
        for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
            let pair = digits.get(at..at + 2);
            *byte = pair
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .expect("a digest is written as 64 hexadecimal digits");
        }
        digest
    }
}

/// One file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its path in the database, its length and SHA-256.
    #[serde(flatten)]
    pub file: Entry,
    /// The object that has its bytes, below the folder of the tablet.
    pub object: String,
}

impl Row {
    /// Whether it is a block, which is fetched when it is needed.
    pub(crate) fn is_block(&self) -> bool {
        let folder = self.file.path.split_once('/');
        folder.is_some_and(|(folder, _)| folder == latewood_engine::names::BLOCKS)
    }
}

/// All files of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    format: u64,
    /// The version of the program that wrote it.
    pub made_by: String,
    /// When it was written, milliseconds since 1970.
    pub made_at_ms: i64,
    /// The cluster.
    pub cluster: String,
    /// The tablet.
    pub tablet: u32,
    /// The epoch of its writer.
    pub epoch: u64,
    /// Its number: one more than that of the checkpoint before it.
    pub number: u64,
    /// The files, by path.
    pub files: Vec<Row>,
    sha256: String,
}

#[derive(Deserialize)]
struct Version {
    format: u64,
}

impl Listing {
    /// The listing of these files.
    pub(super) fn new(
        cluster: &str,
        tablet: u32,
        epoch: u64,
        number: u64,
        mut files: Vec<Row>,
        made_at_ms: i64,
    ) -> Self {
        files.sort_by(|one, other| one.file.path.cmp(&other.file.path));
        let mut listing = Self {
            format: FORMAT,
            made_by: format!("latewood {}", env!("CARGO_PKG_VERSION")),
            made_at_ms,
            cluster: cluster.to_owned(),
            tablet,
            epoch,
            number,
            files,
            sha256: String::new(),
        };
        listing.sha256 = listing.sum();
        listing
    }

    /// The row of a file.
    pub fn row(&self, path: &str) -> Option<&Row> {
        let by_path = |row: &Row| row.file.path.as_str().cmp(path);
        let at = self.files.binary_search_by(by_path).ok()?;
        self.files.get(at)
    }

    /// The blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Row> {
        self.files.iter().filter(|row| row.is_block())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|row| row.file.content.bytes).sum()
    }

    /// The bytes of the object.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes =
            serde_json::to_vec_pretty(self).expect("text and numbers can be written as JSON");
        bytes.push(b'\n');
        bytes
    }

    /// The listing in the bytes of the object `called`.
    ///
    /// # Errors
    /// `Version` for another version, `Damaged` for bytes that [`Listing::encode`]
    /// does not write.
    pub(super) fn decode(bytes: &[u8], called: &str) -> Result<Self, Error> {
        let unreadable = |error| Error::damaged(format!("{called}: {error}"));
        let version: Version = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version.format != FORMAT {
            return Err(Error::Version {
                what: "the listing of a checkpoint",
                found: version.format,
                known: FORMAT,
            });
        }
        let listing: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        if listing.sum() != listing.sha256 {
            let what = format!("{called}: the list does not match its checksum");
            return Err(Error::damaged(what));
        }
        match listing.fault() {
            None => Ok(listing),
            Some(fault) => Err(Error::damaged(format!("{called}: {fault}"))),
        }
    }

    /// What no checkpoint has.
    fn fault(&self) -> Option<String> {
        let mut seen = BTreeSet::new();
        for Row { file, object } in &self.files {
            let path = &file.path;
            let is_file = place_of(Path::new(""), path).is_some();
            let is_log = path.split('/').next() == Some(latewood_engine::names::LOG);
            if !is_file || is_log || !seen.insert(path) {
                return Some(format!("invalid or duplicate file {path:?}"));
            }
            if names::epoch(object).is_none_or(|epoch| epoch > self.epoch) {
                return Some(format!("invalid object {object:?}"));
            }
        }
        let is_sorted = self.files.is_sorted_by_key(|row| &row.file.path);
        (!is_sorted || self.row(DATABASE_FORMAT).is_none())
            .then(|| format!("the files are not in order, or {DATABASE_FORMAT} is missing"))
    }

    /// Its checksum: over a line `CLUSTER TABLET EPOCH NUMBER` and one line
    /// `SHA-256 BYTES PATH OBJECT` for each file.
    fn sum(&self) -> String {
        let (cluster, tablet) = (&self.cluster, self.tablet);
        let mut lines = format!("{cluster} {tablet} {} {}\n", self.epoch, self.number);
        for Row { file, object } in &self.files {
            let _ = writeln!(lines, "{} {object}", file.line());
        }
        Content::of(lines.as_bytes()).sha256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, object: &str) -> Row {
        Row {
            file: Entry {
                path: path.to_owned(),
                content: Content::of(path.as_bytes()),
            },
            object: object.to_owned(),
        }
    }

    fn format_row() -> Row {
        row("FORMAT", "0000000000000007/FORMAT-0000000000000001.00")
    }

    fn listing(files: Vec<Row>) -> Listing {
        Listing::new("main", 3, 7, 1, files, 5)
    }

    #[test]
    fn a_digest_is_the_same_in_the_log_and_in_the_store() {
        let at = ListingRef {
            object: "1/listing".to_owned(),
            content: Content::of(b"abc"),
        };
        let named = envelope::Checkpoint {
            manifest: at.object.clone(),
            sha256: at.sha256(),
            bytes: at.content.bytes,
            begin: 3,
            state: envelope::State::START,
        };
        assert_eq!(ListingRef::from(&named), at);
    }

    #[test]
    fn what_is_written_is_read() {
        let block = "blocks/block-0000000000000001.blk";
        let object = format!("0000000000000002/{block}.00");
        let written = listing(vec![row(block, &object), format_row()]);
        assert_eq!(Listing::decode(&written.encode(), "x").unwrap(), written);
        assert_eq!(written.row(block), Some(&row(block, &object)));
        assert_eq!(written.row("MANIFEST"), None);
    }

    #[test]
    fn nothing_altered_is_taken() {
        let good = String::from_utf8(listing(vec![format_row()]).encode()).unwrap();
        for (from, to, wanted) in [
            ("\"main\"", "\"mean\"", "checksum"),
            ("\"tablet\": 3", "\"tablet\": 4", "checksum"),
            ("\"epoch\": 7", "\"epoch\": 8", "checksum"),
            ("\"number\": 1", "\"number\": 2", "checksum"),
            ("\"bytes\": 6", "\"bytes\": 7", "checksum"),
            ("0001.00", "0002.00", "checksum"),
            ("\"format\": 1", "\"format\": 2", "format version 2"),
            ("{", "", "x: "),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good);
            let refused = Listing::decode(text.as_bytes(), "x").unwrap_err();
            assert!(refused.to_string().contains(wanted), "{refused}");
        }
    }

    #[test]
    fn nothing_is_listed_that_no_checkpoint_has() {
        let log = "wal/segment-0000000000000001.wal";
        for (files, wanted) in [
            (vec![], "FORMAT is missing"),
            (vec![format_row(), format_row()], "duplicate"),
            (
                vec![format_row(), row("../x", "0000000000000007/x")],
                "../x",
            ),
            (vec![format_row(), row(log, "0000000000000007/x")], log),
            // A later epoch, and another tablet.
            (vec![row("FORMAT", "0000000000000008/x")], "invalid object"),
            (
                vec![row("FORMAT", "../0000000000000007/x")],
                "invalid object",
            ),
        ] {
            let refused = Listing::decode(&listing(files).encode(), "x").unwrap_err();
            assert!(refused.to_string().contains(wanted), "{refused}");
        }
    }
}
