//! Messages out of lines, one line at a time.
//!
//! A bad message costs itself and nothing else. Where its shape is right
//! (a time that is none, a wrong number of values), its remaining lines are
//! passed over by count. Where its first line is bad, or lines are missing,
//! nothing says where the next message begins; then lines are passed over
//! until one can only be the first of a message: a series line, which is the
//! only one with a blank and `=`, a dictionary, or a number of the dictionary
//! with a time behind it. One error is given for all lines passed over.
//!
//! Tested by `tests.rs` and the fuzz target `akumuli`.

use super::dictionary::Dictionary;
use super::error::MessageError;
use super::series::Series;
use super::timestamp::{self, Time};
use crate::number::parse_f64;

#[cfg(test)]
mod tests;

/// Values of one row.
const ROW_VALUES_MAX: usize = 1024;
/// Lines of one dictionary; more come in another one.
const DICTIONARY_LINES_MAX: u64 = 1 << 24;
/// A number from here on is a time and no number of a dictionary, where a
/// message is looked for: the epoch's first quarter of an hour.
const TIME_FROM_NS: u64 = 1_000_000_000_000;

/// One message: the same tags and time for all its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// As many metrics as there are values, with their tags.
    pub series: Series<'a>,
    /// Where the dictionary holds it, counted from 0, if it came by number. The
    /// same place is the same series as long as the connection lives.
    pub entry: Option<u32>,
    /// Milliseconds since the epoch, rounded down.
    pub timestamp_ms: i64,
    /// Whether the time lay between two milliseconds.
    pub rounded: bool,
    /// At least one.
    pub values: &'a [f64],
}

/// Reads the lines of one connection.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
    /// The message is refused already; its lines are counted, not read.
    refused: bool,
    is_event: bool,
    /// The series line of the message or of the dictionary's entry.
    line: Vec<u8>,
    entry: Option<u32>,
    width: usize,
    time: Time,
    values: Vec<f64>,
    dictionary: Dictionary,
}

/// Which line comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    First,
    Time,
    Value,
    /// The text of an event, which may be anything.
    Text,
    /// So many values of an array.
    Values(usize),
    /// So many lines of a dictionary, an even number before a series line.
    Entries(u64),
    /// Any, until a message begins; the line before may have been this entry.
    Lost(Option<u32>),
}

impl Decoder {
    /// A connection that has sent nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    pub(super) fn dictionary_mut(&mut self) -> &mut Dictionary {
        &mut self.dictionary
    }

    /// Takes one line without its ending. Gives a message where that was its
    /// last line.
    ///
    /// # Errors
    /// What is wrong with the message, once for each.
    #[inline]
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Row<'_>>, MessageError> {
        let goes_on = matches!(self.state, State::First | State::Text | State::Entries(_));
        if !goes_on && is_series(line) {
            let cut_short = !self.refused && !matches!(self.state, State::Lost(_));
            self.begin(line)?;
            return match cut_short {
                true => Err(MessageError::CutShort),
                false => Ok(None),
            };
        }
        match self.state {
            State::First => self.begin(line).map(|()| None),
            State::Time => self.time(line).map(|()| None),
            State::Value => self.value(line),
            State::Text => {
                self.state = State::First;
                Ok(None)
            }
            State::Values(left) => self.element(line, left),
            State::Entries(left) => self.dictionary_line(line, left).map(|()| None),
            State::Lost(before) => {
                self.look_for_message(line, before);
                Ok(None)
            }
        }
    }

    /// Takes notice of a line that nobody read: the next message is looked for.
    pub fn lose(&mut self) {
        self.state = State::Lost(None);
    }

    /// The first line of a message, or of a dictionary.
    #[inline]
    fn begin(&mut self, line: &[u8]) -> Result<(), MessageError> {
        self.refused = false;
        self.values.clear();
        // Unless all is well below.
        self.state = State::Lost(None);
        match line {
            [b'+', text @ ..] => {
                if !is_series(line) {
                    return Err(MessageError::Series);
                }
                let series = Series::cut(text);
                self.state = State::Time;
                self.refused = series.is_err();
                self.is_event = series == Err(MessageError::Event);
                self.width = series?.width();
                self.entry = None;
                self.line.clear();
                self.line.extend_from_slice(text);
                Ok(())
            }
            [b':', digits @ ..] => {
                let id = timestamp::whole(digits).ok_or(MessageError::Id)?;
                let place = self
                    .dictionary
                    .find(id)
                    .ok_or(MessageError::UnknownId(id))?;
                self.begin_with(place);
                Ok(())
            }
            [b'*', digits @ ..] => {
                let lines = timestamp::whole(digits).ok_or(MessageError::Id)?;
                if lines % 2 != 0 {
                    return Err(MessageError::OddDictionary);
                }
                if lines > DICTIONARY_LINES_MAX {
                    return Err(MessageError::ArrayTooLong(lines));
                }
                self.state = match lines {
                    0 => State::First,
                    _ => State::Entries(lines),
                };
                Ok(())
            }
            _ => Err(MessageError::Id),
        }
    }

    #[inline]
    fn begin_with(&mut self, place: u32) {
        self.refused = false;
        self.is_event = false;
        self.values.clear();
        self.entry = Some(place);
        // What is in the dictionary was cut before.
        self.width = Series::cut(self.dictionary.line(place)).map_or(1, |series| series.width());
        self.state = State::Time;
    }

    #[inline]
    fn time(&mut self, line: &[u8]) -> Result<(), MessageError> {
        let time = match line {
            [b':', digits @ ..] => timestamp::nanoseconds(digits),
            [b'+', text @ ..] => timestamp::iso(text),
            _ => {
                self.state = State::Lost(None);
                return self.refuse(MessageError::Timestamp);
            }
        };
        self.state = match self.is_event {
            true => State::Text,
            false => State::Value,
        };
        match time {
            Some(time) => self.time = time,
            None => return self.refuse(MessageError::Timestamp),
        }
        Ok(())
    }

    #[inline]
    fn value(&mut self, line: &[u8]) -> Result<Option<Row<'_>>, MessageError> {
        self.state = State::First;
        if let [b'*', digits @ ..] = line {
            return self.begin_array(digits).map(|()| None);
        }
        if self.width > 1 {
            self.refuse(MessageError::ArrayExpected)?;
            return Ok(None);
        }
        match number(line) {
            Some(value) => self.values.push(value),
            None => self.refuse(MessageError::Value)?,
        }
        Ok(self.row())
    }

    fn begin_array(&mut self, digits: &[u8]) -> Result<(), MessageError> {
        let Some(found) = timestamp::whole(digits) else {
            return self.refuse(MessageError::Value);
        };
        if found > ROW_VALUES_MAX as u64 {
            self.state = State::Lost(None);
            return self.refuse(MessageError::ArrayTooLong(found));
        }
        let (expected, found) = (self.width, found as usize);
        if found > 0 {
            self.state = State::Values(found);
        }
        match found == expected {
            true => Ok(()),
            false => self.refuse(MessageError::ArraySize { expected, found }),
        }
    }

    #[inline]
    fn element(&mut self, line: &[u8], left: usize) -> Result<Option<Row<'_>>, MessageError> {
        self.state = match left {
            0 | 1 => State::First,
            _ => State::Values(left - 1),
        };
        match number(line) {
            Some(value) => self.values.push(value),
            None => self.refuse(MessageError::Value)?,
        }
        match self.state {
            State::First => Ok(self.row()),
            _ => Ok(None),
        }
    }

    fn dictionary_line(&mut self, line: &[u8], left: u64) -> Result<(), MessageError> {
        self.state = match left {
            0 | 1 => State::First,
            _ => State::Entries(left - 1),
        };
        match line {
            [b'+', text @ ..] if left.is_multiple_of(2) => {
                self.line.clear();
                self.line.extend_from_slice(text);
                // Of an entry that is refused the number is passed over.
                self.refused = Series::cut(text).is_err();
                Series::cut(text).map(|_| ())
            }
            [b':', digits @ ..] if !left.is_multiple_of(2) => {
                if self.refused {
                    self.refused = false;
                    return Ok(());
                }
                let id = timestamp::whole(digits).ok_or(MessageError::Entry)?;
                self.dictionary.insert(id, &self.line)
            }
            _ => {
                self.state = State::Lost(None);
                Err(MessageError::Entry)
            }
        }
    }

    /// A line after one that nobody could place. Series lines never come here.
    fn look_for_message(&mut self, line: &[u8], before: Option<u32>) {
        let id = match line {
            [b':', digits @ ..] => timestamp::whole(digits),
            _ => None,
        };
        let place = id.and_then(|id| self.dictionary.find(id));
        let is_time = match line {
            [b'+', text @ ..] => text.get(8) == Some(&b'T') && timestamp::iso(text).is_some(),
            _ => id.is_some_and(|id| id >= TIME_FROM_NS && place.is_none()),
        };
        match before {
            Some(before) if is_time => {
                self.begin_with(before);
                // It is a time, so this cannot fail.
                let _ = self.time(line);
            }
            _ if line.first() == Some(&b'*') => {
                let _ = self.begin(line);
            }
            _ => self.state = State::Lost(place),
        }
    }

    /// Refuses the message; an error only the first time.
    #[cold]
    fn refuse(&mut self, error: MessageError) -> Result<(), MessageError> {
        match std::mem::replace(&mut self.refused, true) {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// The message, its last line read, unless it is refused.
    #[inline]
    fn row(&self) -> Option<Row<'_>> {
        if self.refused {
            return None;
        }
        let line = match self.entry {
            Some(place) => self.dictionary.line(place),
            None => &self.line,
        };
        Some(Row {
            series: Series::cut(line).ok()?,
            entry: self.entry,
            timestamp_ms: self.time.timestamp_ms,
            rounded: self.time.rounded,
            values: &self.values,
        })
    }
}

/// Whether a line can only be a series line.
#[inline]
fn is_series(line: &[u8]) -> bool {
    match line {
        [b'+', text @ ..] => memchr::memchr(b' ', text)
            .is_some_and(|blank| memchr::memchr(b'=', &text[blank..]).is_some()),
        _ => false,
    }
}

/// The number of a value line.
#[inline]
fn number(line: &[u8]) -> Option<f64> {
    let (kind, text) = line.split_first()?;
    let text = std::str::from_utf8(text).ok()?;
    match kind {
        b':' => text.parse::<i64>().ok().map(|value| value as f64),
        b'+' => parse_f64(text),
        _ => None,
    }
}
