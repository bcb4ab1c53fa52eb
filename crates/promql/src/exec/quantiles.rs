//! The aggregation `quantile`: it needs all values of a group at once.

use crate::column::Column;
use crate::exec::chunks::{for_columns, is_small};
use crate::exec::grouping::Grouping;
use crate::exec::param::Param;
use crate::exec::quantile::quantile;
use crate::exec::{Context, Node, Result};
use crate::number::general;
use rayon::prelude::*;

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
fn of_columns(
    columns: &[Column],
    steps: usize,
    param: &Param,
    ctx: &Context<'_>,
) -> Result<Column> {
    let mut out = Column::default();
    out.reset(steps);
    let of = |values: &mut Vec<f64>, step: usize| {
        values.clear();
        values.extend(columns.iter().filter_map(|column| column.get(step)));
        (!values.is_empty()).then(|| quantile(param.at(step), values))
    };
    let parts = out.values.par_chunks_mut(STEPS).enumerate();
    let words: Result<Vec<u64>> = parts
        .map_init(Vec::new, |values, (part, results)| {
            let mut word = 0;
            let part = ctx.own(|| {
                ctx.work(|work| {
                    for (at, result) in results.iter_mut().enumerate() {
                        work.pass(columns.len())?;
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

pub(crate) fn quantiles(
    input: &Node,
    grouping: &Grouping,
    steps: usize,
    param: &Param,
    ctx: &Context<'_>,
) -> Result<Node> {
    warn(param, ctx);
    let groups = grouping.groups(input.series(), ctx)?;
    let column_bytes = Column::len_bytes(steps);
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
        for_columns(input, &wanted, steps, ctx, |_, computed| {
            columns.extend(computed.iter_mut().map(std::mem::take));
            Ok(())
        })?;
        let mut rest = &columns[..];
        let parts = batch.into_iter().map(|group| {
            let (columns, behind) = rest.split_at(groups.members[group].len());
            rest = behind;
            (group, columns)
        });
        let parts: Vec<(usize, &[Column])> = parts.collect();
        let each = |(group, columns): &(usize, &[Column])| {
            let first = columns.iter().position(|column| !column.is_empty())?;
            Some(of_columns(columns, steps, param, ctx).map(|column| Made {
                group: *group,
                first: groups.members[*group][first],
                column,
            }))
        };
        made.extend(ctx.apart(|| {
            if is_small(wanted.len(), steps) {
                parts.iter().filter_map(each).collect::<Result<Vec<Made>>>()
            } else {
                parts.par_iter().filter_map(each).collect()
            }
        })?);
        ctx.release(bytes);
    }
    made.sort_by_key(|made| made.first);
    let made = made.into_iter();
    let pairs = made.map(|made| (groups.series[made.group].clone(), made.column));
    let (series, columns) = pairs.unzip();
    Ok(Node::held(series, columns))
}

fn warn(param: &Param, ctx: &Context<'_>) {
    let wrong = [
        param.has_nan.then_some(f64::NAN),
        (param.max > 1.0).then_some(param.max),
        (param.min < 0.0).then_some(param.min),
    ];
    for got in wrong.into_iter().flatten().map(general) {
        let text = format!("quantile value should be between 0 and 1, got {got}");
        ctx.annotate(|annotations| annotations.warn(text, param.place));
    }
}
