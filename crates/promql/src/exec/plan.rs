//! From a prepared tree to operators.

use crate::column::Grid;
use crate::exec::call::call;
use crate::exec::constant::{Constant, Nothing};
use crate::exec::invariant::Invariant;
use crate::exec::merge::Merge;
use crate::exec::{EvalError, Node, Settings};
use crate::tree::{Call, Expr, Type};

/// Makes operators for the steps of a grid.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) grid: Grid,
    pub(crate) settings: &'a Settings,
}

impl Planner<'_> {
    /// The operator of an expression that is not a range; a text has no series.
    ///
    /// # Errors
    /// Where a function or a modifier is not supported.
    pub(crate) fn plan(&self, expr: &Expr) -> Result<Node, EvalError> {
        Ok(match expr {
            Expr::Number(number) => Box::new(Constant::new(number.value, self.grid)),
            Expr::Text(_) => Box::new(Nothing),
            Expr::Paren(expr, _) => self.plan(expr)?,
            Expr::Invariant(expr) => self.invariant(expr)?,
            Expr::Call(call) => self.call(call)?,
            Expr::Unary(_)
            | Expr::Binary(_)
            | Expr::Aggregate(_)
            | Expr::Selector(_)
            | Expr::Range(_)
            | Expr::Subquery(_)
            | Expr::Duration(_) => return Err(unprepared()),
        })
    }

    /// The same planner at the first step only.
    fn first_step(&self) -> Self {
        Self {
            grid: Grid::instant(self.grid.start_ms),
            ..*self
        }
    }

    fn invariant(&self, expr: &Expr) -> Result<Node, EvalError> {
        match self.grid.steps {
            1 => self.plan(expr),
            _ => {
                let input = self.first_step().plan(expr)?;
                Ok(Box::new(Invariant::new(input, self.grid)))
            }
        }
    }

    fn merged(&self, input: Node) -> Node {
        Box::new(Merge::new(input, self.grid.steps))
    }

    fn call(&self, node: &Call) -> Result<Node, EvalError> {
        if node.args.iter().any(|arg| arg.ty() == Type::Matrix) {
            return Err(unprepared());
        }
        let inputs: Result<_, _> = node.args.iter().map(|arg| self.plan(arg)).collect();
        Ok(self.merged(call(node, inputs?, self.grid, self.settings)?))
    }
}

/// What `prepare` must have resolved, and did not.
fn unprepared() -> EvalError {
    EvalError::Query("expression is not prepared".to_owned())
}
