//! Texts in quotes.

use super::{LexError, Lexed, Lexer};
use crate::quote::numbered_char;
use crate::token::Kind;

const UNENDED: &str = "escape sequence not terminated";

impl<'a> Lexer<'a> {
    /// A text whose opening quote was taken.
    pub(super) fn text(&mut self, quote: char) -> Lexed<'a> {
        loop {
            match (self.next(), quote) {
                (Some(letter), quote) if letter == quote => return self.emit(Kind::Text),
                // Go cannot tell it from bytes that are not UTF-8.
                (Some('\u{fffd}'), _) => return self.fail("invalid UTF-8 rune"),
                (None, '`') => return self.fail("unterminated raw string"),
                (_, '`') => {}
                (Some('\\'), _) => self.escape(quote)?,
                (Some('\n') | None, _) => return self.fail("unterminated quoted string"),
                _ => {}
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, quote: char) -> Result<(), LexError> {
        let Some(letter) = self.next() else {
            return self.fail(UNENDED);
        };
        let (digits, radix, max) = match letter {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' => return Ok(()),
            letter if letter == quote => return Ok(()),
            '0'..='7' => {
                self.at -= 1;
                (3, 8, 255)
            }
            'x' => (2, 16, 255),
            'u' => (4, 16, u32::from(char::MAX)),
            'U' => (8, 16, u32::from(char::MAX)),
            letter => {
                let shown = numbered_char(letter);
                return self.fail(format!("unknown escape sequence {shown}"));
            }
        };
        let mut number: u32 = 0;
        for _ in 0..digits {
            let Some(letter) = self.next() else {
                return self.fail(UNENDED);
            };
            let Some(digit) = letter.to_digit(radix) else {
                let shown = numbered_char(letter);
                return self.fail(format!("illegal character {shown} in escape sequence"));
            };
            number = (number << radix.ilog2()) | digit;
        }
        if number > max || (0xd800..0xe000).contains(&number) {
            self.fail("escape sequence is an invalid Unicode code point")
        } else {
            Ok(())
        }
    }
}
