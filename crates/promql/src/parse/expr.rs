//! Expressions that are neither selectors nor operations: numbers, texts, calls, aggregations.

use super::{Fail, Parsed, Parser};
use crate::function;
use crate::lex::is_space;
use crate::literal;
use crate::quote::{quoted, unquoted};
use crate::span::Span;
use crate::token::{Keyword, Kind, QueryWord, Token};
use crate::tree::{Aggregate, Aggregator, Call, Expr, Number, Op, Text, Unary};

impl<'a> Parser<'a> {
    /// What may stand beside a binary operator.
    pub(super) fn operand(&mut self) -> Parsed<Expr> {
        let token = self.peek_token()?;
        if let Kind::Op(Op::Add | Op::Sub) = token.kind {
            return self.signed();
        }
        let expr = self.primary(token)?;
        self.modified(expr)
    }

    /// A sign binds weaker than `^`.
    fn signed(&mut self) -> Parsed<Expr> {
        let sign = self.next()?;
        let negates = sign.kind == Kind::Op(Op::Sub);
        let expr = self.nested(|parser| parser.expr(super::binary::POWER))?;
        self.grow(self.height, sign.span())?;
        Ok(match expr {
            Expr::Number(number) => Expr::Number(with_sign(number, negates, sign.at)),
            expr => Expr::Unary(Box::new(Unary {
                negates,
                expr,
                start: sign.at,
            })),
        })
    }

    fn primary(&mut self, token: Token<'a>) -> Parsed<Expr> {
        self.height = 1;
        match token.kind {
            Kind::Number | Kind::Duration => self.number().map(Expr::Number),
            Kind::Text => self.string(),
            Kind::LeftParen => self.paren(),
            Kind::Aggregator(op) => {
                self.ahead = None;
                match self.peek()? {
                    Kind::LeftParen | Kind::Keyword(Keyword::By | Keyword::Without) => {
                        self.within("aggregation", "", |parser| parser.aggregate(op, token))
                    }
                    _ => self.selector_of(token),
                }
            }
            Kind::Identifier | Kind::Query(_) => {
                self.ahead = None;
                match self.peek()? {
                    Kind::LeftParen => self.call(token),
                    _ => self.selector_of(token),
                }
            }
            Kind::LeftBrace => self
                .selector()
                .map(|selector| Expr::Selector(Box::new(selector))),
            _ if token.is_metric() => {
                self.ahead = None;
                self.selector_of(token)
            }
            _ => Err(Fail::Unexpected),
        }
    }

    fn selector_of(&mut self, name: Token<'a>) -> Parsed<Expr> {
        let selector = self.selector_named(name)?;
        Ok(Expr::Selector(Box::new(selector)))
    }

    /// A number or a duration.
    pub(super) fn number(&mut self) -> Parsed<Number> {
        let token = self.next()?;
        let is_duration = token.kind == Kind::Duration;
        let value = if is_duration {
            literal::duration(token.text)
        } else {
            literal::number(token.text).map_err(|error| format!("error parsing number: {error}"))
        };
        let span = token.span();
        Ok(Number {
            value: value.map_err(|error| self.error(span, error))?,
            is_duration,
            span,
        })
    }

    fn string(&mut self) -> Parsed<Expr> {
        let token = self.next()?;
        let span = token.span();
        let (value, not_utf8) = match String::from_utf8(unquoted(token.text)) {
            Ok(value) => (value, None),
            Err(error) => {
                self.not_utf8.push(span);
                (String::new(), Some(error.into_bytes().into()))
            }
        };
        Ok(Expr::Text(Text {
            value,
            not_utf8,
            span,
        }))
    }

    fn paren(&mut self) -> Parsed<Expr> {
        let open = self.next()?;
        let expr = self.nested(|parser| parser.expr(0))?;
        let close = self.expect(Kind::RightParen)?;
        let span = open.span().to(close.span());
        self.grow(self.height, span)?;
        Ok(Expr::Paren(Box::new(expr), span))
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect(Kind::LeftParen)?;
        let mut arguments = Vec::new();
        let mut height = 0;
        if self.takes(Kind::RightParen)? {
            self.height = height;
            return Ok(arguments);
        }
        loop {
            arguments.push(self.nested(|parser| parser.expr(0))?);
            height = height.max(self.height);
            if self.peek()? != Kind::Comma {
                self.expect(Kind::RightParen)?;
                self.height = height;
                return Ok(arguments);
            }
            let comma = self.next()?;
            if !self.peek_token()?.begins_expr() {
                let text = "trailing commas not allowed in function call args";
                return self.fail(comma.span(), text);
            }
        }
    }

    fn call(&mut self, name: Token<'a>) -> Parsed<Expr> {
        let args = self.arguments()?;
        let Some(function) = function::find(name.text) else {
            let shown = quoted(name.text);
            return self.fail(name.span(), format!("unknown function with name {shown}"));
        };
        let span = Span {
            start: name.at,
            end: self.last_closing,
        };
        self.grow(self.height, span)?;
        Ok(Expr::Call(Box::new(Call {
            function,
            args,
            span,
        })))
    }

    fn aggregate(&mut self, op: Aggregator, name: Token<'a>) -> Parsed<Expr> {
        let mut by = self.grouping()?;
        let arguments = self.arguments()?;
        let height = self.height;
        let mut end = self.last_closing;
        if by.is_none() {
            by = self.grouping()?;
            end = match by {
                Some(_) => self.last_closing,
                None => self.end_of_aggregate(),
            };
        }
        let (grouping, is_without) = by.unwrap_or_default();
        let span = Span {
            start: name.at,
            end,
        };
        self.grow(height, span)?;
        let (param, expr) = self.aggregate_arguments(op, arguments, span)?;
        if let (Aggregator::CountValues, Some(Expr::Text(label))) =
            (op, param.as_ref().map(Expr::bare))
        {
            // Such a label is refused when the query runs.
            self.not_utf8.retain(|span| *span != label.span);
        }
        Ok(Expr::Aggregate(Box::new(Aggregate {
            op,
            expr,
            param,
            grouping,
            is_without,
            span,
        })))
    }

    fn aggregate_arguments(
        &self,
        op: Aggregator,
        mut arguments: Vec<Expr>,
        span: Span,
    ) -> Parsed<(Option<Expr>, Expr)> {
        let (wanted, got) = (1 + usize::from(op.has_param()), arguments.len());
        let Some(expr) = arguments.pop() else {
            return self.fail(span, "no arguments for aggregate expression provided");
        };
        if got != wanted {
            return self.fail(
                span,
                format!(
                    "wrong number of arguments for aggregate expression provided, \
                     expected {wanted}, got {got}"
                ),
            );
        }
        Ok((arguments.pop(), expr))
    }

    /// `by (...)` or `without (...)`.
    fn grouping(&mut self) -> Parsed<Option<(Vec<String>, bool)>> {
        let is_without = match self.peek()? {
            Kind::Keyword(Keyword::By) => false,
            Kind::Keyword(Keyword::Without) => true,
            _ => return Ok(None),
        };
        self.ahead = None;
        Ok(Some((self.labels()?, is_without)))
    }

    /// The end of an aggregation without labels behind it. The token behind was read, and the
    /// parenthesis looked for may stand before it.
    fn end_of_aggregate(&self) -> usize {
        let Some(token) = self.ahead.filter(|token| token.kind == Kind::RightParen) else {
            return self.last_closing;
        };
        let before = self.text[..token.at].trim_end_matches(is_space);
        if before.ends_with(')') {
            before.len()
        } else {
            self.last_closing
        }
    }
}

/// The number behind a sign at `start`.
pub(super) fn with_sign(mut number: Number, negates: bool, start: usize) -> Number {
    if negates {
        number.value = -number.value;
    }
    number.span.start = start;
    number
}

/// Whether a name is that of a query's own time.
pub(super) fn is_query_time(kind: Kind) -> bool {
    matches!(kind, Kind::Query(QueryWord::Start | QueryWord::End))
}
