//! Assembles messages from lines, one line at a time.
//!
//! A bad message does not affect others. If its shape is valid (a bad time, a
//! wrong number of values), its remaining lines are skipped by count. If its first
//! line is bad, or lines are missing, the start of the next message is unknown;
//! lines are skipped until one can only start a message: a series line, which is
//! the only one with a blank and `=`, a dictionary, or a number of the dictionary
//! followed by a time. All skipped lines together give one error.
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
/// Lines of one dictionary message.
const DICTIONARY_LINES_MAX: u64 = 1 << 24;
/// While searching for a message, a number from here on is a time, not a number
/// of the dictionary: the first quarter of an hour of the epoch.
const TIME_FROM_NS: u64 = 1_000_000_000_000;

/// One message: values that share tags and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// One metric per value, with their tags.
    pub series: Series<'a>,
    /// Its place in the dictionary, from 0, if it was sent by number. A place
    /// keeps its series for the life of the connection.
    pub entry: Option<u32>,
    /// Milliseconds since the epoch, rounded down.
    pub timestamp_ms: i64,
    /// Whether a fraction of a millisecond was dropped.
    pub rounded: bool,
    /// At least one.
    pub values: &'a [f64],
}

/// Decodes the lines of one connection.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
    /// The message has been refused; its lines are counted, not parsed.
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
    /// The text of an event.
    Text,
    /// Remaining values of an array.
    Values(usize),
    /// Remaining lines of a dictionary; even before a series line.
    Entries(u64),
    /// Any line until a message begins; holds the dictionary entry of the line before.
    Lost(Option<u32>),
}

impl Decoder {
    /// A new connection.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    pub(super) fn dictionary_mut(&mut self) -> &mut Dictionary {
        &mut self.dictionary
    }

    /// Takes one line without its ending; returns the message if it is complete.
    ///
    /// # Errors
    /// The message is refused; one error per message.
    #[inline]
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Row<'_>>, MessageError> {
        let goes_on = matches!(self.state, State::First | State::Text | State::Entries(_));
        if !goes_on && is_series(line) {
            let cut_short = !self.refused && !matches!(self.state, State::Lost(_));
            self.begin(line)?;
            return if cut_short {
                Err(MessageError::CutShort)
            } else {
                Ok(None)
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

    /// Reports a skipped line: the start of the next message is searched.
    pub fn lose(&mut self) {
        self.state = State::Lost(None);
    }

    /// The first line of a message, or of a dictionary.
    #[inline]
    fn begin(&mut self, line: &[u8]) -> Result<(), MessageError> {
        self.refused = false;
        self.values.clear();
        // Overwritten below if the line is valid.
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
        // Dictionary entries have been checked.
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
        self.state = if self.is_event {
            State::Text
        } else {
            State::Value
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
        if found == expected {
            Ok(())
        } else {
            self.refuse(MessageError::ArraySize { expected, found })
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
                // The number of a refused entry is skipped.
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

    /// A line while searching for a message; never a series line.
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
                // Just parsed as a time, so this cannot fail.
                let _ = self.time(line);
            }
            _ if line.first() == Some(&b'*') => {
                let _ = self.begin(line);
            }
            _ => self.state = State::Lost(place),
        }
    }

    /// Refuses the message; returns an error only the first time.
    #[cold]
    fn refuse(&mut self, error: MessageError) -> Result<(), MessageError> {
        if std::mem::replace(&mut self.refused, true) {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// The complete message, unless it was refused.
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
