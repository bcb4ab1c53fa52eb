//! From a prepared tree to operators.

use crate::column::Grid;
use crate::exec::absence::labels_of;
use crate::exec::absent_over_time::AbsentOverTime;
use crate::exec::call::call;
use crate::exec::instant::mapped::{Change, Mapped};
use crate::exec::invariant::Invariant;
use crate::exec::merge::Merge;
use crate::exec::range_call::{Parts, RangeCall};
use crate::exec::range_input::{RangeInput, Span};
use crate::exec::recorded::Trace;
use crate::exec::reference::Reference;
use crate::exec::selector::{Selector, Takes};
use crate::exec::single::{Nothing, constant};
use crate::exec::unname::Unname;
use crate::exec::{EvalError, Node, Settings, aggregate, binary};
use crate::prepare::Times;
use crate::span;
use crate::tree::{self, Call, Expr, Length, Smoothing, Type, Unary};

/// Makes operators for the steps of a grid.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) grid: Grid,
    pub(crate) settings: &'a Settings,
    /// What records each node, if the query is explained.
    pub(crate) trace: Option<&'a Trace>,
}

impl Planner<'_> {
    /// The operator of an expression that is not a range; a text has no series.
    ///
    /// # Errors
    /// Where a function or a modifier is not supported.
    pub(crate) fn plan(&self, expr: &Expr) -> Result<Node, EvalError> {
        let node: Node = match expr {
            Expr::Number(number) => constant(number.value, self.grid),
            Expr::Text(_) => Box::new(Nothing),
            Expr::Paren(expr, _) => return self.plan(expr),
            Expr::Invariant(expr) => return self.invariant(expr),
            Expr::Call(call) => self.call(call)?,
            Expr::Unary(unary) => self.unary(unary)?,
            Expr::Binary(node) => {
                let (left, right) = (self.plan(&node.left)?, self.plan(&node.right)?);
                let binary = binary::operator(node, left, right, self.grid.steps);
                match expr.ty() {
                    Type::Scalar => binary,
                    _ => self.merged(binary),
                }
            }
            Expr::Aggregate(node) => {
                let input = self.plan(&node.expr)?;
                let param = match &node.param {
                    Some(param) => Some(self.plan(param)?),
                    None => None,
                };
                aggregate::operator(node, input, param, self.grid.steps)?
            }
            Expr::Selector(selector) => self.selector(selector)?,
            Expr::Range(_) | Expr::Subquery(_) | Expr::Duration(_) => return Err(unprepared()),
        };
        Ok(match self.trace {
            None => node,
            Some(trace) => trace.node(expr, self.grid.steps, node),
        })
    }

    /// The operator of a whole query.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub(crate) fn root(&self, expr: &Expr) -> Result<Node, EvalError> {
        Ok(self.unnamed(self.plan(expr)?))
    }

    /// The samples and windows of a whole query.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub(crate) fn root_range(
        &self,
        expr: &Expr,
    ) -> Result<(RangeInput, Span, Smoothing), EvalError> {
        let (input, span, smoothing) = self.plain_range(expr)?;
        let input = match input {
            RangeInput::Subquery {
                input,
                grid: Some(grid),
            } => RangeInput::Subquery {
                input: Self { grid, ..*self }.unnamed(input),
                grid: Some(grid),
            },
            input => input,
        };
        Ok((self.recorded_range(expr, input), span, smoothing))
    }

    /// Takes the names that an input has left to the end.
    fn unnamed(&self, input: Node) -> Node {
        if self.settings.delays_name_removal {
            self.merged(Box::new(Unname::new(input)))
        } else {
            input
        }
    }

    /// The samples and windows of a range or a subquery.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    fn range(&self, expr: &Expr) -> Result<(RangeInput, Span, Smoothing), EvalError> {
        let (input, span, smoothing) = self.plain_range(expr)?;
        Ok((self.recorded_range(expr, input), span, smoothing))
    }

    fn recorded_range(&self, expr: &Expr, input: RangeInput) -> RangeInput {
        let steps = match &input {
            RangeInput::Subquery { grid, .. } => grid.map_or(0, |grid| grid.steps),
            _ => self.grid.steps,
        };
        match self.trace {
            None => input,
            Some(trace) => RangeInput::Recorded(Box::new(input), trace.begin(expr, steps)),
        }
    }

    fn plain_range(&self, expr: &Expr) -> Result<(RangeInput, Span, Smoothing), EvalError> {
        match expr.bare() {
            Expr::Range(range) => {
                let selector = &range.selector;
                let lookback_ms = self.settings.lookback_ms;
                let (before_ms, after_ms) = match selector.smoothing {
                    Smoothing::Off => (0, 0),
                    Smoothing::Anchored => (lookback_ms, 0),
                    Smoothing::Smoothed => (lookback_ms, lookback_ms),
                };
                let span = Span {
                    reference: self.reference(&selector.offset, selector.at)?,
                    range_ms: known(&range.range)?,
                    before_ms,
                    after_ms,
                };
                let input = RangeInput::raw(&selector.matchers);
                Ok((input, span, selector.smoothing))
            }
            Expr::Subquery(subquery) => {
                let span = Span {
                    reference: self.reference(&subquery.offset, subquery.at)?,
                    range_ms: known(&subquery.range)?,
                    before_ms: 0,
                    after_ms: 0,
                };
                let step_ms = match &subquery.step {
                    Some(step) => known(step)?,
                    None => 0,
                };
                let step_ms = match step_ms {
                    0 => self.settings.subquery_step_ms,
                    step_ms => step_ms,
                };
                let grid = subquery_grid(&span, step_ms);
                let input = match grid {
                    Some(grid) => Self { grid, ..*self }.plan(&subquery.expr)?,
                    None => Box::new(Nothing),
                };
                Ok((RangeInput::Subquery { input, grid }, span, Smoothing::Off))
            }
            _ => Err(unprepared()),
        }
    }

    fn reference(&self, offset: &Length, at: Option<tree::At>) -> Result<Reference, EvalError> {
        Reference::new(self.grid, offset, at).ok_or_else(unprepared)
    }

    /// `timestamp(selector)`. As in Prometheus, `@` makes it look at its very time, and the offset
    /// only moves which samples it may see.
    fn timestamp(&self, node: &tree::Selector) -> Result<Node, EvalError> {
        let (offset_ms, lookback_ms) = (known(&node.offset)?, self.settings.lookback_ms);
        let reference = |offset| self.reference(offset, node.at);
        let selector = |reference| Selector::new(&node.matchers, reference, Takes::Time);
        Ok(Box::new(match node.at {
            None => selector(reference(&node.offset)?),
            Some(_) => {
                let reference = reference(&Length::Known(0))?;
                let to_ms = reference.bounds_ms().0.saturating_sub(offset_ms);
                let from_ms = to_ms.saturating_sub(lookback_ms).saturating_add(1);
                selector(reference).within(from_ms, to_ms)
            }
        }))
    }

    fn selector(&self, node: &tree::Selector) -> Result<Node, EvalError> {
        let takes = match node.smoothing {
            Smoothing::Smoothed => Takes::Smoothed,
            Smoothing::Off | Smoothing::Anchored => Takes::Value,
        };
        let reference = self.reference(&node.offset, node.at)?;
        Ok(Box::new(Selector::new(&node.matchers, reference, takes)))
    }

    fn unary(&self, node: &Unary) -> Result<Node, EvalError> {
        let input = self.plan(&node.expr)?;
        if !node.negates {
            return Ok(input);
        }
        let negated = Change::Of(|value| -value);
        let negated = Box::new(Mapped::new(negated, input, Vec::new(), self.grid));
        Ok(match node.expr.ty() {
            Type::Vector => self.merged(negated),
            _ => negated,
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
                if let Some(trace) = self.trace {
                    trace.invariant(expr);
                }
                Ok(Box::new(Invariant::new(input, self.grid)))
            }
        }
    }

    fn merged(&self, input: Node) -> Node {
        Box::new(Merge::new(input, self.grid.steps))
    }

    fn call(&self, node: &Call) -> Result<Node, EvalError> {
        if let Some(range) = node.args.iter().position(|arg| arg.ty() == Type::Matrix) {
            return self.range_call(node, range);
        }
        if let ("timestamp", [arg]) = (node.function.name, &node.args[..])
            && let Expr::Selector(selector) = arg.bare()
        {
            return Ok(self.merged(self.timestamp(selector)?));
        }
        let inputs: Result<_, _> = node.args.iter().map(|arg| self.plan(arg)).collect();
        Ok(self.merged(call(node, inputs?, self.grid, self.settings)?))
    }

    /// A call whose argument `range` is a range; all others are scalars.
    fn range_call(&self, node: &Call, range: usize) -> Result<Node, EvalError> {
        let argument = &node.args[range];
        let (input, span, smoothing) = self.range(argument)?;
        let mut params = Vec::new();
        let mut places = Vec::new();
        for (at, arg) in node.args.iter().enumerate() {
            if at == range {
                places.push(place_of_range(arg))
            } else {
                params.push(self.plan(arg)?);
                places.push(arg.span());
            }
        }
        let call: Node = Box::new(RangeCall::new(Parts {
            name: node.function.name,
            input,
            span,
            smoothing,
            params,
            places,
            by: node.span,
        })?);
        let steps = self.grid.steps;
        Ok(match node.function.name {
            "absent_over_time" => Box::new(AbsentOverTime::new(call, steps, labels_of(argument))),
            _ => self.merged(call),
        })
    }
}

/// Where annotations say that a range stands: Prometheus has lost the place of a subquery when it
/// gets there, and says that of the first byte.
fn place_of_range(arg: &Expr) -> span::Span {
    match arg.bare() {
        Expr::Subquery(_) => span::Span::default(),
        _ => arg.span(),
    }
}

/// The steps of a subquery: multiples of its step, the first strictly after the start of the first
/// window; `None` where there is no such step.
fn subquery_grid(span: &Span, step_ms: i64) -> Option<Grid> {
    let (first_ms, last_ms) = span.reference.bounds_ms();
    let before_ms = first_ms.saturating_sub(span.range_ms);
    let start_ms = before_ms
        .div_euclid(step_ms)
        .saturating_add(1)
        .saturating_mul(step_ms);
    (start_ms <= last_ms).then(|| {
        Times {
            start_ms,
            end_ms: last_ms,
            step_ms,
        }
        .grid()
    })
}

fn known(length: &Length) -> Result<i64, EvalError> {
    match length {
        Length::Known(length_ms) => Ok(*length_ms),
        Length::Expr(_) => Err(unprepared()),
    }
}

/// What `prepare` must have resolved, and did not.
fn unprepared() -> EvalError {
    EvalError::Query("expression is not prepared".to_owned())
}
