//! What a backslash begins.

use super::{Done, TRAILING, Translation};
use regex::Regex;

const BAD_RANGE: &str = "invalid character class range";

impl<'a> Translation<'a> {
    /// A backslash outside of a class.
    pub(super) fn backslash(&mut self) -> Done<'a> {
        let start = self.at;
        let (is_boundary, is_edge) = match self.rest().as_bytes().get(1) {
            Some(b'b' | b'B') => (true, false),
            Some(b'A' | b'z') => (false, true),
            Some(b'C') => {
                self.at += 2;
                return Err(("invalid escape sequence", self.since(start)));
            }
            Some(b'Q') => {
                self.at += 2;
                let literals = match self.rest().split_once("\\E") {
                    Some((literals, _)) => {
                        self.at += literals.len() + 2;
                        literals
                    }
                    None => {
                        let rest = self.rest();
                        self.at = self.text.len();
                        rest
                    }
                };
                self.out.push_str(&regex::escape(literals));
                return Ok(());
            }
            _ => (false, false),
        };
        if is_boundary || is_edge {
            self.at += 2;
            let text = self.since(start);
            if is_boundary {
                self.out.push_str(&format!("(?-u:{text})"))
            } else {
                self.out.push_str(text)
            }
            return Ok(());
        }
        if self.named_class()? {
            return Ok(());
        }
        let letter = self.escape()?;
        self.literal(letter);
        Ok(())
    }

    /// `\pL`, `\d` and their like, within a class or outside.
    pub(super) fn named_class(&mut self) -> Done<'a, bool> {
        let start = self.at;
        let class = match self.rest().as_bytes().get(..2) {
            Some(b"\\d") => "[0-9]",
            Some(b"\\D") => "[^0-9]",
            Some(b"\\s") => r"[\t\n\f\r ]",
            Some(b"\\S") => r"[^\t\n\f\r ]",
            Some(b"\\w") => "[0-9A-Za-z_]",
            Some(b"\\W") => "[^0-9A-Za-z_]",
            Some(b"\\p" | b"\\P") => return self.unicode_class(start).map(|()| true),
            _ => return Ok(false),
        };
        self.at += 2;
        self.out.push_str(class);
        Ok(true)
    }

    fn unicode_class(&mut self, start: usize) -> Done<'a> {
        self.at += 2;
        let mut is_negative = self.since(start) == "\\P";
        let mut name = match self.next() {
            Some('{') => match self.rest().split_once('}') {
                Some((name, _)) => {
                    self.at += name.len() + 1;
                    name
                }
                None => return Err((BAD_RANGE, &self.text[start..])),
            },
            _ => &self.since(start)[2..],
        };
        if let Some(rest) = name.strip_prefix('^') {
            (name, is_negative) = (rest, !is_negative);
        }
        let letter = if is_negative { 'P' } else { 'p' };
        let class = format!("\\{letter}{{{name}}}");
        // Rust knows what Go does, and more.
        let is_name = name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphabetic());
        if !is_name || Regex::new(&class).is_err() {
            return Err((BAD_RANGE, self.since(start)));
        }
        self.out.push_str(&class);
        Ok(())
    }

    /// The character that an escape means.
    pub(super) fn escape(&mut self) -> Done<'a, char> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.next() else {
            return Err((TRAILING, ""));
        };
        let number = match letter {
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            'x' => self.hexadecimal(),
            // A single digit but 0 would refer back.
            '0' => Some(self.octal(0)),
            '1'..='7' if self.peek().is_some_and(|next| next.is_digit(8)) => {
                Some(self.octal(u32::from(letter) - u32::from('0')))
            }
            letter if letter.is_ascii() && !letter.is_ascii_alphanumeric() => {
                Some(u32::from(letter))
            }
            _ => None,
        };
        match number.and_then(char::from_u32) {
            Some(letter) => Ok(letter),
            None => Err(("invalid escape sequence", self.since(start))),
        }
    }

    fn octal(&mut self, mut number: u32) -> u32 {
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else {
                break;
            };
            number = number * 8 + digit;
            self.at += 1;
        }
        number
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        if !self.takes("{") {
            let digits = [self.next()?, self.next()?];
            return Some(digits[0].to_digit(16)? * 16 + digits[1].to_digit(16)?);
        }
        let (mut number, mut digits) = (0, 0);
        loop {
            match self.next()? {
                '}' => return Some(number).filter(|_| digits > 0),
                letter => number = number * 16 + letter.to_digit(16)?,
            }
            if number > u32::from(char::MAX) {
                return None;
            }
            digits += 1;
        }
    }
}
