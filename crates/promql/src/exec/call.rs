//! Calls of functions of instant vectors and scalars.

use crate::column::Grid;
use crate::exec::{EvalError, Node, Settings};
use crate::tree::Call;

/// The operator of a call without a range among its arguments. `inputs` has one operator for each
/// argument, a text one without series. Names may go and labels may become equal: the planner
/// puts [`crate::exec::merge::Merge`] behind it. `grid` of one step means that order counts.
///
/// # Errors
/// Where the function is not supported.
pub(crate) fn call(
    call: &Call,
    _inputs: Vec<Node>,
    _grid: Grid,
    _settings: &Settings,
) -> Result<Node, EvalError> {
    Err(EvalError::Query(format!(
        "function {} is not supported",
        call.function.name
    )))
}
