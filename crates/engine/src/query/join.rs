//! Rows of several series side by side, as TS.NRANGE shows them.
//!
//! A row for every timestamp that any of them has; where one has none, its
//! values are NaN. Tested by `tests/query_many.rs` against a naive twin.

use super::rows::Rows;
use super::{Columns, Sink};

/// Joins columns that all ascend in time, or all descend if `reverse`. A row
/// has `widths[i]` values of `columns[i]`, in their order; there are at most
/// `count` rows. Linear in the values given to `sink`.
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
            (0..width).map(move |i| match there {
                true => column.values[place * width + i],
                false => f64::NAN,
            })
        });
        if rows.push(timestamp, row).is_break() {
            return;
        }
        for (column, place) in columns.iter().zip(&mut places) {
            *place += usize::from(column.timestamps.get(*place) == Some(&timestamp));
        }
    }
    // A sink that has enough is no error.
    let _ = rows.flush();
}
