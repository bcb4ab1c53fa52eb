//! `count_values`: a series for each value of each group.

use crate::column::Column;
use crate::exec::chunks::for_columns;
use crate::exec::grouping::Grouping;
use crate::exec::tally::Tally;
use crate::exec::{Context, EvalError, Node, Result, Series};
use crate::labels::Labels;
use crate::number::plain;
use crate::quote::quoted;
use crate::tree::Text;
use std::collections::HashMap;

/// Bytes of an entry of a map that grows.
const PLACE_BYTES: usize = 4 * size_of::<(Labels, usize)>();
/// Bytes of a series and its column in vectors that grow.
const SERIES_BYTES: usize = 2 * (size_of::<Series>() + size_of::<Column>());

/// Values with the same text have the same key.
fn key(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

/// How many series of each group have a value.
///
/// # Errors
/// Where `label` is empty or not UTF-8.
pub(crate) fn count_values(
    label: &Text,
    grouping: &Grouping,
    input: &Node,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    if label.value.is_empty() {
        let name = quoted(label.bytes());
        return Err(EvalError::Query(format!("invalid label name {name}")));
    }
    let label = &label.value;
    let grouping = grouping.keeping(label);
    let mut bare_places: HashMap<Labels, usize> = HashMap::new();
    // By bare labels and value, and by the labels of the result.
    let mut places: HashMap<(usize, u64), usize> = HashMap::new();
    let mut results: HashMap<Labels, usize> = HashMap::new();
    let (mut columns, mut made) = (Vec::<Column>::new(), Vec::new());
    let mut tally = Tally::new(ctx);
    for_columns(input, &input.all(), steps, ctx, |wanted, inputs| {
        for (at, values) in wanted.iter().zip(inputs) {
            let bare = input.series()[*at].labels.with(label, "");
            let next = bare_places.len();
            tally.add(PLACE_BYTES + bare.own_bytes())?;
            let group = *bare_places.entry(bare.clone()).or_insert(next);
            for step in values.present() {
                let value = values.values[step];
                let place = match places.get(&(group, key(value))) {
                    Some(place) => *place,
                    None => {
                        let labels = grouping.labels(&bare.with(label, &plain(value)));
                        tally.add(2 * PLACE_BYTES + labels.own_bytes())?;
                        let next = made.len();
                        let place = *results.entry(labels.clone()).or_insert(next);
                        if place == next {
                            tally.add(SERIES_BYTES + Column::len_bytes(steps))?;
                            made.push(Series::new(labels));
                            let mut column = Column::default();
                            column.reset(steps);
                            columns.push(column);
                        }
                        places.insert((group, key(value)), place);
                        place
                    }
                };
                let count = columns[place].get(step).unwrap_or(0.0) + 1.0;
                columns[place].set(step, count);
            }
        }
        tally.settle()
    })?;
    Ok(Node::held(made, columns))
}
