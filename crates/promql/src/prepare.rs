//! A tree becomes that of one query: what depends on the query's own times is computed.
//!
//! - `start()`, `end()`, `step()` and `range()` become numbers, `@ start()` and `@ end()` times.
//! - Durations become milliseconds.
//! - What is the same at every step is wrapped into `Expr::Invariant`, as high as it goes.
//! - Arguments lose their parentheses.
//!
//! A selector with `@` means the window that ends at that time minus its offset, at every step and
//! within any subquery. Prometheus moves the offset instead, by the time of each evaluation.
//!
//! Pure. Tested below and by `tests/syntax`.

mod duration;
mod invariant;
pub(crate) mod reference;

use crate::column::Grid;
use crate::tree::{At, Call, Expr, Length, Number, Selector, Subquery};

/// The times of a query, milliseconds. An instant query has the same start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The first step.
    pub start_ms: i64,
    /// The end as asked for, at or after the last step.
    pub end_ms: i64,
    /// The distance of steps.
    pub step_ms: i64,
}

/// Why a query cannot be prepared; the text is that of Prometheus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PrepareError(pub(crate) String);

impl Times {
    /// Those of an instant query.
    pub fn instant(at_ms: i64) -> Self {
        Self {
            start_ms: at_ms,
            end_ms: at_ms,
            step_ms: 0,
        }
    }

    /// The steps: up to the last one at or before the end.
    pub fn grid(&self) -> Grid {
        let step_ms = self.step_ms.max(1);
        let length_ms = if self.end_ms > self.start_ms {
            self.end_ms.abs_diff(self.start_ms)
        } else {
            0
        };
        let steps = length_ms / step_ms.unsigned_abs();
        Grid {
            start_ms: self.start_ms,
            step_ms,
            steps: usize::try_from(steps).map_or(usize::MAX, |steps| steps.saturating_add(1)),
        }
    }
}

type Prepared<T = ()> = Result<T, PrepareError>;

/// Prepares an expression for the times of a query.
///
/// # Errors
/// A duration that is not positive, too long, or a division by zero.
pub fn prepare(mut expr: Expr, times: Times) -> Result<Expr, PrepareError> {
    times.resolve(&mut expr)?;
    if invariant::wrap_inner(&mut expr).wants_wrapping {
        invariant::wrap(&mut expr);
    }
    Ok(expr)
}

impl Times {
    /// Resolves what the query says about its own times.
    fn resolve(&self, expr: &mut Expr) -> Prepared {
        match expr {
            Expr::Number(_) | Expr::Text(_) | Expr::Duration(_) => Ok(()),
            Expr::Paren(inner, _) | Expr::Invariant(inner) => self.resolve(inner),
            Expr::Unary(unary) => self.resolve(&mut unary.expr),
            Expr::Binary(binary) => {
                self.resolve(&mut binary.left)?;
                self.resolve(&mut binary.right)
            }
            Expr::Aggregate(aggregate) => {
                self.resolve(&mut aggregate.expr)?;
                aggregate
                    .param
                    .as_mut()
                    .map_or(Ok(()), |param| self.resolve(param))
            }
            Expr::Call(call) => match self.known(call) {
                Some(value) => {
                    let (is_duration, span) = (false, call.span);
                    *expr = Expr::Number(Number {
                        value,
                        is_duration,
                        span,
                    });
                    Ok(())
                }
                None => call.args.iter_mut().try_for_each(|arg| self.resolve(arg)),
            },
            Expr::Selector(selector) => self.selector(selector),
            Expr::Range(range) => {
                // As Prometheus, which visits the range first.
                self.length(&mut range.range, false)?;
                self.selector(&mut range.selector)
            }
            Expr::Subquery(subquery) => self.subquery(subquery),
        }
    }

    /// What a function about the query itself returns.
    fn known(&self, call: &Call) -> Option<f64> {
        let seconds = |millis: i64| millis as f64 / 1000.0;
        match call.function.name {
            "start" => Some(seconds(self.start_ms)),
            "end" => Some(seconds(self.end_ms)),
            "range" => Some(seconds(self.end_ms.saturating_sub(self.start_ms))),
            "step" if self.start_ms == self.end_ms => Some(0.0),
            "step" => Some(seconds(self.step_ms)),
            _ => None,
        }
    }

    fn selector(&self, selector: &mut Selector) -> Prepared {
        self.length(&mut selector.offset, true)?;
        self.at(&mut selector.at);
        Ok(())
    }

    fn subquery(&self, subquery: &mut Subquery) -> Prepared {
        self.length(&mut subquery.offset, true)?;
        if let Some(step) = &mut subquery.step {
            self.length(step, false)?;
        }
        self.length(&mut subquery.range, false)?;
        self.at(&mut subquery.at);
        self.resolve(&mut subquery.expr)
    }

    fn length(&self, length: &mut Length, may_be_negative: bool) -> Prepared {
        if let Length::Expr(duration) = length {
            let millis = duration::millis(duration, self, may_be_negative)?;
            *length = Length::Known(millis);
        }
        Ok(())
    }

    fn at(&self, at: &mut Option<At>) {
        match at {
            Some(At::Start) => *at = Some(At::Time(self.start_ms)),
            Some(At::End) => *at = Some(At::Time(self.end_ms)),
            _ => {}
        }
    }
}
