//! Whether a line that came in pieces may be whole.
//!
//! An incomplete line is decoded again from its start, so an attempt costs its length. To cost a
//! sender's bytes once, however small the pieces, a line is tried when it first comes, at its
//! first line break, and then at each line break outside quotes; the first of those ends it. In
//! between, only the bytes that are new are looked at.
//!
//! Tested by `a_line_in_pieces_costs_its_bytes_a_few_times` and
//! `pieces_give_the_same_as_the_whole` of `tests.rs`.

use super::key::end_of;

/// What was seen of a line that is incomplete.
#[derive(Debug, Default)]
pub(super) enum Pending {
    /// Nothing: no line waits.
    #[default]
    Nothing,
    /// No line break in this many bytes.
    Unbroken(usize),
    /// A line break inside quotes.
    Quotes(Quotes),
}

/// A scan for a line break outside quotes.
#[derive(Debug)]
pub(super) struct Quotes {
    /// The next byte.
    at: usize,
    is_open: bool,
}

impl Pending {
    /// Whether `text`, which begins with the line that waits, may hold all of it.
    #[inline]
    pub(super) fn may_be_whole(&mut self, text: &[u8]) -> bool {
        match self {
            Self::Nothing => true,
            Self::Unbroken(seen) => {
                let from = std::mem::replace(seen, text.len());
                memchr::memchr(b'\n', text.get(from..).unwrap_or_default()).is_some()
            }
            Self::Quotes(quotes) => quotes.has_break(text),
        }
    }

    /// Notes that `text` was decoded and is incomplete.
    #[cold]
    pub(super) fn wait(&mut self, text: &[u8]) {
        if matches!(self, Self::Quotes(_)) {
            return;
        }
        *self = match memchr::memchr(b'\n', text) {
            None => Self::Unbroken(text.len()),
            Some(_) => Self::Quotes(Quotes {
                // The fields begin there.
                at: end_of(text, b" \n").unwrap_or(text.len()),
                is_open: false,
            }),
        };
    }
}

impl Quotes {
    /// Goes on to the next line break outside quotes; whether there is one.
    fn has_break(&mut self, text: &[u8]) -> bool {
        while let Some(byte) = text.get(self.at) {
            match byte {
                // What it escapes has not come.
                b'\\' if self.is_open && self.at + 1 == text.len() => return false,
                b'\\' if self.is_open => self.at += 1,
                b'"' if self.is_open => self.is_open = false,
                // A text begins behind the equals sign of its field.
                b'"' => {
                    let before = &text[..self.at];
                    self.is_open = before.ends_with(b"=") && !before.ends_with(b"\\=");
                }
                b'\n' if !self.is_open => {
                    self.at += 1;
                    return true;
                }
                _ => {}
            }
            self.at += 1;
        }
        false
    }
}
