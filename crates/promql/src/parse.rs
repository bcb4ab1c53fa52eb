//! Text to syntax tree: an operator precedence parser, one token ahead.
//!
//! A token is read only when it decides something. Prometheus reads its tokens so, and what it has
//! read shows: an error of the lexer counts only if nothing before it was wrong, and the end of some
//! expressions is that of the last bracket or number *read*.
//!
//! An unexpected token is an error of the innermost construct that says what it expects, or else of
//! the whole query. Depth is limited, so that no text overflows the stack; length is limited, so
//! that no text takes much memory; time is linear.
//!
//! Tested by `tests/syntax`, and by the fuzz target `promql`.

mod binary;
mod duration;
mod expr;
mod range;
mod selector;

use crate::check;
use crate::error::ParseError;
use crate::lex::Lexer;
use crate::source::Matcher;
use crate::span::Span;
use crate::token::{Kind, Token};
use crate::tree::Expr;
use latewood_wire::selector::Patterns;

/// Bytes of the longest text that is parsed, of an expression or a selector.
///
/// A tree takes at most 256 bytes for each byte of its text, beside its regular expressions, whose
/// number and size have limits of their own.
pub const QUERY_BYTES_MAX: usize = 256 << 10;
/// Levels of brackets, signs and right sides within each other.
const NESTING_MAX: usize = 200;
/// Levels of the tree: each operator of a chain `a + b + c` is one.
const HEIGHT_MAX: usize = 1000;

/// Parses an expression and checks it.
///
/// # Errors
/// The first error, in the words of Prometheus; a text of more than [`QUERY_BYTES_MAX`] is one.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text);
    let parsed = parser.whole();
    let mut expr = parser.ends(parsed)?;
    check::check(text, &mut expr)?;
    match parser.not_utf8.first() {
        Some(span) => Err(ParseError::new(text, *span, "text must be valid UTF-8")),
        None => Ok(expr),
    }
}

/// Parses a selector of series, as in `match[]`: neither a range nor modifiers.
///
/// # Errors
/// The first error, in the words of Prometheus. A selector that matches everything is none.
pub fn parse_selector(text: &str) -> Result<Vec<Matcher>, ParseError> {
    parse_selector_with(text, &mut Patterns::default())
}

/// Parses one of the selectors of a request, whose regular expressions `patterns` compiles.
///
/// # Errors
/// As [`parse_selector`].
pub fn parse_selector_with(
    text: &str,
    patterns: &mut Patterns,
) -> Result<Vec<Matcher>, ParseError> {
    let mut parser = Parser::new(text);
    parser.patterns = std::mem::take(patterns);
    let parsed = parser.whole_selector();
    *patterns = std::mem::take(&mut parser.patterns);
    parser.ends(parsed)
}

/// Why parsing ends.
enum Fail {
    /// The next token fits nowhere.
    Unexpected,
    Known(Box<ParseError>),
}

impl From<ParseError> for Fail {
    fn from(error: ParseError) -> Self {
        Self::Known(Box::new(error))
    }
}

type Parsed<T> = Result<T, Fail>;

#[derive(Default)]
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token that was read and not yet taken.
    ahead: Option<Token<'a>>,
    /// The end of the last closing bracket, number or duration that was read.
    last_closing: usize,
    nesting: usize,
    /// Of the expression parsed last.
    height: usize,
    patterns: Patterns,
    /// Texts that cannot be held. Prometheus accepts them, so that all other errors come first.
    not_utf8: Vec<Span>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            lexer: Lexer::new(text),
            ..Self::default()
        }
    }

    /// Whether the text is short enough.
    fn fits(&self) -> Parsed<()> {
        if self.text.len() > QUERY_BYTES_MAX {
            self.fail(
                Span::default(),
                format!("more than {QUERY_BYTES_MAX} bytes of text"),
            )
        } else {
            Ok(())
        }
    }

    fn whole(&mut self) -> Parsed<Expr> {
        self.fits()?;
        if self.peek()? == Kind::End {
            return self.fail(Span::default(), "no expression found in input");
        }
        let expr = self.expr(0)?;
        self.expect(Kind::End)?;
        Ok(expr)
    }

    fn whole_selector(&mut self) -> Parsed<Vec<Matcher>> {
        self.fits()?;
        let token = self.peek_token()?;
        let selector = if token.is_metric() || token.kind == Kind::LeftBrace {
            self.selector()?
        } else {
            return Err(Fail::Unexpected);
        };
        self.expect(Kind::End)?;
        Ok(selector.matchers)
    }

    /// The result, or the error that ended it.
    fn ends<T>(&self, parsed: Parsed<T>) -> Result<T, ParseError> {
        parsed.map_err(|fail| match self.explained(fail, "", "") {
            Fail::Known(error) => *error,
            // Explained just now.
            Fail::Unexpected => ParseError::new(self.text, Span::default(), "unexpected error"),
        })
    }

    /// The next token, which stays there.
    fn peek_token(&mut self) -> Parsed<Token<'a>> {
        if let Some(token) = self.ahead {
            return Ok(token);
        }
        let token = self.lexer.token().map_err(|error| {
            let span = Span {
                start: error.at,
                end: self.text.len(),
            };
            ParseError::new(self.text, span, error.text)
        })?;
        if let Kind::RightBrace
        | Kind::RightParen
        | Kind::RightBracket
        | Kind::Duration
        | Kind::Number = token.kind
        {
            self.last_closing = token.span().end;
        }
        self.ahead = Some(token);
        Ok(token)
    }

    fn peek(&mut self) -> Parsed<Kind> {
        Ok(self.peek_token()?.kind)
    }

    /// Takes the next token.
    fn next(&mut self) -> Parsed<Token<'a>> {
        let token = self.peek_token()?;
        self.ahead = None;
        Ok(token)
    }

    fn expect(&mut self, kind: Kind) -> Parsed<Token<'a>> {
        if self.peek()? == kind {
            self.next()
        } else {
            Err(Fail::Unexpected)
        }
    }

    fn takes(&mut self, kind: Kind) -> Parsed<bool> {
        let is_next = self.peek()? == kind;
        if is_next {
            self.ahead = None;
        }
        Ok(is_next)
    }

    fn error(&self, span: Span, text: impl Into<String>) -> Fail {
        ParseError::new(self.text, span, text).into()
    }

    fn fail<T>(&self, span: Span, text: impl Into<String>) -> Parsed<T> {
        Err(self.error(span, text))
    }

    /// The failure, with what is at hand if only the token is known.
    fn explained(&self, fail: Fail, context: &str, expected: &str) -> Fail {
        let (Fail::Unexpected, Some(token)) = (&fail, self.ahead) else {
            return fail;
        };
        let mut text = format!("unexpected {}", token.describe());
        if !context.is_empty() {
            text = format!("{text} in {context}");
        }
        if !expected.is_empty() {
            text = format!("{text}, expected {expected}");
        }
        self.error(token.span(), text)
    }

    /// Parses a part of what `context` names.
    fn within<T>(
        &mut self,
        context: &str,
        expected: &str,
        part: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        part(self).map_err(|fail| self.explained(fail, context, expected))
    }

    /// Parses what stands one level deeper.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == NESTING_MAX {
            let span = self.peek_token()?.span();
            return self.fail(span, format!("more than {NESTING_MAX} nested expressions"));
        }
        self.nesting += 1;
        let parsed = part(self);
        self.nesting -= 1;
        parsed
    }

    /// Notes the height of an expression over one of `height`.
    fn grow(&mut self, height: usize, span: Span) -> Parsed<()> {
        self.height = height + 1;
        if self.height > HEIGHT_MAX {
            self.fail(
                span,
                format!("more than {HEIGHT_MAX} levels of expressions"),
            )
        } else {
            Ok(())
        }
    }
}
