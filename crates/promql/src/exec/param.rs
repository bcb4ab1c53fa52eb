//! The first argument of an aggregation: a scalar, seen over all steps before it is used.

use crate::annotation::Place;
use crate::column::Column;
use crate::exec::instant::math;
use crate::exec::{Context, Node, Result};

/// Its values, and where it stands.
pub(crate) struct Param {
    column: Column,
    pub(crate) place: Place,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) has_nan: bool,
}

impl Param {
    /// Evaluates it.
    pub(crate) fn new(node: &Node, place: Place, ctx: &Context<'_>) -> Result<Self> {
        let column = node.hold_scalar(ctx)?;
        // Neither is a number where any value is not: so Prometheus compares them.
        let values = column.values.iter().copied();
        Ok(Self {
            place,
            min: values.clone().fold(f64::MAX, math::min),
            max: values.fold(f64::MIN, math::max),
            has_nan: column.values.iter().any(|value| value.is_nan()),
            column,
        })
    }

    pub(crate) fn at(&self, step: usize) -> f64 {
        self.column.values[step]
    }
}
