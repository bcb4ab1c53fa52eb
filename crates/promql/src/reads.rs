//! What an expression reads when it is evaluated as an instant query: of each selector the span of
//! times, relative to the time of the query.
//!
//! A sample at `s` can only change the result at the steps that [`Window::dirty`] names. Nothing is
//! said of what the sample does there. Spans are those that the operators ask a source for, so a
//! selector that an operator makes by itself, as that of `info`, is among them.
//!
//! A pure function of the tree. Tested by `tests/reads`: one sample is changed, and every step that
//! gives another result must be dirty; at both ends of a window, a step that is not dirty stays.

mod narrow;

pub use narrow::{Narrow, TooWide};

use crate::exec::Settings;
use crate::exec::instant::info;
use crate::exec::range_call::SUMS;
use crate::prepare::reference::reference;
use crate::prepare::{PrepareError, Times, prepare};
use crate::source::Matcher;
use crate::span::Span;
use crate::tree::{At, Duration, DurationOp, Expr, Length, Range, Selector, Smoothing, Subquery};
use std::ops;

/// The time of the query while an expression is prepared: no text can say it.
const NOW_MS: i64 = i64::MIN / 4 + 271_828;

/// The times at which one selector looks for samples of series.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Which series.
    pub matchers: Vec<Matcher>,
    /// Which samples of them.
    pub window: Window,
    /// Where the selector stands.
    pub span: Span,
}

/// A half-open span of times, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// `(t - back_max, t - back_min]` for a query at `t`; `back_min` is negative where it looks
    /// ahead.
    Moving {
        /// How far back the span begins; the first time itself is out.
        back_max_ms: i64,
        /// How far back it ends.
        back_min_ms: i64,
    },
    /// `(after, to]`, whatever the time of the query: `@` with a time.
    Fixed {
        /// The time before the first.
        after_ms: i64,
        /// The last time.
        to_ms: i64,
    },
}

impl Window {
    /// The times of queries whose result a sample at `sample_ms` may change: all of them where the
    /// window does not move.
    pub fn dirty(&self, sample_ms: i64) -> Option<ops::Range<i64>> {
        match *self {
            Self::Moving {
                back_max_ms,
                back_min_ms,
            } => Some(sample_ms.saturating_add(back_min_ms)..sample_ms.saturating_add(back_max_ms)),
            Self::Fixed { after_ms, to_ms } => {
                (after_ms < sample_ms && sample_ms <= to_ms).then_some(i64::MIN..i64::MAX)
            }
        }
    }

    /// Whether a query needs samples that are newer than itself.
    pub fn looks_ahead(&self) -> bool {
        matches!(self, Self::Moving { back_min_ms, .. } if *back_min_ms < 0)
    }

    /// Whether it stays where it is: `@` with a time.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed { .. })
    }
}

/// All that an expression reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reads {
    /// One for each selector, in the order of the text.
    pub reads: Vec<Read>,
    /// The expression asks for the times of its query (`start()`, `end()`, `step()`, `range()`): as
    /// part of a range query it would give something else.
    pub uses_query_times: bool,
    /// As part of a range query, values may be added in another order, which rounds another way.
    pub order_depends: bool,
}

impl Reads {
    /// What an expression reads with these settings.
    ///
    /// # Errors
    /// Where it cannot be evaluated at any time, as with a range of no length.
    pub fn of(expr: &Expr, settings: &Settings) -> Result<Self, PrepareError> {
        let mut found = Self {
            reads: Vec::new(),
            uses_query_times: query_times(expr),
            order_depends: order_depends(expr, false),
        };
        let prepared = prepare(expr.clone(), Times::instant(NOW_MS))?;
        found.visit(&prepared, Evaluated::NOW, settings);
        Ok(found)
    }

    /// Whether a result needs samples that are newer than its step.
    pub fn look_ahead(&self) -> bool {
        self.reads.iter().any(|read| read.window.looks_ahead())
    }

    /// How long after its step a result may still wait for samples that it looks ahead to,
    /// milliseconds; 0 where it does not look ahead.
    pub fn ahead_ms(&self) -> i64 {
        let ahead = self.reads.iter().map(|read| match read.window {
            Window::Moving { back_min_ms, .. } => back_min_ms.saturating_neg(),
            Window::Fixed { .. } => 0,
        });
        ahead.fold(0, i64::max)
    }

    /// Whether a range query may give other bits than an instant query at each of its steps, even
    /// where [`Settings::shares_sums`] is off.
    pub fn is_stepwise(&self) -> bool {
        self.uses_query_times || self.order_depends
    }

    /// Whether a selector stays at a fixed time.
    pub fn has_fixed(&self) -> bool {
        self.reads.iter().any(|read| read.window.is_fixed())
    }

    fn visit(&mut self, expr: &Expr, when: Evaluated, settings: &Settings) {
        match expr {
            Expr::Selector(selector) => self.instant(selector, expr.span(), when, settings),
            Expr::Range(range) => self.range(range, when, settings),
            Expr::Subquery(subquery) => self.visit(&subquery.expr, when.within(subquery), settings),
            Expr::Call(call) if call.function.name == "info" => {
                self.visit(&call.args[0], when, settings);
                self.info(&call.args, call.span, when, settings);
            }
            _ => {
                for part in expr.parts() {
                    self.visit(part, when, settings);
                }
            }
        }
    }

    fn instant(&mut self, node: &Selector, span: Span, when: Evaluated, settings: &Settings) {
        // `timestamp(x @ 1 offset 1m)` looks at 1, and then only at what the offset leaves: the
        // whole is more than it sees.
        let at = when.shifted(node.at, 0);
        let seen = when.shifted(node.at, node.offset.millis());
        let ahead_ms = match node.smoothing {
            Smoothing::Smoothed => settings.lookback_ms,
            Smoothing::Off | Smoothing::Anchored => 0,
        };
        let window = seen.window(settings.lookback_ms, ahead_ms);
        self.push(node.matchers.clone(), window, span);
        if node.at.is_some() && node.offset.millis() != 0 {
            self.push(
                node.matchers.clone(),
                at.window(settings.lookback_ms, 0),
                span,
            );
        }
    }

    fn range(&mut self, node: &Range, when: Evaluated, settings: &Settings) {
        let selector = &node.selector;
        let (before_ms, ahead_ms) = match selector.smoothing {
            Smoothing::Off => (0, 0),
            Smoothing::Anchored => (settings.lookback_ms, 0),
            Smoothing::Smoothed => (settings.lookback_ms, settings.lookback_ms),
        };
        let length_ms = node.range.millis().saturating_add(before_ms);
        let seen = when.shifted(selector.at, selector.offset.millis());
        let window = seen.window(length_ms, ahead_ms);
        self.push(selector.matchers.clone(), window, node.span());
    }

    /// The information metrics that `info` looks for, at the time of its argument.
    fn info(&mut self, args: &[Expr], span: Span, when: Evaluated, settings: &Settings) {
        let (at, offset_ms) = reference(&args[0]).unwrap_or((None, 0));
        let seen = when.shifted(at.map(At::Time), offset_ms);
        let matchers = match args.get(1).map(Expr::bare) {
            Some(Expr::Selector(selector)) => info::matchers(&selector.matchers),
            _ => info::matchers(&[]),
        };
        self.push(matchers, seen.window(settings.lookback_ms, 0), span);
    }

    fn push(&mut self, matchers: Vec<Matcher>, window: Window, span: Span) {
        self.reads.push(Read {
            matchers,
            window,
            span,
        });
    }
}

/// Whether an expression asks for the times of its query.
fn query_times(expr: &Expr) -> bool {
    let of_selector = |selector: &Selector| at_query(selector.at) || by_query(&selector.offset);
    let is_here = match expr {
        Expr::Selector(selector) => of_selector(selector),
        Expr::Range(range) => of_selector(&range.selector) || by_query(&range.range),
        Expr::Subquery(subquery) => {
            let step = subquery.step.as_ref();
            at_query(subquery.at)
                || by_query(&subquery.range)
                || by_query(&subquery.offset)
                || step.is_some_and(by_query)
        }
        Expr::Duration(duration) => asks(duration),
        Expr::Call(call) => matches!(call.function.name, "start" | "end" | "step" | "range"),
        _ => false,
    };
    is_here || expr.parts().into_iter().any(query_times)
}

/// Whether something is aggregated whose order depends on the steps of the query, as that of groups
/// does, or a subquery shares sums.
fn order_depends(expr: &Expr, is_within: bool) -> bool {
    let (is_here, is_within) = match expr {
        Expr::Aggregate(_) => (is_within, true),
        Expr::Call(call) if call.function.name.starts_with("sort") => (is_within, is_within),
        Expr::Subquery(subquery) => (shares_sums(&subquery.expr), is_within),
        _ => (false, is_within),
    };
    let mut parts = expr.parts().into_iter();
    is_here || parts.any(|part| order_depends(part, is_within))
}

fn shares_sums(expr: &Expr) -> bool {
    let is_here = matches!(expr, Expr::Call(call) if SUMS.contains(&call.function.name));
    is_here || expr.parts().into_iter().any(shares_sums)
}

fn at_query(at: Option<At>) -> bool {
    matches!(at, Some(At::Start | At::End))
}

fn by_query(length: &Length) -> bool {
    matches!(length, Length::Expr(duration) if asks(duration))
}

fn asks(duration: &Duration) -> bool {
    let sides = [&duration.left, &duration.right];
    matches!(duration.op, DurationOp::Step | DurationOp::Range)
        || sides.into_iter().flatten().any(query_times)
}

/// The times at which a part of an expression is evaluated, both ends included, milliseconds.
#[derive(Clone, Copy)]
enum Evaluated {
    /// From `t - first_back` to `t - last_back`.
    Moving {
        first_back: i64,
        last_back: i64,
    },
    Fixed {
        first: i64,
        last: i64,
    },
}

impl Evaluated {
    /// The whole expression.
    const NOW: Self = Self::Moving {
        first_back: 0,
        last_back: 0,
    };

    /// The times that a modifier makes of them.
    fn shifted(self, at: Option<At>, offset_ms: i64) -> Self {
        match (at, self) {
            (Some(At::Time(NOW_MS) | At::Start | At::End), _) => Self::Moving {
                first_back: offset_ms,
                last_back: offset_ms,
            },
            (Some(At::Time(at_ms)), _) => {
                let at_ms = at_ms.saturating_sub(offset_ms);
                Self::Fixed {
                    first: at_ms,
                    last: at_ms,
                }
            }
            (
                None,
                Self::Moving {
                    first_back,
                    last_back,
                },
            ) => Self::Moving {
                first_back: first_back.saturating_add(offset_ms),
                last_back: last_back.saturating_add(offset_ms),
            },
            (None, Self::Fixed { first, last }) => Self::Fixed {
                first: first.saturating_sub(offset_ms),
                last: last.saturating_sub(offset_ms),
            },
        }
    }

    /// The steps of a subquery: the first strictly after the start of the first window.
    fn within(self, subquery: &Subquery) -> Self {
        let shifted = self.shifted(subquery.at, subquery.offset.millis());
        let length_ms = match &subquery.range {
            Length::Known(length_ms) => length_ms.saturating_sub(1),
            Length::Expr(_) => 0,
        };
        match shifted {
            Self::Moving {
                first_back,
                last_back,
            } => Self::Moving {
                first_back: first_back.saturating_add(length_ms),
                last_back,
            },
            Self::Fixed { first, last } => Self::Fixed {
                first: first.saturating_sub(length_ms),
                last,
            },
        }
    }

    /// What is read at these times: `before_ms` back, without the first one, and `ahead_ms` on.
    fn window(self, before_ms: i64, ahead_ms: i64) -> Window {
        match self {
            Self::Moving {
                first_back,
                last_back,
            } => Window::Moving {
                back_max_ms: first_back.saturating_add(before_ms),
                back_min_ms: last_back.saturating_sub(ahead_ms),
            },
            Self::Fixed { first, last } => Window::Fixed {
                after_ms: first.saturating_sub(before_ms),
                to_ms: last.saturating_add(ahead_ms),
            },
        }
    }
}
