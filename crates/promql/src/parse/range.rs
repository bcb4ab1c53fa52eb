//! What stands behind an expression: brackets, `offset`, `@`, `anchored`, `smoothed`.
//!
//! The modifiers of an expression end where the last closing token read ends: behind `offset (1m)`
//! that is the token after it, as in Prometheus.

use super::expr::is_query_time;
use super::{Fail, Parsed, Parser};
use crate::literal::millis;
use crate::number::plain;
use crate::span::Span;
use crate::token::{Keyword, Kind, QueryWord, Token};
use crate::tree::{At, Expr, Length, Op, Range, Smoothing, Subquery};

/// What `offset` and `@` change.
struct Shifted<'e> {
    offset: &'e mut Length,
    at: &'e mut Option<At>,
    end: &'e mut usize,
}

fn shifted(expr: &mut Expr) -> Option<Shifted<'_>> {
    Some(match expr {
        Expr::Selector(selector) => Shifted {
            offset: &mut selector.offset,
            at: &mut selector.at,
            end: &mut selector.span.end,
        },
        Expr::Range(range) => Shifted {
            offset: &mut range.selector.offset,
            at: &mut range.selector.at,
            end: &mut range.end,
        },
        Expr::Subquery(subquery) => Shifted {
            offset: &mut subquery.offset,
            at: &mut subquery.at,
            end: &mut subquery.end,
        },
        _ => return None,
    })
}

const WHAT_IS_SHIFTED: &str = "modifier must be preceded by an instant vector selector or range \
                               vector selector or a subquery";

impl Parser<'_> {
    /// The expression with everything that stands behind it.
    pub(super) fn modified(&mut self, mut expr: Expr) -> Parsed<Expr> {
        loop {
            match self.peek()? {
                Kind::LeftBracket => expr = self.brackets(expr)?,
                Kind::At => {
                    self.ahead = None;
                    self.within("@", "timestamp", |parser| parser.at(&mut expr))?;
                }
                Kind::Keyword(Keyword::Offset) => {
                    self.ahead = None;
                    let expected = "number, duration, step(), or range()";
                    self.within("offset", expected, |parser| parser.offset(&mut expr))?;
                }
                Kind::Keyword(Keyword::Anchored) => {
                    self.ahead = None;
                    self.smoothing(&mut expr, Smoothing::Anchored)?;
                }
                Kind::Keyword(Keyword::Smoothed) => {
                    self.ahead = None;
                    self.smoothing(&mut expr, Smoothing::Smoothed)?;
                }
                _ => return Ok(expr),
            }
        }
    }

    /// A range or a subquery.
    fn brackets(&mut self, expr: Expr) -> Parsed<Expr> {
        let open = self.next()?;
        let height = self.height;
        let range = self.within(
            "subquery or range selector",
            "number, duration, step(), or range()",
            Self::positive,
        )?;
        let is_range = self.within("subquery or range", "\":\" or \"]\"", |parser| {
            if parser.takes(Kind::Colon)? {
                Ok(false)
            } else {
                parser.expect(Kind::RightBracket).map(|_| true)
            }
        })?;
        let height = height.max(self.height);
        if is_range {
            self.height = height;
            return self.range(expr, range, &open);
        }
        let mut step = None;
        if self.peek()? != Kind::RightBracket {
            step = Some(self.within(
                "subquery selector",
                "number, duration, step(), range(), or \"]\"",
                Self::positive,
            )?);
        }
        let close = self.within("subquery selector", "\"]\"", |parser| {
            parser.expect(Kind::RightBracket)
        })?;
        self.grow(height.max(self.height), open.span())?;
        Ok(Expr::Subquery(Box::new(Subquery {
            expr,
            range,
            step,
            offset: Length::Known(0),
            at: None,
            end: close.span().end,
        })))
    }

    fn range(&self, expr: Expr, range: Length, open: &Token<'_>) -> Parsed<Expr> {
        let span = Span {
            start: open.at,
            end: self.last_closing,
        };
        let Expr::Selector(selector) = expr else {
            return self.fail(span, "ranges only allowed for vector selectors");
        };
        if !matches!(selector.offset, Length::Known(0)) {
            return self.fail(span, "no offset modifiers allowed before range");
        }
        if selector.at.is_some() {
            return self.fail(span, "no @ modifiers allowed before range");
        }
        Ok(Expr::Range(Box::new(Range {
            selector: *selector,
            range,
            end: self.last_closing,
        })))
    }

    fn positive(&mut self) -> Parsed<Length> {
        let duration = self.duration(0)?;
        if let Expr::Number(number) = &duration
            && number.value <= 0.0
        {
            return self.fail(number.span, "duration must be greater than 0");
        }
        Ok(length(duration))
    }

    fn offset(&mut self, expr: &mut Expr) -> Parsed<()> {
        let height = self.height;
        let offset = length(self.offset_duration()?);
        self.height = self.height.max(height);
        let span = expr.span();
        let Some(shifted) = shifted(expr) else {
            return self.fail(span, format!("offset {WHAT_IS_SHIFTED}"));
        };
        if !matches!(shifted.offset, Length::Known(0)) {
            return self.fail(span, "offset may not be set multiple times");
        }
        *shifted.offset = offset;
        *shifted.end = self.last_closing;
        Ok(())
    }

    fn at(&mut self, expr: &mut Expr) -> Parsed<()> {
        let kind = self.peek()?;
        let span = expr.span();
        let at = if is_query_time(kind) {
            self.ahead = None;
            self.expect(Kind::LeftParen)?;
            self.expect(Kind::RightParen)?;
            if kind == Kind::Query(QueryWord::Start) {
                At::Start
            } else {
                At::End
            }
        } else {
            At::Time(self.at_time(span)?)
        };
        let Some(shifted) = shifted(expr) else {
            return self.fail(span, format!("@ {WHAT_IS_SHIFTED}"));
        };
        if shifted.at.is_some() {
            return self.fail(span, "@ <timestamp> may not be set multiple times");
        }
        *shifted.at = Some(at);
        *shifted.end = self.last_closing;
        Ok(())
    }

    /// A time in seconds; milliseconds.
    fn at_time(&mut self, span: Span) -> Parsed<i64> {
        let sign = self.peek()?;
        if let Kind::Op(Op::Add | Op::Sub) = sign {
            self.ahead = None;
        }
        if !matches!(self.peek()?, Kind::Number | Kind::Duration) {
            return Err(Fail::Unexpected);
        }
        let mut seconds = self.number()?.value;
        if sign == Kind::Op(Op::Sub) {
            seconds = -seconds;
        }
        // Also where it is not a number.
        if seconds.is_nan() || seconds.abs() >= i64::MAX as f64 {
            let shown = if seconds.is_finite() {
                format!("{seconds:.6}")
            } else {
                plain(seconds)
            };
            let text = format!("timestamp out of bounds for @ modifier: {shown}");
            return self.fail(span, text);
        }
        Ok((seconds * 1000.0).round() as i64)
    }

    fn smoothing(&self, expr: &mut Expr, wanted: Smoothing) -> Parsed<()> {
        let word = match wanted {
            Smoothing::Anchored => "anchored",
            _ => "smoothed",
        };
        let span = expr.span();
        let smoothing = match expr {
            Expr::Selector(selector) => &mut selector.smoothing,
            Expr::Range(range) => &mut range.selector.smoothing,
            Expr::Subquery(_) => {
                let text = format!("{word} modifier is not supported for subqueries");
                return self.fail(span, text);
            }
            _ => return self.fail(span, format!("{word} modifier not implemented")),
        };
        if *smoothing != Smoothing::Off && *smoothing != wanted {
            let text = "anchored and smoothed modifiers cannot be used together";
            return self.fail(span, text);
        }
        *smoothing = wanted;
        Ok(())
    }
}

/// A duration as parsed: a number, or what `prepare` evaluates.
fn length(duration: Expr) -> Length {
    match duration {
        Expr::Number(number) => Length::Known(millis(number.value)),
        Expr::Duration(duration) => Length::Expr(duration),
        _ => unreachable!("durations are numbers or operations on them"),
    }
}
