//! Rows of a query as columns, for callers that need all rows at once.

use super::Sink;
use std::ops::ControlFlow;

/// Rows in order: a timestamp each, and `width` values each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// One for each row.
    pub timestamps: Vec<i64>,
    /// `width` for each row, row after row.
    pub values: Vec<f64>,
    /// Values of one row; 0 until the first row.
    pub width: usize,
}

impl Sink for Columns {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        self.timestamps.extend_from_slice(timestamps);
        self.values.extend_from_slice(values);
        self.width = width;
        ControlFlow::Continue(())
    }
}
