//! Joins the rows of several series by timestamp, for TS.NRANGE.
//!
//! A row for every timestamp of any series; the values of a series without the
//! timestamp are NaN. Tested by `tests/query_many.rs` against a naive twin.

use super::rows::Rows;
use super::{Columns, Sink};

/// Joins columns that all ascend in time, or all descend if `reverse`. A row has
/// `widths[i]` values of `columns[i]`, in order; there are at most `count` rows.
/// Linear in the values passed to `sink`.
pub fn join(
    columns: &[Columns],
    widths: &[usize],
    reverse: bool,
    count: Option<u64>,
    sink: &mut dyn Sink,
) {
    let mut rows = Rows::new(sink, widths.iter().sum(), count);
    if rows.full() {
        return;
    }
    let mut places = vec![0; columns.len()];
    loop {
        let heads = columns
            .iter()
            .zip(&places)
            .filter_map(|(column, &place)| column.timestamps.get(place).copied());
        let next = if reverse { heads.max() } else { heads.min() };
        let Some(timestamp) = next else {
            break;
        };
        let parts = columns.iter().zip(&places).zip(widths);
        let row = parts.flat_map(|((column, &place), &width)| {
            let there = column.timestamps.get(place) == Some(&timestamp);
            (0..width).map(move |i| {
                if there {
                    column.values[place * width + i]
                } else {
                    f64::NAN
                }
            })
        });
        if rows.push(timestamp, row).is_break() {
            return;
        }
        for (column, place) in columns.iter().zip(&mut places) {
            *place += usize::from(column.timestamps.get(*place) == Some(&timestamp));
        }
    }
    // It is not an error if the sink needs no more rows.
    let _ = rows.flush();
}
