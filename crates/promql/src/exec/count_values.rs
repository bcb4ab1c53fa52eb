//! `count_values`: a series for each value of each group.

use crate::column::Column;
use crate::exec::chunks::for_columns;
use crate::exec::grouping::Grouping;
use crate::exec::tally::Tally;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::Labels;
use crate::number::plain;
use crate::quote::quoted;
use crate::tree::Text;
use std::collections::HashMap;

/// How many series of each group have a value.
pub(crate) struct CountValues {
    label: String,
    grouping: Grouping,
    input: Node,
    steps: usize,
    columns: Vec<Column>,
    series: Vec<Series>,
}

impl CountValues {
    /// # Errors
    /// Where `label` is empty or not UTF-8.
    pub(crate) fn new(
        label: &Text,
        grouping: Grouping,
        input: Node,
        steps: usize,
    ) -> Result<Self, EvalError> {
        if label.value.is_empty() {
            let name = quoted(label.bytes());
            return Err(EvalError::Query(format!("invalid label name {name}")));
        }
        Ok(Self {
            label: label.value.clone(),
            grouping: grouping.keeping(&label.value),
            input,
            steps,
            columns: Vec::new(),
            series: Vec::new(),
        })
    }
}

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

impl Operator for CountValues {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        let series = self.input.series();
        let bare = |at: usize| series[at].labels.with(&self.label, "");
        let mut bare_places: HashMap<Labels, usize> = HashMap::new();
        // By bare labels and value, and by the labels of the result.
        let mut places: HashMap<(usize, u64), usize> = HashMap::new();
        let mut results: HashMap<Labels, usize> = HashMap::new();
        let all: Vec<usize> = (0..series.len()).collect();
        let (columns, made) = (&mut self.columns, &mut self.series);
        let mut tally = Tally::new(ctx);
        for_columns(&*self.input, &all, self.steps, ctx, |wanted, inputs| {
            for (at, input) in wanted.iter().zip(inputs) {
                let bare = bare(*at);
                let next = bare_places.len();
                tally.add(PLACE_BYTES + bare.own_bytes())?;
                let group = *bare_places.entry(bare.clone()).or_insert(next);
                for step in input.present() {
                    let value = input.values[step];
                    let place = match places.get(&(group, key(value))) {
                        Some(place) => *place,
                        None => {
                            let labels = bare.with(&self.label, &plain(value));
                            let labels = self.grouping.labels(&labels);
                            tally.add(2 * PLACE_BYTES + labels.own_bytes())?;
                            let next = made.len();
                            let place = *results.entry(labels.clone()).or_insert(next);
                            if place == next {
                                tally.add(SERIES_BYTES + Column::len_bytes(self.steps))?;
                                made.push(Series::new(labels));
                                let mut column = Column::default();
                                column.reset(self.steps);
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
        })
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        at: usize,
        _: &Context<'_>,
        _: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        out.clone_from(&self.columns[at]);
        Ok(())
    }
}
