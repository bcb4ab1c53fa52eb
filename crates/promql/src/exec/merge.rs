//! Series that became the same once their names went: one series, if they never overlap.
//!
//! Prometheus judges this step by step, and so does this: two samples of the same labels at one
//! step are an error, series that follow one another are one. Where series do collide, their
//! columns are computed while preparing, so that the error comes whoever asks for the columns.
//!
//! Invariant: no two series have the same labels.

use crate::column::Column;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use std::collections::HashMap;

/// Bytes of a series while equal ones are looked for: a place in the map and a list of one.
const PLACE_BYTES: usize = 128;

/// An input whose series may have the same labels.
pub(crate) struct Merge {
    input: Node,
    steps: usize,
    /// Empty while no two series of the input have the same labels.
    merged: Vec<Merged>,
    series: Vec<Series>,
}

/// A series of the result.
enum Merged {
    /// One of the input.
    One(usize),
    /// Several of the input.
    Several(Column),
}

impl Merge {
    pub(crate) fn new(input: Node, steps: usize) -> Self {
        Self {
            input,
            steps,
            merged: Vec::new(),
            series: Vec::new(),
        }
    }

    /// The column of several series of the input, and the one that has its first sample.
    fn several(&self, parts: &[usize], ctx: &Context<'_>) -> Result<(Column, usize), EvalError> {
        ctx.hold(Column::len_bytes(self.steps))?;
        let mut out = Column::default();
        out.reset(self.steps);
        let mut first = (self.steps, parts[0]);
        ctx.with_scratch(|scratch| {
            let mut column = scratch.take(self.steps, ctx)?;
            for part in parts {
                ctx.source.check()?;
                self.input.column(*part, ctx, scratch, &mut column)?;
                if let Some(step) = column.present().next() {
                    first = first.min((step, *part));
                }
                for step in column.present() {
                    if out.has(step) {
                        return Err(EvalError::same_labels());
                    }
                    out.set(step, column.values[step]);
                }
            }
            scratch.give(column);
            Ok(())
        })?;
        Ok((out, first.1))
    }
}

impl Operator for Merge {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let series = self.input.series();
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
            return Ok(());
        }
        let mut merged = Vec::with_capacity(parts.len());
        for part in parts {
            merged.push(match part[..] {
                [one] => (one, Merged::One(one)),
                _ => {
                    let (column, first) = self.several(&part, ctx)?;
                    (first, Merged::Several(column))
                }
            });
        }
        if self.steps == 1 {
            // The order of the samples, not that of the first series that might have had one.
            merged.sort_by_key(|(first, _)| *first);
        }
        self.series = ctx.collect(merged.iter().map(|one| series[one.0].clone()))?;
        self.merged = merged.into_iter().map(|one| one.1).collect();
        ctx.release(bytes);
        Ok(())
    }

    fn series(&self) -> &[Series] {
        if self.merged.is_empty() {
            self.input.series()
        } else {
            &self.series
        }
    }

    fn compute(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        match self.merged.get(at) {
            None => self.input.column(at, ctx, scratch, out),
            Some(Merged::One(one)) => self.input.column(*one, ctx, scratch, out),
            Some(Merged::Several(column)) => {
                out.clone_from(column);
                Ok(())
            }
        }
    }
}
