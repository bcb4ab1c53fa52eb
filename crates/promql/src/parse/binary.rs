//! Binary operations and how their sides match.

use super::expr::with_sign;
use super::{Fail, Parsed, Parser};
use crate::lex::is_plain_label;
use crate::quote::{quoted, unquoted};
use crate::span::Span;
use crate::token::{Keyword, Kind};
use crate::tree::{Binary, Cardinality, Expr, Matching, Op};

/// How strongly `^` binds, the only operator that groups from the right.
pub(super) const POWER: u8 = 6;

/// How strongly an operator binds.
pub(super) fn strength(op: Op) -> u8 {
    match op {
        Op::Or => 1,
        Op::And | Op::Unless => 2,
        Op::Add | Op::Sub => 4,
        Op::Mul | Op::Div | Op::Mod | Op::Atan2 => 5,
        Op::Pow => POWER,
        _ => 3,
    }
}

/// The strength that the right side needs.
pub(super) fn right_strength(op: Op) -> u8 {
    strength(op) + u8::from(op != Op::Pow)
}

/// What stands between an operator and its right side.
struct Modifiers {
    returns_bool: bool,
    matching: Matching,
}

impl Parser<'_> {
    /// An expression of operators that bind at least as strongly as `min`.
    pub(super) fn expr(&mut self, min: u8) -> Parsed<Expr> {
        let mut left = self.operand()?;
        let mut height = self.height;
        loop {
            let token = self.peek_token()?;
            let Kind::Op(op) = token.kind else { break };
            if strength(op) < min {
                break;
            }
            self.ahead = None;
            let modifiers = self.modifiers()?;
            let right = self.nested(|parser| parser.expr(right_strength(op)))?;
            self.grow(height.max(self.height), token.span())?;
            height = self.height;
            left = Expr::Binary(Box::new(Binary {
                op,
                left,
                right,
                returns_bool: modifiers.returns_bool,
                matching: Some(modifiers.matching),
            }));
        }
        self.height = height;
        Ok(left)
    }

    fn modifiers(&mut self) -> Parsed<Modifiers> {
        let returns_bool = self.takes(Kind::Keyword(Keyword::Bool))?;
        let mut matching = Matching::default();
        if let Kind::Keyword(word @ (Keyword::On | Keyword::Ignoring)) = self.peek()? {
            self.ahead = None;
            matching.is_on = word == Keyword::On;
            matching.labels = self.labels()?;
            self.group(&mut matching)?;
        }
        self.fills(&mut matching)?;
        Ok(Modifiers {
            returns_bool,
            matching,
        })
    }

    /// `group_left` or `group_right`.
    fn group(&mut self, matching: &mut Matching) -> Parsed<()> {
        matching.cardinality = match self.peek()? {
            Kind::Keyword(Keyword::GroupLeft) => Cardinality::ManyToOne,
            Kind::Keyword(Keyword::GroupRight) => Cardinality::OneToMany,
            _ => return Ok(()),
        };
        self.ahead = None;
        // Without labels, the right side must begin here.
        let token = self.peek_token()?;
        if token.kind == Kind::LeftParen || !token.begins_expr() {
            matching.include = self.labels()?;
        }
        Ok(())
    }

    /// `fill`, or `fill_left` and `fill_right` in any order.
    fn fills(&mut self, matching: &mut Matching) -> Parsed<()> {
        if self.takes(Kind::Keyword(Keyword::Fill))? {
            let value = self.fill()?;
            (matching.fill_left, matching.fill_right) = (Some(value), Some(value));
        } else if self.takes(Kind::Keyword(Keyword::FillLeft))? {
            matching.fill_left = Some(self.fill()?);
            if self.takes(Kind::Keyword(Keyword::FillRight))? {
                matching.fill_right = Some(self.fill()?);
            }
        } else if self.takes(Kind::Keyword(Keyword::FillRight))? {
            matching.fill_right = Some(self.fill()?);
            if self.takes(Kind::Keyword(Keyword::FillLeft))? {
                matching.fill_left = Some(self.fill()?);
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> Parsed<f64> {
        self.expect(Kind::LeftParen)?;
        let sign = self.peek_token()?;
        let is_signed = matches!(sign.kind, Kind::Op(Op::Add | Op::Sub));
        if is_signed {
            self.ahead = None;
        }
        if !matches!(self.peek()?, Kind::Number | Kind::Duration) {
            return Err(Fail::Unexpected);
        }
        let number = self.number()?;
        let negates = is_signed && sign.kind == Kind::Op(Op::Sub);
        self.expect(Kind::RightParen)?;
        Ok(with_sign(number, negates, sign.at).value)
    }

    /// Names of labels in parentheses.
    pub(super) fn labels(&mut self) -> Parsed<Vec<String>> {
        const CONTEXT: &str = "grouping opts";
        self.within(CONTEXT, "\"(\"", |parser| parser.expect(Kind::LeftParen))?;
        let mut labels = Vec::new();
        loop {
            if self.takes(Kind::RightParen)? {
                return Ok(labels);
            }
            labels.push(self.within(CONTEXT, "label", Self::label)?);
            if !self.takes(Kind::Comma)? {
                self.within(CONTEXT, "\",\" or \")\"", |parser| {
                    parser.expect(Kind::RightParen)
                })?;
                return Ok(labels);
            }
        }
    }

    fn label(&mut self) -> Parsed<String> {
        let token = self.peek_token()?;
        let (name, is_valid) = match token.kind {
            Kind::Text => {
                let name = unquoted(token.text);
                let is_valid = !name.is_empty() && std::str::from_utf8(&name).is_ok();
                (name, is_valid)
            }
            _ if token.is_label() => (token.text.into(), is_plain_label(token.text)),
            _ => return Err(Fail::Unexpected),
        };
        self.ahead = None;
        match String::from_utf8(name) {
            Ok(name) if is_valid => Ok(name),
            Ok(name) => self.bad_label(token.span(), name.as_bytes()),
            Err(error) => self.bad_label(token.span(), error.as_bytes()),
        }
    }

    fn bad_label(&self, span: Span, name: &[u8]) -> Parsed<String> {
        let name = quoted(name);
        self.fail(span, format!("invalid label name for grouping: {name}"))
    }
}
