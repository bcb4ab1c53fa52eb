//! The aggregation `quantile`: it needs all values of a group at once.

use crate::column::Column;
use crate::exec::chunks::for_columns;
use crate::exec::grouping::{Grouping, Groups};
use crate::exec::param::{Param, Values};
use crate::exec::quantile::quantile;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::number::general;
use rayon::prelude::*;

/// A quantile of each group.
pub(crate) struct Quantiles {
    input: Node,
    grouping: Grouping,
    steps: usize,
    param: Param,
    columns: Vec<Column>,
    series: Vec<Series>,
}

impl Quantiles {
    pub(crate) fn new(input: Node, grouping: Grouping, steps: usize, param: Param) -> Self {
        Self {
            input,
            grouping,
            steps,
            param,
            columns: Vec::new(),
            series: Vec::new(),
        }
    }

    fn warn(&self, param: &Values, ctx: &Context<'_>) {
        let wrong = [
            param.has_nan.then_some(f64::NAN),
            (param.max > 1.0).then_some(param.max),
            (param.min < 0.0).then_some(param.min),
        ];
        for got in wrong.into_iter().flatten().map(general) {
            let text = format!("quantile value should be between 0 and 1, got {got}");
            ctx.annotate(|annotations| annotations.warn(text, self.param.place));
        }
    }

    /// Takes in the groups of a batch, whose members are all held.
    fn take(&mut self, groups: &Groups, batch: &[usize], columns: &[Column], param: &Values) {
        let mut next = 0;
        let members: Vec<&[Column]> = batch
            .iter()
            .map(|group| {
                let first = next;
                next += groups.members[*group].len();
                &columns[first..next]
            })
            .collect();
        let steps = self.steps;
        let results: Vec<Column> = members
            .par_iter()
            .map(|columns| quantiles(columns, steps, param))
            .collect();
        for (group, column) in batch.iter().zip(results) {
            if !column.is_empty() {
                self.columns.push(column);
                self.series.push(groups.series[*group].clone());
            }
        }
    }
}

/// The quantile of the columns at each step.
fn quantiles(columns: &[Column], steps: usize, param: &Values) -> Column {
    let all: Vec<usize> = (0..steps).collect();
    let values: Vec<Option<f64>> = all
        .par_iter()
        .with_min_len(64)
        .map_init(Vec::new, |values: &mut Vec<f64>, step| {
            values.clear();
            values.extend(columns.iter().filter_map(|column| column.get(*step)));
            (!values.is_empty()).then(|| quantile(param.at(*step), values))
        })
        .collect();
    let mut out = Column::default();
    out.reset(steps);
    for (step, value) in values.into_iter().enumerate() {
        if let Some(value) = value {
            out.set(step, value);
        }
    }
    out
}

/// Columns that are held at a time, bytes, unless one group has more.
const BATCH_BYTES: usize = 64 << 20;

impl Operator for Quantiles {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let param = self.param.values(ctx)?;
        self.input.prepare(ctx)?;
        self.warn(&param, ctx);
        let groups = self.grouping.groups(self.input.series());
        let column_bytes = Column::len_bytes(self.steps);
        let mut first = 0;
        while first < groups.members.len() {
            let mut wanted = Vec::new();
            let mut batch = Vec::new();
            while let Some(members) = groups.members.get(first) {
                let bytes = (wanted.len() + members.len()).saturating_mul(column_bytes);
                if !batch.is_empty() && bytes > BATCH_BYTES {
                    break;
                }
                wanted.extend_from_slice(members);
                batch.push(first);
                first += 1;
            }
            let bytes = wanted.len().saturating_mul(column_bytes);
            ctx.hold(bytes)?;
            ctx.hold(batch.len() * column_bytes)?;
            let mut columns = Vec::with_capacity(wanted.len());
            for_columns(&*self.input, &wanted, self.steps, ctx, |_, made| {
                columns.extend(made.iter_mut().map(std::mem::take));
                Ok(())
            })?;
            self.take(&groups, &batch, &columns, &param);
            ctx.release(bytes);
        }
        Ok(())
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn column(
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
