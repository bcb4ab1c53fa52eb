//! The catalogue of what is on disk: the manifest and the series files.
//!
//! The *manifest* names every block and every series file of the database and
//! is replaced as a whole: a crash shows the old one or the new one. A *series
//! file* holds all series of one partition, their samples aside. What neither
//! holds is in the log, from the position of each series on.
//!
//! Opening a database decides by one table ([`table`]) what the directory is,
//! loads the series files ([`load`]), replays the log over them and then makes
//! what only all of it together tells ([`rebuild`]). From then on files come
//! and go by [`publish`] alone, all of them at once by [`clear`]; what is being
//! copied keeps its files by a [`pin`].
//!
//! Lock order: the manifest's lock comes before those of the shards.
//! Tested by the unit tests of this folder and by `tests/db_store`.

mod bytes;
#[cfg(test)]
mod chance;
pub(crate) mod directory;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod lost;
pub(crate) mod manifest;
pub(crate) mod row;
mod row_code;
pub(crate) mod series_file;
pub(crate) mod table;
pub(crate) mod verdict;

pub(crate) use directory::Directory;
pub use lost::LostBlock;
pub(crate) use manifest::{Manifest, PartitionFiles, SeriesFileMeta};
pub(crate) use row::{DirtyRow, RuleRow, SeriesRow, SourceRow};
pub(crate) use series_file::{SeriesFileReader, SeriesFileWriter};
pub(crate) use verdict::LogFound;
