//! From a prepared tree to operators.

use crate::column::Grid;
use crate::exec::absent::{absent, labels_of};
use crate::exec::aggregate::aggregate;
use crate::exec::binary::binary;
use crate::exec::call::call;
use crate::exec::constant::{constant, invariant, nothing};
use crate::exec::instant::mapped::negated;
use crate::exec::merge::{merged, unnamed};
use crate::exec::parts::Fed;
use crate::exec::range_call::{Function, RangeCall};
use crate::exec::range_input::RangeInput;
use crate::exec::recorded::Trace;
use crate::exec::reference::Reference;
use crate::exec::selector::{ALWAYS_MS, Selector, Takes};
use crate::exec::windows::Span;
use crate::exec::{Context, EvalError, Node, Result};
use crate::prepare::Times;
use crate::span;
use crate::tree::{self, Call, Expr, Length, Smoothing, Type, Unary};
use std::sync::OnceLock;

/// Makes operators for the steps of a grid.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) grid: Grid,
    pub(crate) ctx: &'a Context<'a>,
    /// What records each node, if the query is explained.
    pub(crate) trace: Option<&'a Trace>,
}

/// The samples and windows of a range or a subquery.
pub(crate) struct Range {
    pub(crate) input: RangeInput,
    pub(crate) span: Span,
    pub(crate) smoothing: Smoothing,
}

impl Planner<'_> {
    /// The operator of a whole query.
    pub(crate) fn root(&self, expr: &Expr) -> Result<Node> {
        self.unnamed(self.plan(expr)?)
    }

    /// The operator of an expression that is not a range; a text has no series.
    pub(crate) fn plan(&self, expr: &Expr) -> Result<Node> {
        match (expr, self.trace) {
            (Expr::Paren(inner, _), _) => self.plan(inner),
            (Expr::Invariant(inner), _) => self.invariant(inner),
            (Expr::Text(_), _) => Ok(nothing()),
            (_, None) => self.operator(expr),
            (_, Some(trace)) => trace.node(expr, self.grid.steps, self.ctx, |ctx| {
                Planner { ctx, ..*self }.operator(expr)
            }),
        }
    }

    fn operator(&self, expr: &Expr) -> Result<Node> {
        let (steps, ctx) = (self.grid.steps, self.ctx);
        match expr {
            Expr::Number(number) => Ok(constant(number.value, steps)),
            Expr::Call(call) => self.call(call),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(node) => {
                let (left, right) = (self.plan(&node.left)?, self.plan(&node.right)?);
                let made = binary(node, left, right, steps, ctx)?;
                match expr.ty() {
                    Type::Scalar => Ok(made),
                    _ => merged(made, steps, ctx),
                }
            }
            Expr::Aggregate(node) => {
                let param = node.param.as_ref().map(|param| self.plan(param));
                let param = param.transpose()?;
                let input = Fed::new(*self, node);
                aggregate(node, input, param.as_ref(), steps, ctx)
            }
            Expr::Selector(selector) => self.selector(selector),
            _ => Err(unprepared()),
        }
    }

    /// Takes the names that an input has left to the end.
    fn unnamed(&self, input: Node) -> Result<Node> {
        if self.ctx.settings.delays_name_removal {
            merged(unnamed(input, self.ctx)?, self.grid.steps, self.ctx)
        } else {
            Ok(input)
        }
    }

    pub(crate) fn range(&self, expr: &Expr, is_root: bool) -> Result<Range> {
        match expr.bare() {
            Expr::Range(range) => {
                let selector = &range.selector;
                let lookback_ms = self.ctx.settings.lookback_ms;
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
                let find = |ctx: &Context<'_>| RangeInput::raw(&selector.matchers, &span, ctx);
                Ok(Range {
                    input: self.recorded(expr, self.grid.steps, find)?,
                    span,
                    smoothing: selector.smoothing,
                })
            }
            Expr::Subquery(subquery) => {
                let span = Span {
                    reference: self.reference(&subquery.offset, subquery.at)?,
                    range_ms: known(&subquery.range)?,
                    before_ms: 0,
                    after_ms: 0,
                };
                let step_ms = match subquery.step.as_ref().map(known).transpose()? {
                    None | Some(0) => self.ctx.settings.subquery_step_ms,
                    Some(step_ms) => step_ms,
                };
                let grid = subquery_grid(&span, step_ms);
                let find = |ctx: &Context<'_>| {
                    let Some(grid) = grid else {
                        return Ok(RangeInput::nothing());
                    };
                    RangeInput::subquery(grid, ctx, || {
                        let inner = Planner { grid, ctx, ..*self };
                        if is_root {
                            inner.root(&subquery.expr)
                        } else {
                            inner.plan(&subquery.expr)
                        }
                    })
                };
                Ok(Range {
                    input: self.recorded(expr, grid.map_or(0, |grid| grid.steps), find)?,
                    span,
                    smoothing: Smoothing::Off,
                })
            }
            _ => Err(unprepared()),
        }
    }

    /// What `find` finds for a range, recorded where the query is explained.
    fn recorded(
        &self,
        expr: &Expr,
        steps: usize,
        find: impl FnOnce(&Context<'_>) -> Result<RangeInput>,
    ) -> Result<RangeInput> {
        match self.trace {
            None => find(self.ctx),
            Some(trace) => trace.range(expr, steps, self.ctx, find),
        }
    }

    fn reference(&self, offset: &Length, at: Option<tree::At>) -> Result<Reference> {
        Reference::new(self.grid, offset, at).ok_or_else(unprepared)
    }

    /// `timestamp(selector)`. As in Prometheus, `@` makes it look at its very time, and the offset
    /// only moves which samples it may see.
    fn timestamp(&self, node: &tree::Selector) -> Result<Node> {
        let (reference, within_ms) = match node.at {
            None => (self.reference(&node.offset, None)?, ALWAYS_MS),
            Some(_) => {
                let reference = self.reference(&Length::Known(0), node.at)?;
                let (offset_ms, lookback_ms) =
                    (known(&node.offset)?, self.ctx.settings.lookback_ms);
                let to_ms = reference.bounds_ms().0.saturating_sub(offset_ms);
                let from_ms = to_ms.saturating_sub(lookback_ms).saturating_add(1);
                (reference, (from_ms, to_ms))
            }
        };
        let selector = Selector {
            matchers: &node.matchers,
            reference,
            takes: Takes::Time,
            within_ms,
        };
        selector.operator(self.ctx)
    }

    fn selector(&self, node: &tree::Selector) -> Result<Node> {
        let selector = Selector {
            matchers: &node.matchers,
            reference: self.reference(&node.offset, node.at)?,
            takes: match node.smoothing {
                Smoothing::Smoothed => Takes::Smoothed,
                Smoothing::Off | Smoothing::Anchored => Takes::Value,
            },
            within_ms: ALWAYS_MS,
        };
        selector.operator(self.ctx)
    }

    fn unary(&self, node: &Unary) -> Result<Node> {
        let input = self.plan(&node.expr)?;
        match (node.negates, node.expr.ty()) {
            (false, _) => Ok(input),
            (true, Type::Vector) => merged(negated(input, self.ctx)?, self.grid.steps, self.ctx),
            (true, _) => negated(input, self.ctx),
        }
    }

    fn invariant(&self, expr: &Expr) -> Result<Node> {
        if self.grid.steps == 1 {
            return self.plan(expr);
        }
        let grid = Grid::instant(self.grid.start_ms);
        let input = Self { grid, ..*self }.plan(expr)?;
        if let Some(trace) = self.trace {
            trace.invariant(expr);
        }
        Ok(invariant(input, self.grid.steps))
    }

    fn call(&self, node: &Call) -> Result<Node> {
        if let Some(range) = node.args.iter().position(|arg| arg.ty() == Type::Matrix) {
            return self.range_call(node, range);
        }
        let (grid, ctx) = (self.grid, self.ctx);
        if let ("timestamp", [arg]) = (node.function.name, &node.args[..])
            && let Expr::Selector(selector) = arg.bare()
        {
            return merged(self.timestamp(selector)?, grid.steps, ctx);
        }
        let args = match node.function.name {
            // The second argument is no vector, but what is looked for.
            "info" => &node.args[..1],
            _ => &node.args[..],
        };
        let inputs = args.iter().map(|arg| self.plan(arg));
        let inputs = inputs.collect::<Result<_>>()?;
        merged(call(node, inputs, grid, ctx)?, grid.steps, ctx)
    }

    /// A call whose argument `range` is a range; all others are scalars.
    fn range_call(&self, node: &Call, range: usize) -> Result<Node> {
        let argument = &node.args[range];
        let smoothing = match argument.bare() {
            Expr::Range(range) => range.selector.smoothing,
            _ => Smoothing::Off,
        };
        let function = Function::new(node.function.name, smoothing)?;
        let mut params = Vec::new();
        let mut places = Vec::new();
        for (at, arg) in node.args.iter().enumerate() {
            if at == range {
                places.push(place_of_range(arg))
            } else {
                params.push(self.plan(arg)?.hold_scalar(self.ctx)?);
                places.push(arg.span());
            }
        }
        let call = RangeCall {
            function,
            range: self.range(argument, false)?,
            params,
            places,
            by: node.span,
            noted: OnceLock::new(),
        };
        let call = call.operator(self.ctx)?;
        match node.function.name {
            "absent_over_time" => absent(&call, labels_of(argument), self.grid.steps, self.ctx),
            _ => merged(call, self.grid.steps, self.ctx),
        }
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

fn known(length: &Length) -> Result<i64> {
    match length {
        Length::Known(length_ms) => Ok(*length_ms),
        Length::Expr(_) => Err(unprepared()),
    }
}

/// What `prepare` must have resolved, and did not.
fn unprepared() -> EvalError {
    EvalError::Query("expression is not prepared".to_owned())
}
