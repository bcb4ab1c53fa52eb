//! The first argument of an aggregation: a scalar, seen over all steps before it is used.

use crate::annotation::Place;
use crate::column::Column;
use crate::exec::effects::Effects;
use crate::exec::instant::math;
use crate::exec::{Context, EvalError, Node};

/// An argument and where it stands.
pub(crate) struct Param {
    pub(crate) node: Node,
    pub(crate) place: Place,
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
        // Neither is a number where any value is not: so Prometheus compares them.
        let values = column.values.iter().copied();
        Ok(Values {
            min: values.clone().fold(f64::MAX, math::min),
            max: values.fold(f64::MIN, math::max),
            has_nan: column.values.iter().any(|value| value.is_nan()),
            column,
        })
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
