//! Series that became the same once their names went: one series, if they never overlap.
//!
//! Prometheus judges this step by step, and so does this: two samples of the same labels at one
//! step are an error, series that follow one another are one. Where series do collide, their
//! columns are computed while preparing, so that the error comes whoever asks for the columns.
//!
//! Invariant: no two series of a merged input have the same labels.

use crate::column::Column;
use crate::exec::{Context, EvalError, Node, Result, Series};
use std::collections::HashMap;

/// Bytes of a series while equal ones are looked for: a place in the map and a list of one.
const PLACE_BYTES: usize = 128;

/// A series of the result.
enum Merged {
    /// One of the input.
    One(usize),
    /// Several of the input.
    Several(Column),
}

/// An input whose series lose the names that they were to lose at the end of the query.
pub(crate) fn unnamed(input: Node, ctx: &Context<'_>) -> Result<Node> {
    let unnamed = |series: &Series| Series {
        labels: if series.drops_name {
            series.labels.without_metric()
        } else {
            series.labels.clone()
        },
        drops_name: series.drops_name,
    };
    let series = ctx.collect(input.series().iter().map(unnamed))?;
    Ok(Node::new(series, move |at, work, out| {
        input.column(at, work, out)
    }))
}

/// An input whose series may have the same labels: itself, unless any have.
pub(crate) fn merged(input: Node, steps: usize, ctx: &Context<'_>) -> Result<Node> {
    let series = input.series();
    // Those of one metric are in order without its name, too.
    if series.is_sorted_by(|a, b| a.labels < b.labels) {
        return Ok(input);
    }
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let bytes = series.len().saturating_mul(PLACE_BYTES);
    ctx.hold(bytes)?;
    for (at, series) in series.iter().enumerate() {
        let place = *places
            .entry(series.labels.as_bytes())
            .or_insert(parts.len());
        match parts.get_mut(place) {
            Some(part) => part.push(at),
            None => parts.push(vec![at]),
        }
    }
    if parts.len() == series.len() {
        ctx.release(bytes);
        return Ok(input);
    }
    let mut merged = Vec::with_capacity(parts.len());
    for part in parts {
        merged.push(match part[..] {
            [one] => (one, Merged::One(one)),
            _ => {
                let (column, first) = several(&input, part, steps, ctx)?;
                (first, Merged::Several(column))
            }
        });
    }
    if steps == 1 {
        // The order of the samples, not that of the first series that might have had one.
        merged.sort_by_key(|(first, _)| *first);
    }
    let kept = ctx.collect(merged.iter().map(|one| series[one.0].clone()))?;
    ctx.release(bytes);
    Ok(Node::new(kept, move |at, work, out| {
        match &merged[at].1 {
            Merged::One(one) => input.column(*one, work, out)?,
            Merged::Several(column) => out.clone_from(column),
        }
        Ok(())
    }))
}

/// The column of several series of an input, and the one that has its first sample.
fn several(
    input: &Node,
    parts: Vec<usize>,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<(Column, usize)> {
    ctx.hold(Column::len_bytes(steps))?;
    let mut out = Column::default();
    out.reset(steps);
    let mut first = (steps, parts[0]);
    input.each(parts, steps, ctx, |part, column| {
        if let Some(step) = column.present().next() {
            first = first.min((step, part));
        }
        for step in column.present() {
            if out.has(step) {
                return Err(EvalError::Query(
                    "vector cannot contain metrics with the same labelset".to_owned(),
                ));
            }
            out.set(step, column.values[step]);
        }
        Ok(())
    })?;
    Ok((out, first.1))
}
