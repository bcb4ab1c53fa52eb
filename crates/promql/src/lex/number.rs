//! Numbers and durations. What is taken is not yet valid: their values are read by the parser.

use super::{Lexed, Lexer};
use crate::quote::quoted;
use crate::token::Kind;

impl<'a> Lexer<'a> {
    /// A number or a duration, whose first character was taken.
    pub(super) fn number_or_duration(&mut self, first: char) -> Lexed<'a> {
        self.at -= first.len_utf8();
        if self.scan_number() {
            return self.emit(Kind::Number);
        }
        if self.scan_duration() {
            return self.emit(Kind::Duration);
        }
        let text = &self.input[self.start..self.at];
        self.fail(format!("bad number or duration syntax: {}", quoted(text)))
    }

    /// Whether a number ends here, and not a word; takes what belongs to it either way.
    fn scan_number(&mut self) -> bool {
        let is_hex = self.takes_char('0') && self.takes(|letter| matches!(letter, 'x' | 'X'));
        let is_digit = |letter: char| letter.is_digit(if is_hex { 16 } else { 10 });
        if is_hex {
            self.takes_char('_');
        }
        self.takes_char('.');
        self.takes(is_digit);
        let (mut has_dot, mut has_exponent) = (false, false);
        loop {
            match self.peek() {
                Some('.') => {
                    self.at += 1;
                    // No second dot, no dot before `_`, no fraction of a hexadecimal number.
                    let was_there = std::mem::replace(&mut has_dot, true);
                    if was_there || self.takes(|next| matches!(next, '_' | '.')) || is_hex {
                        return false;
                    }
                }
                Some('e' | 'E') => {
                    self.at += 1;
                    if std::mem::replace(&mut has_exponent, true) {
                        return false;
                    }
                    self.takes(|next| matches!(next, '+' | '-'));
                    if self.takes(is_no_digit) || self.peek().is_none() {
                        return false;
                    }
                }
                Some('_') => {
                    self.at += 1;
                    if self.takes(is_no_digit) || self.peek().is_none() {
                        return false;
                    }
                }
                Some(letter) if is_digit(letter) => while self.takes(is_digit) {},
                next => return !next.is_some_and(is_word),
            }
        }
    }

    /// Whether what follows a number makes it a duration.
    fn scan_duration(&mut self) -> bool {
        let digit = |letter: char| letter.is_ascii_digit();
        if !self.takes(|letter| "smhdwy".contains(letter)) {
            return false;
        }
        // For `ms`; other pairs are refused with the value.
        self.takes_char('s');
        while self.takes(digit) {
            while self.takes(digit) {}
            if !self.takes(|letter| "smhdw".contains(letter)) {
                return false;
            }
            self.takes_char('s');
        }
        if self.peek().is_some_and(is_word) {
            self.next();
            false
        } else {
            true
        }
    }
}

fn is_no_digit(letter: char) -> bool {
    matches!(letter, '.' | '_' | 'e' | 'E')
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric()
}
