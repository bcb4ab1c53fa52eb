//! Selectors: a metric and its matchers.

use super::{Fail, Parsed, Parser};
use crate::labels::METRIC;
use crate::quote::unquoted;
use crate::source::Matcher;
use crate::span::Span;
use crate::token::{Kind, Token};
use crate::tree::{Length, Op, Selector, Smoothing};
use latewood_wire::selector::{Pattern, Test};

const CONTEXT: &str = "label matching";

impl<'a> Parser<'a> {
    /// A metric, braces, or both.
    pub(super) fn selector(&mut self) -> Parsed<Selector> {
        let token = self.peek_token()?;
        if token.kind != Kind::LeftBrace {
            self.ahead = None;
            return self.selector_named(token);
        }
        let (matchers, span) = self.matchers()?;
        Ok(selector("", matchers, span))
    }

    /// A metric, whose name was taken, and its braces if there are any.
    pub(super) fn selector_named(&mut self, name: Token<'a>) -> Parsed<Selector> {
        // Most names stand alone, and a vector that grows begins with room for several.
        let (mut matchers, mut span) = (Vec::with_capacity(1), name.span());
        if self.peek()? == Kind::LeftBrace {
            let (inside, braces) = self.matchers()?;
            matchers = inside;
            span = span.to(braces);
        }
        matchers.push(equal(METRIC.as_bytes(), name.text.as_bytes()));
        Ok(selector(name.text, matchers, span))
    }

    fn matchers(&mut self) -> Parsed<(Vec<Matcher>, Span)> {
        let open = self.next()?;
        let mut matchers = Vec::new();
        loop {
            if self.peek()? == Kind::RightBrace {
                break;
            }
            matchers.push(self.matcher()?);
            match self.peek()? {
                Kind::Comma => self.ahead = None,
                Kind::RightBrace => break,
                _ => {
                    let expected = "\",\" or \"}\"";
                    return Err(self.explained(Fail::Unexpected, CONTEXT, expected));
                }
            }
        }
        let close = self.next()?;
        Ok((matchers, open.span().to(close.span())))
    }

    fn matcher(&mut self) -> Parsed<Matcher> {
        let unexpected =
            |parser: &Self, expected| Err(parser.explained(Fail::Unexpected, CONTEXT, expected));
        let name = self.peek_token()?;
        let label = match name.kind {
            Kind::Identifier => name.text.as_bytes().to_vec(),
            Kind::Text => unquoted(name.text),
            _ => return unexpected(self, "identifier or \"}\""),
        };
        self.ahead = None;
        let op = self.peek()?;
        if !matches!(
            op,
            Kind::Assign | Kind::Op(Op::NotEqual) | Kind::Match | Kind::NotMatch
        ) {
            return match name.kind {
                Kind::Text => Ok(equal(METRIC.as_bytes(), &label)),
                _ => unexpected(self, "label matching operator"),
            };
        }
        self.ahead = None;
        if self.peek()? != Kind::Text {
            return unexpected(self, "string");
        }
        let value = self.next()?;
        let span = name.span().to(value.span());
        let value = unquoted(value.text);
        let test = match op {
            Kind::Assign => Test::Equal(value.into()),
            Kind::Op(_) => Test::NotEqual(value.into()),
            Kind::Match => Test::Match(self.pattern(value, span)?),
            _ => Test::NotMatch(self.pattern(value, span)?),
        };
        Ok(Matcher::new(&label, test))
    }

    fn pattern(&mut self, text: Vec<u8>, span: Span) -> Parsed<Pattern> {
        crate::pattern::compile(&text, &mut self.patterns).map_err(|error| self.error(span, error))
    }
}

fn equal(name: &[u8], value: &[u8]) -> Matcher {
    Matcher::new(name, Test::Equal(value.into()))
}

fn selector(name: &str, matchers: Vec<Matcher>, span: Span) -> Selector {
    Selector {
        name: name.to_owned(),
        matchers,
        offset: Length::Known(0),
        at: None,
        smoothing: Smoothing::Off,
        span,
    }
}
