//! The catalogue of what is on disk: the manifest and the series files.
//!
//! The *manifest* names every block and every series file of the database and
//! is replaced as a whole: a crash shows the old one or the new one. A *series
//! file* holds all series of one partition, their samples aside.

mod bytes;
#[cfg(test)]
mod chance;
mod manifest;
mod row;
mod row_code;
mod series_file;

pub(crate) use manifest::{Manifest, PartitionFiles, SeriesFileMeta};
pub(crate) use row::{MarksRow, RuleRow, SeriesRow, SourceRow};
pub(crate) use series_file::{SeriesFileReader, SeriesFileWriter};
