//! An Arrow IPC stream: record batches with a dictionary-encoded column of text
//! for each label (null where a series does not have it), `__timestamp__` in
//! milliseconds UTC and `__value__`.
//!
//! Each batch has dictionaries of its own, so that nothing grows with the
//! number of series that went before.

use super::table::{TIMESTAMP, VALUE};
use crate::http::answer::Answer;
use crate::http::read::walk::Part;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMillisecondArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use axum::http::StatusCode;
use std::sync::Arc;

/// The batch under way, and the stream.
pub(super) struct Writer {
    labels: Vec<String>,
    columns: Vec<StringDictionaryBuilder<Int32Type>>,
    timestamps: Vec<i64>,
    values: Vec<f64>,
    /// The first thing that went wrong.
    failure: Option<ArrowError>,
    schema: SchemaRef,
    stream: StreamWriter<Vec<u8>>,
}

impl Writer {
    /// How many labels there are.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Batches with these labels.
    ///
    /// # Errors
    /// Where the schema cannot be written.
    pub(super) fn new(labels: Vec<String>) -> Result<Self, Answer> {
        let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let mut fields: Vec<_> = labels
            .iter()
            .map(|name| Field::new(name, text.clone(), true))
            .collect();
        fields.push(Field::new(TIMESTAMP, time, false));
        fields.push(Field::new(VALUE, DataType::Float64, false));
        let schema = Arc::new(Schema::new(fields));
        let stream = StreamWriter::try_new(Vec::new(), &schema).map_err(failed)?;
        Ok(Self {
            columns: labels
                .iter()
                .map(|_| StringDictionaryBuilder::new())
                .collect(),
            labels,
            timestamps: Vec::new(),
            values: Vec::new(),
            failure: None,
            schema,
            stream,
        })
    }

    /// Adds rows to the batch.
    pub(super) fn put(&mut self, part: &Part<'_>) {
        let rows = part.timestamps.len();
        let mut held = part.labels.iter().peekable();
        // Both are sorted.
        for (name, column) in self.labels.iter().zip(&mut self.columns) {
            match held.next_if(|(held, _)| held == name) {
                Some((_, value)) => {
                    if let Err(error) = column.append_n(value, rows) {
                        self.failure.get_or_insert(error);
                    }
                }
                None => column.append_nulls(rows),
            }
        }
        self.timestamps.extend_from_slice(part.timestamps);
        self.values.extend_from_slice(part.values);
    }

    /// Writes the batch to `out`, and the end of the stream behind the last.
    ///
    /// # Errors
    /// Where Arrow refuses the batch.
    pub(super) fn end_piece(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<(), Answer> {
        if let Some(error) = self.failure.take() {
            return Err(failed(error));
        }
        if !self.timestamps.is_empty() {
            let batch = self.batch().map_err(failed)?;
            self.stream.write(&batch).map_err(failed)?;
        }
        if is_last {
            self.stream.finish().map_err(failed)?;
        }
        out.append(self.stream.get_mut());
        Ok(())
    }

    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let labels = self.columns.iter_mut();
        let mut columns: Vec<ArrayRef> = labels
            .map(|column| Arc::new(column.finish()) as ArrayRef)
            .collect();
        let times = TimestampMillisecondArray::from(std::mem::take(&mut self.timestamps));
        columns.push(Arc::new(times.with_timezone("UTC")));
        let values = Float64Array::from(std::mem::take(&mut self.values));
        columns.push(Arc::new(values));
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

fn failed(error: ArrowError) -> Answer {
    let text = format!("the answer cannot be written as Arrow: {error}");
    Answer::new(StatusCode::INTERNAL_SERVER_ERROR, text)
}
