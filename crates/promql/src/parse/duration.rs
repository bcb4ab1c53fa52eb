//! Durations: numbers and operations on them, in brackets and behind `offset`.

use super::binary::{POWER, right_strength, strength};
use super::expr::with_sign;
use super::{Fail, Parsed, Parser};
use crate::literal::is_out_of_range;
use crate::span::Span;
use crate::token::{Kind, QueryWord, Token};
use crate::tree::{Duration, DurationOp, Expr, Op};

impl<'a> Parser<'a> {
    /// A duration of operators that bind at least as strongly as `min`.
    pub(super) fn duration(&mut self, min: u8) -> Parsed<Expr> {
        let left = self.duration_operand()?;
        self.duration_behind(left, min)
    }

    fn duration_behind(&mut self, mut left: Expr, min: u8) -> Parsed<Expr> {
        let mut height = self.height;
        loop {
            let token = self.peek_token()?;
            let operator = operator(token.kind);
            let Some((op, written)) = operator.filter(|(_, op)| strength(*op) >= min) else {
                self.height = height;
                return Ok(left);
            };
            self.ahead = None;
            let right = self.nested(|parser| parser.duration(right_strength(written)))?;
            if let Expr::Number(number) = &right
                && number.value == 0.0
            {
                match op {
                    DurationOp::Div => return self.fail(token.span(), "division by zero"),
                    DurationOp::Mod => return self.fail(token.span(), "modulo by zero"),
                    _ => {}
                }
            }
            let span = left.span().to(right.span());
            self.grow(height.max(self.height), token.span())?;
            height = self.height;
            left = node(op, Some(left), Some(right), span);
        }
    }

    fn duration_operand(&mut self) -> Parsed<Expr> {
        let token = self.peek_token()?;
        self.height = 1;
        match token.kind {
            Kind::Number | Kind::Duration => self.duration_number(),
            Kind::Op(Op::Add | Op::Sub) => {
                self.ahead = None;
                let inner = self.nested(|parser| parser.duration(POWER))?;
                self.duration_with_sign(&token, inner)
            }
            Kind::LeftParen => self.duration_paren(),
            Kind::Query(QueryWord::Step | QueryWord::Range) => self.duration_word(),
            Kind::Query(QueryWord::MinOf | QueryWord::MaxOf) => self.duration_choice(),
            _ => Err(Fail::Unexpected),
        }
    }

    fn duration_number(&mut self) -> Parsed<Expr> {
        let number = self.number()?;
        if is_out_of_range(number.value) {
            self.fail(number.span, "duration out of range")
        } else {
            Ok(Expr::Number(number))
        }
    }

    fn duration_with_sign(&mut self, sign: &Token<'_>, inner: Expr) -> Parsed<Expr> {
        let negates = sign.kind == Kind::Op(Op::Sub);
        match inner {
            Expr::Number(number) => {
                let number = with_sign(number, negates, sign.at);
                Ok(Expr::Number(number))
            }
            inner if negates => {
                let span = sign.span().to(inner.span());
                self.grow(self.height, span)?;
                Ok(node(DurationOp::Sub, None, Some(inner), span))
            }
            inner => Ok(inner),
        }
    }

    fn duration_paren(&mut self) -> Parsed<Expr> {
        let open = self.next()?;
        let inner = self.nested(|parser| parser.duration(0))?;
        self.expect(Kind::RightParen)?;
        Ok(wrapped(inner, open.at))
    }

    /// `step()` or `range()`.
    fn duration_word(&mut self) -> Parsed<Expr> {
        let word = self.next()?;
        self.expect(Kind::LeftParen)?;
        let close = self.expect(Kind::RightParen)?;
        let op = match word.kind {
            Kind::Query(QueryWord::Step) => DurationOp::Step,
            _ => DurationOp::Range,
        };
        Ok(node(op, None, None, word.span().to(close.span())))
    }

    /// `min_of(a, b)` or `max_of(a, b)`.
    fn duration_choice(&mut self) -> Parsed<Expr> {
        let word = self.next()?;
        self.expect(Kind::LeftParen)?;
        let left = self.nested(|parser| parser.duration(0))?;
        let height = self.height;
        self.expect(Kind::Comma)?;
        let right = self.nested(|parser| parser.duration(0))?;
        let close = self.expect(Kind::RightParen)?;
        let op = match word.kind {
            Kind::Query(QueryWord::MinOf) => DurationOp::MinOf,
            _ => DurationOp::MaxOf,
        };
        let span = word.span().to(close.span());
        self.grow(height.max(self.height), span)?;
        Ok(node(op, Some(left), Some(right), span))
    }

    /// The duration behind `offset`. Operators go on with it only behind a parenthesis or two
    /// signs: `a offset 1m + 2m` adds to `a`, `a offset (1m) + 2m` to the offset.
    pub(super) fn offset_duration(&mut self) -> Parsed<Expr> {
        let token = self.peek_token()?;
        match token.kind {
            Kind::Op(Op::Add | Op::Sub) => self.ahead = None,
            Kind::LeftParen => return self.duration(0),
            _ => return self.duration_operand(),
        }
        match self.peek()? {
            Kind::Number | Kind::Duration => {
                let number = self.number()?;
                if is_out_of_range(number.value) {
                    self.fail(token.span(), "duration out of range")
                } else {
                    self.duration_with_sign(&token, Expr::Number(number))
                }
            }
            Kind::LeftParen => {
                self.ahead = None;
                let inner = self.nested(|parser| parser.duration(0))?;
                self.expect(Kind::RightParen)?;
                let start = inner.span().start;
                self.duration_with_sign(&token, wrapped(inner, start))
            }
            Kind::Op(Op::Add | Op::Sub) => {
                let inner = self.nested(|parser| parser.duration(POWER))?;
                let signed = self.duration_with_sign(&token, inner)?;
                self.duration_behind(signed, 0)
            }
            _ => {
                let inner = self.duration_operand()?;
                let op = match token.kind {
                    Kind::Op(Op::Sub) => DurationOp::Sub,
                    _ => DurationOp::Add,
                };
                let span = token.span().to(inner.span());
                self.grow(self.height, span)?;
                Ok(node(op, None, Some(inner), span))
            }
        }
    }
}

/// An operator of durations, and how it is written.
fn operator(kind: Kind) -> Option<(DurationOp, Op)> {
    let Kind::Op(written) = kind else { return None };
    let op = match written {
        Op::Add => DurationOp::Add,
        Op::Sub => DurationOp::Sub,
        Op::Mul => DurationOp::Mul,
        Op::Div => DurationOp::Div,
        Op::Mod => DurationOp::Mod,
        Op::Pow => DurationOp::Pow,
        _ => return None,
    };
    Some((op, written))
}

fn node(op: DurationOp, left: Option<Expr>, right: Option<Expr>, span: Span) -> Expr {
    Expr::Duration(Box::new(Duration {
        op,
        left,
        right,
        is_wrapped: false,
        span,
    }))
}

/// In parentheses; a number becomes one with a plus, which is not printed.
fn wrapped(inner: Expr, start: usize) -> Expr {
    let mut outer = match inner {
        Expr::Duration(duration) => duration,
        inner => Box::new(Duration {
            op: DurationOp::Add,
            left: None,
            span: Span {
                start,
                end: inner.span().end,
            },
            right: Some(inner),
            is_wrapped: false,
        }),
    };
    outer.is_wrapped = true;
    Expr::Duration(outer)
}
