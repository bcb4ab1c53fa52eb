//! A Parquet file of [`Rows`], compressed with zstd.
//!
//! The rows of a series lie together. A row group ends with a series once it has [`GROUP_ROWS_MIN`]
//! rows, or more where there are many groups, and within one at 2^20 rows or about [`GROUP_BYTES_MAX`], so
//! that its statistics tell readers which groups have what they look for. What is held is the group under
//! way, and of each before it what the end of the file says of its columns: [`Writer::held_bytes`].
//!
//! Labels stay in the dictionary of their group, however long they are: without one a page would repeat a
//! long text in each of its rows.

use super::rows::{Rows, failed};
use super::table::{TIMESTAMP, VALUE};
use crate::http::answer::Answer;
use crate::http::read::walk::Part;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

/// Rows from which on a row group ends with a series.
const GROUP_ROWS_MIN: usize = 128 << 10;
/// Bytes of a row group under way.
const GROUP_BYTES_MAX: usize = 8 << 20;
const GROUP_ROWS_MAX: usize = 1 << 20;
/// By this many rows groups are longer for each one before, so that their number stays small.
const GROUP_ROWS_GROWTH: usize = 256;
/// Values of which there are many more are not numbered.
const VALUE_DICTIONARY_BYTES: usize = 1 << 20;
/// Rows of a page at most.
const PAGE_ROWS: usize = 20_000;
/// Bytes of group and pieces: one under way, one that is made, one that waits, one that is sent.
const HELD_BYTES: usize = 4 * GROUP_BYTES_MAX;
/// What is held of a column: of the group under way, what compresses it among that, and of each group
/// before.
const COLUMN_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 1 << 10;
/// Memory is taken in steps.
const STEP_BYTES: usize = 1 << 20;
/// Labels that may be columns, each of which takes [`COLUMN_BYTES`].
pub(super) const LABELS_MAX: usize = 256;

/// The batch and the row group under way, and the file.
pub(super) struct Writer {
    pub(super) rows: Rows,
    file: ArrowWriter<Vec<u8>>,
    /// Rows of the group under way.
    group_rows: usize,
}

impl Writer {
    /// Of rows, none so far.
    ///
    /// # Errors
    /// Where the schema cannot be written.
    pub(super) fn new(rows: Rows) -> Result<Self, Answer> {
        let time = ColumnPath::from(TIMESTAMP);
        let value = ColumnPath::from(VALUE);
        let page_rows = GROUP_BYTES_MAX / size_of::<u64>() / (rows.columns() + 2);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("latewood ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_column_dictionary_enabled(time.clone(), false)
            .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
            // Those of pages would be held until the file ends.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            // Readers take the least and the greatest number for a proof that none is NaN.
            .set_column_statistics_enabled(value.clone(), EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_dictionary_page_size_limit(usize::MAX)
            .set_column_dictionary_page_size_limit(value, VALUE_DICTIONARY_BYTES)
            .set_data_page_row_count_limit(page_rows.min(PAGE_ROWS))
            .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
            .set_max_row_group_bytes(Some(GROUP_BYTES_MAX))
            .build();
        let schema = rows.schema().clone();
        let file = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map_err(failed)?;
        Ok(Self {
            rows,
            file,
            group_rows: 0,
        })
    }

    /// Bytes of memory that it holds at most; they grow with the row groups that were written.
    pub(super) fn held_bytes(&self) -> usize {
        let columns = self.rows.columns() + 2;
        let of_groups = self.groups() * CHUNK_BYTES;
        (HELD_BYTES + columns * (COLUMN_BYTES + of_groups)).next_multiple_of(STEP_BYTES)
    }

    /// How many have ended.
    fn groups(&self) -> usize {
        self.file.flushed_row_groups().len()
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn put(&mut self, part: &Part<'_>) -> Result<(), Answer> {
        let rows_min = GROUP_ROWS_MIN + self.groups() * GROUP_ROWS_GROWTH;
        if part.is_first && self.group_rows >= rows_min {
            self.write()?;
            self.file.flush().map_err(failed)?;
            self.group_rows = 0;
        }
        self.group_rows += part.timestamps.len();
        self.rows.put(part)
    }

    fn write(&mut self) -> Result<(), Answer> {
        if let Some(batch) = self.rows.take()? {
            self.file.write(&batch).map_err(failed)?;
            // It ends groups that are full.
            self.group_rows = self.file.in_progress_rows();
        }
        Ok(())
    }

    /// Brings the groups that ended to `out`, and the end of the file behind the last.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn end_piece(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<(), Answer> {
        self.write()?;
        if is_last {
            self.file.finish().map_err(failed)?;
        }
        debug_assert!(out.is_empty(), "all of a piece is written here");
        *out = std::mem::take(self.file.inner_mut());
        Ok(())
    }
}
