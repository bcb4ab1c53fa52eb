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
    fn take(
        &self,
        groups: &Groups,
        batch: &[usize],
        columns: &[Column],
        param: &Values,
        ctx: &Context<'_>,
    ) -> Result<Vec<Made>, EvalError> {
        let mut next = 0;
        let parts = batch.iter().map(|group| {
            let first = next;
            next += groups.members[*group].len();
            (*group, &columns[first..next])
        });
        let parts: Vec<(usize, &[Column])> = parts.collect();
        let made = parts.par_iter().filter_map(|(group, columns)| {
            let first = columns.iter().position(|column| !column.is_empty())?;
            let made = quantiles(columns, self.steps, param, ctx).map(|column| Made {
                group: *group,
                first: groups.members[*group][first],
                column,
            });
            Some(made)
        });
        ctx.apart(|| made.collect())
    }
}

/// The column of a group with a sample.
struct Made {
    group: usize,
    /// The first series with a sample.
    first: usize,
    column: Column,
}

/// Steps that a thread computes at a time: those of a word of bits.
const STEPS: usize = 64;

/// The quantile of the columns at each step.
fn quantiles(
    columns: &[Column],
    steps: usize,
    param: &Values,
    ctx: &Context<'_>,
) -> Result<Column, EvalError> {
    let mut out = Column::default();
    out.reset(steps);
    let of = |values: &mut Vec<f64>, step: usize| {
        values.clear();
        values.extend(columns.iter().filter_map(|column| column.get(step)));
        (!values.is_empty()).then(|| quantile(param.at(step), values))
    };
    let parts = out.values.par_chunks_mut(STEPS).enumerate();
    let words: Result<Vec<u64>, EvalError> = parts
        .map_init(Vec::new, |values, (part, results)| {
            let mut word = 0;
            let part = ctx.own(|| {
                ctx.with_scratch(|scratch| {
                    for (at, result) in results.iter_mut().enumerate() {
                        scratch.pace.pass(columns.len(), ctx)?;
                        if let Some(value) = of(values, part * STEPS + at) {
                            *result = value;
                            word |= 1 << at;
                        }
                    }
                    Ok(())
                })
            });
            part.map(|()| word)
        })
        .collect();
    out.words_mut().copy_from_slice(&words?);
    Ok(out)
}

/// Columns that are held at a time, bytes, unless one group has more.
const BATCH_BYTES: usize = 64 << 20;

impl Operator for Quantiles {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let param = self.param.values(ctx)?;
        self.input.prepare(ctx)?;
        self.warn(&param, ctx);
        let groups = self.grouping.groups(self.input.series(), ctx)?;
        let column_bytes = Column::len_bytes(self.steps);
        let mut made = Vec::new();
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
            for_columns(&*self.input, &wanted, self.steps, ctx, |_, computed| {
                columns.extend(computed.iter_mut().map(std::mem::take));
                Ok(())
            })?;
            made.extend(self.take(&groups, &batch, &columns, &param, ctx)?);
            ctx.release(bytes);
        }
        made.sort_by_key(|made| made.first);
        for made in made {
            self.series.push(groups.series[made.group].clone());
            self.columns.push(made.column);
        }
        Ok(())
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
