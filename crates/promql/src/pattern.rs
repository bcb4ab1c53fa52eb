//! Regular expressions, written for Go, in the syntax of Rust.
//!
//! A dot matches a newline. `\d`, `\s`, `\w` and `\b` are ASCII, braces that are no repetition and
//! `[`, `&&`, `--`, `~~` within a class are literal, `\Q...\E` and octal numbers are known. One pass;
//! errors are those of Go.

mod class;
mod escape;
mod group;

use latewood_wire::selector::{Pattern, Patterns, SelectorError};

/// Compiles the pattern of a matcher, which must match a whole value, as one of `patterns`.
///
/// # Errors
/// The text of the error.
pub fn compile(text: &[u8], patterns: &mut Patterns) -> Result<Pattern, String> {
    let Ok(text) = std::str::from_utf8(text) else {
        let shown = String::from_utf8_lossy(text);
        return Err(format!("error parsing regexp: invalid UTF-8: `{shown}`"));
    };
    match patterns.compile(&translate(text)?) {
        Ok(pattern) => Ok(pattern.written(text)),
        Err(error @ (SelectorError::TooManyPatterns | SelectorError::LargePatterns)) => {
            Err(error.to_string())
        }
        Err(error) => Err(format!("error parsing regexp: {error}")),
    }
}

/// The pattern in the syntax of Rust; groups keep their numbers and names.
///
/// # Errors
/// The text of Go's error.
pub(crate) fn translate(text: &str) -> Result<String, String> {
    let out = String::with_capacity(text.len() + 8);
    let mut translation = Translation {
        text,
        at: 0,
        out,
        open: 0,
        can_repeat: false,
    };
    match translation.whole() {
        Ok(()) => Ok(translation.out),
        Err((fault, what)) => Err(format!("error parsing regexp: {fault}: `{what}`")),
    }
}

const TRAILING: &str = "trailing backslash at end of expression";
/// The highest count of a repetition.
const REPEAT_MAX: u32 = 1000;

/// What is wrong, and the part of the text that is.
type Fault<'a> = (&'static str, &'a str);
type Done<'a, T = ()> = Result<T, Fault<'a>>;

struct Translation<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// Open groups.
    open: usize,
    /// Something stands before that a repetition may repeat.
    can_repeat: bool,
}

impl<'a> Translation<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let is_next = self.rest().starts_with(wanted);
        if is_next {
            self.at += wanted.len();
        }
        is_next
    }

    /// What was taken since `start`.
    fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    fn literal(&mut self, letter: char) {
        self.out
            .push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
    }

    fn whole(&mut self) -> Done<'a> {
        // Where the repetition just before begins.
        let mut last_repeat = None;
        while let Some(letter) = self.peek() {
            let start = self.at;
            let count = match letter {
                '*' | '+' | '?' => {
                    self.at += 1;
                    Some((0, None))
                }
                '{' => self.count(),
                _ => None,
            };
            match count {
                Some((min, max)) => {
                    self.repeat(start, min, max, last_repeat)?;
                    last_repeat = Some(start);
                }
                None => {
                    self.one(letter)?;
                    last_repeat = None;
                }
            }
        }
        match self.open {
            0 => Ok(()),
            _ => Err(("missing closing )", self.text)),
        }
    }

    /// Anything but a repetition.
    fn one(&mut self, letter: char) -> Done<'a> {
        match letter {
            '(' => return self.group(),
            '[' => self.class()?,
            '\\' => self.backslash()?,
            ')' => {
                if self.open == 0 {
                    return Err(("unexpected )", self.text));
                }
                self.open -= 1;
                self.at += 1;
                self.out.push(')');
            }
            '|' => {
                self.at += 1;
                self.out.push('|');
                self.can_repeat = false;
                return Ok(());
            }
            '^' | '$' | '.' => {
                self.at += 1;
                self.out.push(letter);
            }
            letter => {
                self.next();
                self.literal(letter);
            }
        }
        self.can_repeat = true;
        Ok(())
    }

    /// `{1}`, `{1,}` or `{1,2}`; otherwise the brace is a literal.
    fn count(&mut self) -> Option<(u32, Option<u32>)> {
        let (inside, _) = self.rest()[1..].split_once('}')?;
        let (min, max) = match inside.split_once(',') {
            Some((min, max)) => (min, max),
            None => (inside, inside),
        };
        let number = |digits: &str| {
            let is_zero_led = digits.len() > 1 && digits.starts_with('0');
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && !is_zero_led;
            // What does not fit is too large either way.
            is_number.then(|| digits.parse().unwrap_or(u32::MAX))
        };
        if min.is_empty() {
            return None;
        }
        let count = if max.is_empty() {
            (number(min)?, None)
        } else {
            (number(min)?, Some(number(max)?))
        };
        self.at += inside.len() + 2;
        Some(count)
    }

    /// The repetition that was taken since `start`.
    fn repeat(
        &mut self,
        start: usize,
        min: u32,
        max: Option<u32>,
        last: Option<usize>,
    ) -> Done<'a> {
        let is_wrong = max.is_some_and(|max| max > REPEAT_MAX || max < min);
        if self.text[start..].starts_with('{') && (min > REPEAT_MAX || is_wrong) {
            return Err(("invalid repeat count", self.since(start)));
        }
        self.takes("?");
        if let Some(last) = last {
            return Err(("invalid nested repetition operator", self.since(last)));
        }
        if !self.can_repeat {
            let text = self.since(start);
            return Err(("missing argument to repetition operator", text));
        }
        self.out.push_str(self.since(start));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_go_mean_the_same() {
        for (pattern, matching, other) in [
            (r"a.b", "a\nb", "ab"),
            (r"\d+", "42", "٤٢"),
            (r"[\w-]+", "a-b", "é"),
            (r"\Qa.b\E+", "a.bb", "axb"),
            (r"\101\x42\x{43}", "ABC", "abc"),
            (r"a{,2}", "a{,2}", "a"),
            (r"{}x{2}", "{}xx", "xx"),
            (r"[[a&&b]+", "[&ab", "c"),
            (r"[]a]", "]", "b"),
            (r"[^]a]", "b", "]"),
            (r"[[:^digit:][:punct:]]", "!", "1"),
            (r"\<a\>", "<a>", "a"),
            (r"(?i)Ab(?-i:C)", "aBC", "abc"),
            (r"(?ii)a", "A", "b"),
            (r"(?P<x>a)(?<y>b)(?:c)()", "abc", "ab"),
            (r"\p{^Greek}\pL\P{Lu}", "aaa", "αaa"),
            (r"a|b|", "", "c"),
            (r"\Aa\z", "a", "a\n"),
            (r"a\bc|a\b", "a", "ac"),
        ] {
            let compiled = compile(pattern.as_bytes(), &mut Patterns::default()).expect(pattern);
            assert!(
                compiled.matches(matching.as_bytes()),
                "{pattern} {matching}"
            );
            assert!(!compiled.matches(other.as_bytes()), "{pattern} {other}");
            assert_eq!(compiled.text(), pattern);
        }
    }

    #[test]
    fn errors_are_those_of_go() {
        for (pattern, wanted) in [
            ("a(b", "missing closing ): `a(b`"),
            ("a)b", "unexpected ): `a)b`"),
            ("x[a-z", "missing closing ]: `[a-z`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            ("\\p{Foo}", "invalid character class range: `\\p{Foo}`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|+?", "missing argument to repetition operator: `+?`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("\\y", "invalid escape sequence: `\\y`"),
            ("\\8", "invalid escape sequence: `\\8`"),
            ("\\C", "invalid escape sequence: `\\C`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?P<1-a>x)", "invalid named capture: `(?P<1-a>`"),
        ] {
            let wanted = format!("error parsing regexp: {wanted}");
            assert_eq!(
                compile(pattern.as_bytes(), &mut Patterns::default()).err(),
                Some(wanted),
                "{pattern}"
            );
        }
    }
}
