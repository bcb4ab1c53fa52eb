//! Series files: all series of one partition, in order of their ids, or those that changed since
//! the files before, or those that are parked.
//!
//! A file is written and read front to back, a *section* of some hundred KiB at a
//! time, so that neither needs memory for more. Each section is compressed
//! separately. Its checksum is verified before its rows are used, and the footer
//! verifies the checksums of all sections. A file of parked series has short sections, *pages*,
//! and behind them the labels from pair to rows, the hashes of the keys and a directory, so that a
//! row, or the rows that carry a label, are found with one short read ([`ParkedFile`]). The bytes are described in
//! `docs/format/series.md`. Tested by `series_file/tests.rs`, by the golden files
//! and by the fuzz target `series_file`.

mod directory;
mod expiries;
mod format;
#[cfg(any(test, fuzzing, feature = "fuzzing"))]
pub(super) mod fuzz;
mod label_blocks;
mod labels;
mod links;
mod lookups;
mod paged;
mod pages;
mod pairs;
mod postings;
mod reader;
mod sections;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use paged::ParkedFile;
pub(crate) use reader::SeriesFileReader;
pub(crate) use writer::SeriesFileWriter;
