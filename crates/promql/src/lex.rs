//! Text to tokens.
//!
//! Three modes: statements, the inside of braces, and durations behind `[`. A duration that begins
//! with a number goes on in statements with an open bracket, where other characters are allowed.
//! Tokens, errors and their positions are those of Prometheus; each is found when it is asked for,
//! since an error counts only if no other one came before.

mod number;
mod text;

use crate::quote::{is_letter, quoted_char};
use crate::token::{Keyword, Kind, Token, duration_word, word};
use crate::tree::Op;

/// What the lexer refuses.
#[derive(Debug)]
pub(crate) struct LexError {
    pub(crate) text: String,
    pub(crate) at: usize,
}

type Lexed<'a> = Result<Token<'a>, LexError>;

#[derive(Default)]
pub(crate) struct Lexer<'a> {
    input: &'a str,
    /// The next byte to look at.
    at: usize,
    /// The first byte of the token at hand.
    start: usize,
    open_parens: usize,
    in_braces: bool,
    /// Between `[` and `]`.
    in_brackets: bool,
    /// Behind `[`, until a number.
    in_duration: bool,
    has_colon: bool,
    has_duration: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(input: &'a str) -> Self {
        Self {
            input,
            ..Self::default()
        }
    }

    /// The next token.
    ///
    /// # Errors
    /// What is no token; nothing may be asked after that.
    pub(crate) fn token(&mut self) -> Lexed<'a> {
        match (self.in_braces, self.in_duration) {
            (true, _) => self.braces(),
            (_, true) => self.duration(),
            _ => self.statement(),
        }
    }

    fn peek(&self) -> Option<char> {
        self.input[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn takes(&mut self, wanted: impl Fn(char) -> bool) -> bool {
        match self.peek().filter(|letter| wanted(*letter)) {
            Some(letter) => {
                self.at += letter.len_utf8();
                true
            }
            None => false,
        }
    }

    fn takes_char(&mut self, wanted: char) -> bool {
        self.takes(|letter| letter == wanted)
    }

    fn emit(&mut self, kind: Kind) -> Lexed<'a> {
        let at = std::mem::replace(&mut self.start, self.at);
        let text = &self.input[at..self.at];
        Ok(Token { kind, text, at })
    }

    fn fail<T>(&self, text: impl Into<String>) -> Result<T, LexError> {
        let (text, at) = (text.into(), self.start);
        Err(LexError { text, at })
    }

    fn skip_blanks(&mut self) {
        while self.takes(is_space) {}
        self.start = self.at;
    }

    /// Skips blanks and comments.
    fn skip_comments(&mut self) {
        self.skip_blanks();
        while self.takes_char('#') {
            while self.takes(|letter| letter != '\n' && letter != '\r') {}
            self.skip_blanks();
        }
    }

    fn statement(&mut self) -> Lexed<'a> {
        self.skip_comments();
        let Some(letter) = self.next() else {
            return match (self.open_parens, self.in_brackets) {
                (1.., _) => self.fail("unclosed left parenthesis"),
                (_, true) => self.fail("unclosed left bracket"),
                _ => self.emit(Kind::End),
            };
        };
        match letter {
            ',' => self.emit(Kind::Comma),
            '@' => self.emit(Kind::At),
            '*' | '/' | '%' | '+' | '-' | '^' => self.arithmetic(letter),
            '=' | '!' | '<' | '>' => self.comparison(letter),
            '0'..='9' => self.number_or_duration(letter),
            '.' if self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                self.number_or_duration(letter)
            }
            '"' | '\'' | '`' => self.text(letter),
            ':' if self.in_brackets => {
                if self.has_colon {
                    self.fail("unexpected colon ':'")
                } else {
                    self.has_colon = true;
                    self.emit(Kind::Colon)
                }
            }
            letter if letter == ':' || is_name_start(letter) => {
                if self.in_brackets {
                    self.word_in_brackets(letter)
                } else {
                    self.word()
                }
            }
            '(' => self.open_paren(),
            ')' => self.close_paren(),
            '{' => {
                self.in_braces = true;
                self.emit(Kind::LeftBrace)
            }
            '[' => self.open_bracket(),
            ']' => self.close_bracket(),
            letter => self.fail(format!(
                "unexpected character: {}",
                quoted_char(Some(letter))
            )),
        }
    }

    fn arithmetic(&mut self, letter: char) -> Lexed<'a> {
        self.emit(Kind::Op(match letter {
            '*' => Op::Mul,
            '/' => Op::Div,
            '%' => Op::Mod,
            '+' => Op::Add,
            '-' => Op::Sub,
            _ => Op::Pow,
        }))
    }

    fn comparison(&mut self, letter: char) -> Lexed<'a> {
        if letter == '!' {
            let next = self.next();
            return match next {
                Some('=') => self.emit(Kind::Op(Op::NotEqual)),
                _ => self.fail(format!(
                    "unexpected character after '!': {}",
                    quoted_char(next)
                )),
            };
        }
        let next = self.peek();
        let (kind, is_long) = match (letter, next) {
            ('=', Some('~')) => return self.fail("unexpected character after '=': '~'"),
            ('=', Some('=')) => (Kind::Op(Op::Equal), true),
            ('=', _) => (Kind::Assign, false),
            ('<', Some('=')) => (Kind::Op(Op::LessEqual), true),
            ('<', Some('/')) => (Kind::Op(Op::TrimUpper), true),
            ('<', _) => (Kind::Op(Op::Less), false),
            (_, Some('=')) => (Kind::Op(Op::GreaterEqual), true),
            (_, Some('/')) => (Kind::Op(Op::TrimLower), true),
            _ => (Kind::Op(Op::Greater), false),
        };
        self.at += usize::from(is_long);
        self.emit(kind)
    }

    fn open_paren(&mut self) -> Lexed<'a> {
        self.open_parens += 1;
        self.emit(Kind::LeftParen)
    }

    fn close_paren(&mut self) -> Lexed<'a> {
        let token = self.emit(Kind::RightParen);
        match self.open_parens.checked_sub(1) {
            Some(rest) => self.open_parens = rest,
            None => return self.fail("unexpected right parenthesis ')'"),
        }
        token
    }

    fn open_bracket(&mut self) -> Lexed<'a> {
        if self.in_brackets {
            return self.fail("unexpected left bracket '['");
        }
        (self.in_brackets, self.in_duration) = (true, true);
        (self.has_colon, self.has_duration) = (false, false);
        self.emit(Kind::LeftBracket)
    }

    fn close_bracket(&mut self) -> Lexed<'a> {
        if !self.in_brackets {
            return self.fail("unexpected right bracket ']'");
        }
        (self.in_brackets, self.in_duration) = (false, false);
        self.emit(Kind::RightBracket)
    }

    /// A name or a keyword, whose first character was taken.
    fn word(&mut self) -> Lexed<'a> {
        while self.takes(|letter| letter == ':' || is_name_part(letter)) {}
        let text = &self.input[self.start..self.at];
        let kind = match word(text) {
            // Common as names, so that they need their parenthesis.
            Some(Kind::Keyword(Keyword::Fill | Keyword::FillLeft | Keyword::FillRight))
                if !self.input[self.at..]
                    .trim_start_matches(is_space)
                    .starts_with('(') =>
            {
                Kind::Identifier
            }
            Some(kind) => kind,
            None if text.contains(':') => Kind::Metric,
            None => Kind::Identifier,
        };
        self.emit(kind)
    }

    /// A word of durations behind a number.
    fn word_in_brackets(&mut self, first: char) -> Lexed<'a> {
        match self.duration_word(first) {
            Some(kind) => self.emit(kind),
            None => self.fail(format!(
                "unexpected character: {}, expected ':'",
                quoted_char(Some(first))
            )),
        }
    }

    /// The kind of the word at hand if it may begin a duration; takes it.
    fn duration_word(&mut self, first: char) -> Option<Kind> {
        if !matches!(first.to_ascii_lowercase(), 's' | 'r' | 'm') {
            return None;
        }
        while self.takes(|letter| letter == '_' || letter.is_ascii_alphabetic()) {}
        let lower = self.input[self.start..self.at].to_ascii_lowercase();
        duration_word(&lower).map(Kind::Query)
    }

    /// Behind `[`, before a number.
    fn duration(&mut self) -> Lexed<'a> {
        self.skip_blanks();
        let Some(letter) = self.next() else {
            return self.fail("unexpected end of input in duration expression");
        };
        match letter {
            ']' => self.close_bracket(),
            ':' => {
                let token = self.emit(Kind::Colon);
                if !self.has_duration {
                    return self.fail("unexpected colon before duration in duration expression");
                }
                if self.has_colon {
                    return self.fail("unexpected repeated colon in duration expression");
                }
                self.has_colon = true;
                token
            }
            '(' => self.open_paren(),
            ')' => self.close_paren(),
            ',' => self.emit(Kind::Comma),
            '*' | '/' | '%' | '+' | '-' | '^' => self.arithmetic(letter),
            '0'..='9' => self.first_number(letter),
            '.' if self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                self.first_number(letter)
            }
            letter => match self.duration_word(letter) {
                Some(kind) => {
                    self.has_duration = true;
                    self.emit(kind)
                }
                None => self.fail(format!(
                    "unexpected character in duration expression: {}",
                    quoted_char(Some(letter))
                )),
            },
        }
    }

    fn first_number(&mut self, letter: char) -> Lexed<'a> {
        (self.has_duration, self.in_duration) = (true, false);
        self.number_or_duration(letter)
    }

    /// Inside of `{}`, where no word is a keyword.
    fn braces(&mut self) -> Lexed<'a> {
        self.skip_comments();
        let Some(letter) = self.next() else {
            return self.fail("unexpected end of input inside braces");
        };
        match letter {
            letter if is_name_start(letter) => {
                while self.takes(is_name_part) {}
                self.emit(Kind::Identifier)
            }
            ',' => self.emit(Kind::Comma),
            '"' | '\'' | '`' => self.text(letter),
            '=' => {
                if self.takes_char('~') {
                    self.emit(Kind::Match)
                } else {
                    self.emit(Kind::Assign)
                }
            }
            '!' => match self.next() {
                Some('~') => self.emit(Kind::NotMatch),
                Some('=') => self.emit(Kind::Op(Op::NotEqual)),
                next => self.fail(format!(
                    "unexpected character after '!' inside braces: {}",
                    quoted_char(next)
                )),
            },
            '{' => self.fail("unexpected left brace '{'"),
            '}' => {
                self.in_braces = false;
                self.emit(Kind::RightBrace)
            }
            letter => self.fail(format!(
                "unexpected character inside braces: {}",
                quoted_char(Some(letter))
            )),
        }
    }
}

pub(crate) fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r')
}

/// Whether a name without quotes may begin with it.
pub(crate) fn is_name_start(letter: char) -> bool {
    letter == '_' || is_letter(letter)
}

/// Whether it may stand in a name without quotes.
pub(crate) fn is_name_part(letter: char) -> bool {
    letter == '.' || letter.is_ascii_digit() || is_name_start(letter)
}

/// Whether a label's name needs no quotes.
pub(crate) fn is_plain_label(name: &str) -> bool {
    name.starts_with(is_name_start) && name.chars().all(is_name_part)
}
