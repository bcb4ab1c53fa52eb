//! The first argument of an aggregation: a scalar, seen over all steps before it is used.

use crate::column::Column;
use crate::exec::effects::Effects;
use crate::exec::{Context, EvalError, Node};
use crate::span::Span;

/// An argument and where it stands.
pub(crate) struct Param {
    pub(crate) node: Node,
    pub(crate) place: Span,
    /// Whether what is aggregated speaks.
    pub(crate) effects: Effects,
}

/// Its values.
#[derive(Default)]
pub(crate) struct Values {
    column: Column,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) has_nan: bool,
}

impl Param {
    /// Evaluates it.
    pub(crate) fn values(&mut self, ctx: &Context<'_>) -> Result<Values, EvalError> {
        self.node.prepare(ctx)?;
        let mut column = Column::default();
        ctx.with_scratch(|scratch| self.node.column(0, ctx, scratch, &mut column))?;
        ctx.hold(Column::len_bytes(column.values.len()))?;
        let values = column.values.iter().copied();
        Ok(Values {
            min: -values.clone().map(|value| -value).fold(f64::MIN, max),
            max: values.fold(f64::MIN, max),
            has_nan: column.values.iter().any(|value| value.is_nan()),
            column,
        })
    }
}

/// The larger of two values as Go has it: NaN gives way only to infinity.
fn max(a: f64, b: f64) -> f64 {
    match a.is_nan() || b.is_nan() {
        true if a == f64::INFINITY || b == f64::INFINITY => f64::INFINITY,
        true => f64::NAN,
        false => a.max(b),
    }
}

impl Values {
    /// Number of steps.
    pub(crate) fn steps(&self) -> usize {
        self.column.values.len()
    }

    /// The value at a step.
    pub(crate) fn at(&self, step: usize) -> f64 {
        self.column.values[step]
    }
}
