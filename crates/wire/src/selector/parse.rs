//! Parses the text of a selector into matchers.

use super::quoted::unquote;
use super::{MATCHERS_MAX, Matcher, Patterns, SELECTOR_BYTES_MAX, SelectorError, Test};
use crate::series_name::METRIC;

/// The operators after a label name.
const OPERATOR: &str = "one of = != =~ !~";

/// Parses the whole text; does not check what the matchers match.
pub(super) fn matchers(text: &str, patterns: &mut Patterns) -> Result<Vec<Matcher>, SelectorError> {
    if text.len() > SELECTOR_BYTES_MAX {
        return Err(SelectorError::TooLong);
    }
    let at = 0;
    let mut cursor = Cursor { text, at, patterns };
    let mut matchers = Vec::new();
    cursor.skip_blanks();
    let metric = cursor.name();
    if !metric.is_empty() {
        matchers.push(equal(METRIC, metric.as_bytes()));
    }
    cursor.skip_blanks();
    let has_braces = cursor.takes(b'{');
    if has_braces {
        cursor.braces(&mut matchers)?;
        cursor.skip_blanks();
    }
    if cursor.at < text.len() {
        let wanted = match cursor.at {
            0 => "a metric name or {",
            _ if has_braces => "end of input",
            _ => "{ or end of input (quote other names: {\"like this\"})",
        };
        return Err(cursor.unexpected(wanted));
    }
    // The caller refuses a selector without matchers.
    Ok(matchers)
}

fn equal(name: &[u8], value: &[u8]) -> Matcher {
    Matcher::new(name, Test::Equal(value.into()))
}

/// A position in the text, always at a character boundary.
struct Cursor<'a, 'p> {
    text: &'a str,
    at: usize,
    patterns: &'p mut Patterns,
}

impl<'a> Cursor<'a, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn unexpected(&self, wanted: &'static str) -> SelectorError {
        SelectorError::Unexpected {
            at: self.at,
            wanted,
        }
    }

    /// An unquoted name; empty if there is none.
    fn name(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let is_part = |letter: char| {
            letter.is_ascii_alphanumeric() || "_:.-/".contains(letter) || !letter.is_ascii()
        };
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A quoted string, if one begins here.
    fn quoted(&mut self) -> Result<Option<Vec<u8>>, SelectorError> {
        match self.peek() {
            Some(b'"' | b'\'' | b'`') => unquote(self.text.as_bytes(), &mut self.at).map(Some),
            _ => Ok(None),
        }
    }

    /// The matchers in braces, after the opening one.
    fn braces(&mut self, matchers: &mut Vec<Matcher>) -> Result<(), SelectorError> {
        loop {
            self.skip_blanks();
            if self.takes(b'}') {
                return Ok(());
            }
            if matchers.len() == MATCHERS_MAX {
                return Err(SelectorError::TooMany);
            }
            let has_metric = matchers
                .iter()
                .any(|matcher| matcher.is_on_metric() && matches!(matcher.test, Test::Equal(_)));
            let matcher = self.matcher()?;
            if has_metric && matcher.is_on_metric() {
                return Err(SelectorError::MetricTwice);
            }
            matchers.push(matcher);
            self.skip_blanks();
            if !self.takes(b',') && self.peek() != Some(b'}') {
                return Err(self.unexpected(", or }"));
            }
        }
    }

    /// One matcher.
    fn matcher(&mut self) -> Result<Matcher, SelectorError> {
        let quoted = self.quoted()?;
        let is_quoted = quoted.is_some();
        let name = match quoted {
            Some(name) => name,
            None => self.name().as_bytes().to_vec(),
        };
        if name.is_empty() {
            return Err(self.unexpected("a label name"));
        }
        self.skip_blanks();
        if is_quoted && matches!(self.peek(), Some(b',' | b'}')) {
            return Ok(equal(METRIC, &name));
        }
        let is_negative = match self.peek() {
            Some(b'=') => false,
            Some(b'!') => true,
            _ => return Err(self.unexpected(OPERATOR)),
        };
        self.at += 1;
        let is_pattern = self.takes(b'~');
        if is_negative && !is_pattern && !self.takes(b'=') {
            return Err(self.unexpected("= or ~"));
        }
        self.skip_blanks();
        let at = self.at;
        let Some(value) = self.quoted()? else {
            return Err(self.unexpected("a quoted value"));
        };
        let test = match (is_pattern, is_negative) {
            (false, false) => Test::Equal(value.into()),
            (false, true) => Test::NotEqual(value.into()),
            (true, _) => {
                let text = String::from_utf8(value);
                let text = text.map_err(|_| SelectorError::BadEscape(at))?;
                let pattern = self.patterns.compile(&text)?;
                match is_negative {
                    false => Test::Match(pattern),
                    true => Test::NotMatch(pattern),
                }
            }
        };
        Ok(Matcher::new(&name, test))
    }
}
