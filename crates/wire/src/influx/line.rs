//! Decodes one line into samples.

use super::error::Bad;
use super::key::{NAME_ESCAPED, end_of, unescape};
use super::{Decoder, number};
use crate::intake::{Intake, Moment, Row, Slot};
use crate::lines::shown;

/// Why decoding a line stops.
enum Stop {
    /// The line is incomplete.
    Incomplete,
    /// The line is refused.
    Bad(Bad),
}

impl From<Bad> for Stop {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl Decoder {
    /// Decodes the line at the start of `text`; returns its length with the line
    /// break, or 0 if it is incomplete.
    #[inline]
    pub(super) fn line(&mut self, text: &[u8], is_end: bool, intake: &mut impl Intake) -> usize {
        match self.sample_line(text, is_end, intake) {
            Ok(length) => length,
            Err(stop) => self.stopped(text, is_end, stop, intake),
        }
    }

    fn sample_line(
        &mut self,
        text: &[u8],
        is_end: bool,
        intake: &mut impl Intake,
    ) -> Result<usize, Stop> {
        let (row, key_end) = match intake.follow(text) {
            Some((row, length)) => (row, length),
            None => match self.row(text, is_end, intake)? {
                Ok(found) => found,
                Err(passed) => return Ok(passed),
            },
        };
        self.values.clear();
        let mut texts = 0;
        let mut at = key_end;
        while text.get(at) == Some(&b' ') {
            at += 1;
        }
        for place in 0.. {
            let expected = intake.expect(row, place - texts, &text[at.min(text.len())..]);
            if let Some((slot, length)) = expected
                && let (Some(value), value_end) = field_value(text, at + length, is_end)?
            {
                self.values.push((slot, value));
                at = value_end;
            } else {
                let (name, value_at) = field_name(text, at, is_end)?;
                let (value, value_end) = field_value(text, value_at, is_end)?;
                match value {
                    Some(value) => {
                        let slot = self.slot(row, &text[..key_end], place - texts, name, intake)?;
                        self.values.extend(slot.map(|slot| (slot, value)));
                    }
                    None => texts += 1,
                }
                at = value_end;
            }
            match text.get(at) {
                Some(b',') => at += 1,
                _ => break,
            }
        }
        let (moment, end) = self.moment(text, at, is_end, intake.now_ms())?;
        if end > self.line_bytes_max {
            // The same for a whole line and for one skipped in pieces.
            return Err(Bad::TooLong(self.line_bytes_max).into());
        }
        self.count_line();
        if !self.refused.is_empty() {
            self.tell_refused(intake);
        }
        intake.samples(&self.values, moment, self.line);
        (0..texts).for_each(|_| intake.skip_text());
        Ok(end)
    }

    /// The row of a line that is not the expected one and the end of its bytes,
    /// or the length of a line without samples.
    fn row(
        &mut self,
        text: &[u8],
        is_end: bool,
        intake: &mut impl Intake,
    ) -> Result<Result<(Row, usize), usize>, Stop> {
        let first = text
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        match first.map(|at| (at, text[at])) {
            // Blank so far.
            None => return Ok(Err(text.len())),
            Some((at, b'\n')) => {
                self.count_line();
                return Ok(Err(at + 1));
            }
            Some((at, b'#')) => {
                let end = memchr::memchr(b'\n', &text[at..]).map(|end| at + end + 1);
                let end = end.or(is_end.then_some(text.len()));
                let end = end.ok_or(Stop::Incomplete)?;
                self.count_line();
                return Ok(Err(end));
            }
            // Indented: the row must start at the first byte of the text.
            Some((at, _)) if at > 0 => return Ok(Err(at)),
            Some(_) => {}
        }
        let end = match end_of(text, b" \n") {
            Some(end) if text[end] == b' ' => end,
            None if !is_end => return Err(Stop::Incomplete),
            _ => {
                let end = end_of(text, b"\n").unwrap_or(text.len());
                let key = text[..end].strip_suffix(b"\r").unwrap_or(&text[..end]);
                self.key.read(key)?;
                return Err(Bad::NoFields.into());
            }
        };
        let raw = &text[..=end];
        let row = match intake.find(raw) {
            Some(row) => row,
            None => {
                self.key.read(&text[..end])?;
                intake.add(raw)
            }
        };
        Ok(Ok((row, end + 1)))
    }

    /// The slot of a field that is not at its expected place; `None` if it may not
    /// be written, which is noted.
    fn slot(
        &mut self,
        row: Row,
        raw: &[u8],
        at: usize,
        name: &[u8],
        intake: &mut impl Intake,
    ) -> Result<Option<Slot>, Stop> {
        match intake.field(row, at, name) {
            Some(slot) => Ok(Some(slot)),
            None => self.learn(row, raw, name, intake),
        }
    }

    /// The slot of a new field of the row.
    #[cold]
    fn learn(
        &mut self,
        row: Row,
        raw: &[u8],
        field: &[u8],
        intake: &mut impl Intake,
    ) -> Result<Option<Slot>, Stop> {
        // The row may be an old one and `self.key` that of another.
        self.key.read(&raw[..raw.len() - 1])?;
        self.metric.clear();
        self.metric.extend_from_slice(self.key.measurement());
        self.metric.push(b'_');
        unescape(field, NAME_ESCAPED, &mut self.metric);
        self.name.begin(&self.metric);
        for (name, value) in self.key.tags() {
            self.name.label(name, value);
        }
        if let Some((name, value)) = &self.label {
            self.name.label(name, value);
        }
        self.name.finish().map_err(Bad::from)?;
        match intake.learn(row, field, &self.name) {
            Ok(slot) => Ok(Some(slot)),
            // Reported once the line is complete: until then it is decoded again.
            Err(refused) => {
                self.refused.push(refused);
                Ok(None)
            }
        }
    }

    #[cold]
    fn tell_refused(&mut self, intake: &mut impl Intake) {
        for refused in self.refused.drain(..) {
            let text = format_args!("{}", refused.text);
            intake.refuse(self.line, refused.reason, text);
        }
    }

    /// The time of a line whose fields end at `at`, and the end of the line.
    #[inline]
    fn moment(
        &mut self,
        text: &[u8],
        mut at: usize,
        is_end: bool,
        now_ms: i64,
    ) -> Result<(Moment, usize), Stop> {
        if !matches!(text.get(at), None | Some(b' ' | b'\r' | b'\n')) {
            return Err(Bad::BadValue.into());
        }
        while text.get(at) == Some(&b' ') {
            at += 1;
        }
        let rest = &text[at..];
        let end = match memchr::memchr(b'\n', rest) {
            Some(end) => end,
            None if is_end => rest.len(),
            None => return Err(Stop::Incomplete),
        };
        let line_end = (at + end + 1).min(text.len());
        let word = rest[..end].trim_ascii_end();
        if word.is_empty() {
            let moment = Moment::whole(now_ms);
            return Ok((moment, line_end));
        }
        Ok((self.timestamps.read(word)?, line_end))
    }

    /// Waits for the end of a line, or refuses and skips it.
    #[cold]
    fn stopped(
        &mut self,
        text: &[u8],
        is_end: bool,
        stop: Stop,
        intake: &mut impl Intake,
    ) -> usize {
        self.refused.clear();
        let end = memchr::memchr(b'\n', text).map(|end| end + 1);
        let (bad, end) = match (stop, end) {
            (Stop::Bad(bad), Some(end)) => (bad, end),
            (Stop::Bad(bad), None) if is_end => (bad, text.len()),
            (Stop::Incomplete, _) if is_end => (Bad::OpenQuotes, end.unwrap_or(text.len())),
            // The line is bad in any case, but its end must be found.
            _ => return 0,
        };
        self.count_line();
        let line = shown(&text[..end]);
        let text = format_args!("unable to parse '{line}': {bad}");
        intake.refuse(self.line, bad.reason(), text);
        end
    }
}

/// The name of the field at `at`, as written, and the start of its value.
#[inline]
fn field_name(text: &[u8], at: usize, is_end: bool) -> Result<(&[u8], usize), Stop> {
    let rest = &text[at.min(text.len())..];
    let is_special = |byte: &u8| matches!(byte, b'=' | b'\\' | b',' | b' ' | b'\n');
    let plain = rest.iter().position(is_special);
    let end = match plain.map(|end| (end, rest[end])) {
        Some((end, b'=')) => end,
        Some((_, b'\\')) => match end_of(rest, b"=, \n") {
            Some(end) if rest[end] == b'=' => end,
            Some(_) => return Err(no_value(rest)),
            None => return Err(unfinished(is_end, Bad::NoFieldValue)),
        },
        Some(_) => return Err(no_value(rest)),
        None if is_end => return Err(no_value(rest)),
        None => return Err(Stop::Incomplete),
    };
    match end {
        0 => Err(Bad::NoFieldKey.into()),
        _ => Ok((&rest[..end], at + end + 1)),
    }
}

/// The error of a line that ends before a field value.
#[cold]
fn no_value(rest: &[u8]) -> Stop {
    match rest.first() {
        None | Some(b'\n' | b' ' | b'\r') => Bad::NoFields.into(),
        Some(b',') => Bad::NoFieldKey.into(),
        _ => Bad::NoFieldValue.into(),
    }
}

#[cold]
fn unfinished(is_end: bool, bad: Bad) -> Stop {
    if is_end { bad.into() } else { Stop::Incomplete }
}

/// The value at `at`, `None` for a text, and its end.
#[inline]
fn field_value(text: &[u8], at: usize, is_end: bool) -> Result<(Option<f64>, usize), Stop> {
    match text.get(at) {
        Some(b'"') => {
            let length = quoted(&text[at + 1..]).ok_or(Stop::Incomplete)?;
            Ok((None, at + 1 + length))
        }
        Some(b',' | b' ' | b'\r' | b'\n') => Err(Bad::NoFieldValue.into()),
        None => Err(unfinished(is_end, Bad::NoFieldValue)),
        Some(_) => {
            let read = number::read(&text[at..]);
            let end = read.as_ref().map_or(at, |(_, length)| at + length);
            let is_whole = matches!(text.get(end), Some(b',' | b' ' | b'\r' | b'\n'));
            // A truncated value may turn into another number, or a valid one.
            if !is_whole && !is_end && number::reaches_end(&text[at..]) {
                return Err(Stop::Incomplete);
            }
            Ok((Some(read?.0), end))
        }
    }
}

/// The number of bytes up to and including the closing quote.
fn quoted(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', &text[at..])?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        // Skips the escaped byte.
        at = (at + 2).min(text.len());
    }
}
