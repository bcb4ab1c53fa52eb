//! The catalogue of the files on disk: the manifest and the series files.
//!
//! The *manifest* names every block and every series file of the database and is
//! replaced as a whole: a crash leaves the old or the new one. A *series file*
//! holds all series of one partition, without their samples; files of changes may follow it, and
//! parked series are in files of their own. What
//! none of them holds is in the log, from the position of each series on.
//!
//! Opening a database decides by one table ([`table`]) what the directory is.
//! [`crate::recovery`] then loads the series files, replays the log over them and
//! rebuilds what follows from both. From then on [`crate::keyspace`] changes the
//! set of files: `publish` adds and removes files, `clear` removes all, and a `pin`
//! keeps files while they are copied.
//!
//! Lock order: the manifest's lock comes before those of the shards. Tested by the
//! unit tests of this folder and by `tests/db_store`.

pub(crate) mod bytes;
#[cfg(test)]
pub(crate) mod chance;
pub(crate) mod directory;
pub(crate) mod doubt;
#[cfg(any(test, fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
pub(crate) mod late_tally;
pub(crate) mod manifest;
pub(crate) mod parked;
pub(crate) mod row;
mod row_code;
pub(crate) mod series_file;
pub(crate) mod table;
pub(crate) mod verdict;

pub(crate) use directory::Directory;
pub use doubt::{Doubt, DoubtKind, LostBlock};
pub(crate) use manifest::{ChangesMeta, Manifest, PartitionFiles, SeriesFileMeta};
pub(crate) use row::{DirtyRow, RuleRow, SeriesRow, SourceRow};
pub(crate) use series_file::{SeriesFileReader, SeriesFileWriter};
pub(crate) use verdict::LogFound;
