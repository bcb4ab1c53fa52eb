//! Rows as record batches of Arrow: a dictionary-encoded column of text for each label (null where a
//! series does not have it), `__timestamp__` in milliseconds UTC and `__value__`.

use super::table::{TIMESTAMP, VALUE};
use crate::http::answer::Answer;
use crate::http::read::walk::Part;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use axum::http::StatusCode;
use std::fmt::Display;
use std::sync::Arc;

/// Those of the batch under way.
pub(super) struct Rows {
    labels: Vec<String>,
    columns: Vec<StringDictionaryBuilder<Int32Type>>,
    timestamps: Vec<i64>,
    values: Vec<f64>,
    schema: SchemaRef,
}

impl Rows {
    /// None, with these labels.
    pub(super) fn new(labels: Vec<String>) -> Self {
        let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let mut fields: Vec<_> = labels
            .iter()
            .map(|name| Field::new(name, text.clone(), true))
            .collect();
        fields.push(Field::new(TIMESTAMP, time, false));
        fields.push(Field::new(VALUE, DataType::Float64, false));
        Self {
            columns: labels
                .iter()
                .map(|_| StringDictionaryBuilder::new())
                .collect(),
            labels,
            timestamps: Vec::new(),
            values: Vec::new(),
            schema: Arc::new(Schema::new(fields)),
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many labels there are.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Adds those of a part.
    ///
    /// # Errors
    /// Where Arrow refuses a label.
    pub(super) fn put(&mut self, part: &Part<'_>) -> Result<(), Answer> {
        let rows = part.timestamps.len();
        let mut held = part.labels.iter().peekable();
        // Both are sorted.
        for (name, column) in self.labels.iter().zip(&mut self.columns) {
            match held.next_if(|(held, _)| held == name) {
                Some((_, value)) => {
                    column.append_n(value, rows).map_err(failed)?;
                }
                None => column.append_nulls(rows),
            }
        }
        self.timestamps.extend_from_slice(part.timestamps);
        self.values.extend_from_slice(part.values);
        Ok(())
    }

    /// Takes them out as a batch, if there are any. Each has dictionaries of its own, so that nothing
    /// grows with the number of series that went before.
    ///
    /// # Errors
    /// Where Arrow refuses the batch.
    pub(super) fn take(&mut self) -> Result<Option<RecordBatch>, Answer> {
        if self.timestamps.is_empty() {
            return Ok(None);
        }
        self.batch().map(Some).map_err(failed)
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

/// What Arrow or Parquet refuses.
pub(super) fn failed(error: impl Display) -> Answer {
    let text = format!("the rows cannot be written: {error}");
    Answer::new(StatusCode::INTERNAL_SERVER_ERROR, text)
}
