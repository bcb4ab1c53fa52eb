//! The text exposition formats of Prometheus and OpenMetrics.
//!
//! `NAME{LABEL="VALUE",...} VALUE [TIMESTAMP]`, one sample per line. Timestamps are whole
//! milliseconds in Prometheus' format and seconds in OpenMetrics, with or without a fraction: the
//! text must be known to be one or the other before its first sample is read. `# TYPE`, `# HELP`
//! and `# UNIT` are metadata; other lines that begin with `#` are ignored, and so is the text after
//! a `#` behind the value (exemplars). The default timestamp is the current time. A quoted metric or
//! label name (`{"my.metric","my.label"="x"}`) may be any text. A known series is found by its
//! bytes.
//!
//! Formats: "Exposition formats" in the Prometheus manual, and OpenMetrics 1.0. Tested by `tests.rs`
//! and by the fuzz target `exposition`.

#[cfg(test)]
mod tests;

use crate::intake::{Intake, Moment, Reason, Row};
use crate::lines::{Lines, shown};
use crate::number::parse_f64;
use crate::prometheus::time::exact_seconds;
use crate::series_name::SeriesName;
use latewood_model::{METRIC_KINDS, Told};

/// Bytes of one line.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus: timestamps are milliseconds.
    Prometheus,
    /// OpenMetrics: timestamps are seconds.
    OpenMetrics,
}

impl Format {
    /// The format of a text that ends with `tail`: OpenMetrics ends with a line `# EOF`.
    ///
    /// # Errors
    /// The last line, if it is nearly that: a guess could be wrong by a factor of a thousand.
    pub fn of_end(tail: &[u8]) -> Result<Self, String> {
        let tail = tail.trim_ascii_end();
        let last = tail.rsplit(|byte| *byte == b'\n').next();
        match last.unwrap_or_default() {
            b"# EOF" => Ok(Self::OpenMetrics),
            last if is_eof(last) => Err(format!(
                "the last line is '{}': OpenMetrics ends with '# EOF'; if the text is not \
                 OpenMetrics, its Content-Type must be text/plain; version=0.0.4",
                shown(last)
            )),
            _ => Ok(Self::Prometheus),
        }
    }
}

/// Whether a line is `# EOF`, or nearly so.
fn is_eof(line: &[u8]) -> bool {
    let comment = line.trim_ascii().strip_prefix(b"#");
    comment.is_some_and(|text| text.trim_ascii().eq_ignore_ascii_case(b"EOF"))
}

/// Decodes a text; reuses its memory.
#[derive(Clone, Debug)]
pub struct Decoder {
    format: Format,
    /// The format was told by the end of the text.
    is_guessed: bool,
    lines: Lines,
    name: SeriesName,
    text: Vec<u8>,
}

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum LineError {
    #[error("missing metric name")]
    Metric,
    #[error("labels must be NAME=\"VALUE\",... in braces")]
    Labels,
    #[error("a name without quotes must begin with a letter, '_' or ':'")]
    Initial,
    #[error("the value is not a number")]
    Value,
    #[error("the timestamp is not an integer number of milliseconds")]
    Milliseconds,
    #[error("the timestamp is not a number of seconds")]
    Seconds,
    #[error("unexpected text after the timestamp")]
    Rest,
}

impl Decoder {
    /// A decoder of a text in this format.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            is_guessed: false,
            lines: Lines::new(LINE_BYTES_MAX),
            name: SeriesName::new(),
            text: Vec::new(),
        }
    }

    /// The same for a text whose format only [`Format::of_end`] told: if that is not OpenMetrics, a
    /// line `# EOF` within it is refused.
    #[must_use]
    pub fn guessed(mut self) -> Self {
        self.is_guessed = true;
        self
    }

    /// Delivers the samples of the complete lines of `bytes` to `intake`, and of the
    /// last one too if `is_end`. Returns the number of bytes consumed; the others
    /// must come first next time.
    pub fn decode(&mut self, bytes: &[u8], is_end: bool, intake: &mut impl Intake) -> usize {
        let mut lines = self.lines.clone();
        let taken = lines.each(bytes, is_end, intake, |line, number, intake| {
            self.line(line, number, intake);
        });
        self.lines = lines;
        taken
    }

    #[inline]
    fn line(&mut self, line: &[u8], number: u32, intake: &mut impl Intake) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if line[0] == b'#' {
            if self.is_guessed && self.format == Format::Prometheus && is_eof(line) {
                let text = "'# EOF' is not the last line: timestamps are read as milliseconds";
                return intake.refuse(number, Reason::Syntax, format_args!("{text}"));
            }
            return metadata(&line[1..], intake);
        }
        if let Err(error) = self.sample(line, number, intake) {
            let reason = match error {
                LineError::Metric | LineError::Labels | LineError::Initial => Reason::Name,
                LineError::Value => Reason::Value,
                LineError::Milliseconds | LineError::Seconds => Reason::Timestamp,
                LineError::Rest => Reason::Syntax,
            };
            intake.refuse(number, reason, format_args!("{error}: '{}'", shown(line)));
        }
    }

    fn sample(
        &mut self,
        line: &[u8],
        number: u32,
        intake: &mut impl Intake,
    ) -> Result<(), LineError> {
        // `up {a="b"}` begins like the known row of `up 1`.
        let is_whole = |length: usize| line[length..].trim_ascii_start().first() != Some(&b'{');
        let (row, length) = match intake.follow(line) {
            Some((row, length)) if is_whole(length) => (row, length),
            _ => {
                let length = series_length(line)?;
                let raw = &line[..length];
                let found = intake.find(raw);
                (found.unwrap_or_else(|| intake.add(raw)), length)
            }
        };
        let (value, moment) = numbers(&line[length..], self.format, intake.now_ms())?;
        let slot = match intake.field(row, 0, b"") {
            Some(slot) => Some(slot),
            None => self.learn(&line[..length], row, number, intake)?,
        };
        if let Some(slot) = slot {
            intake.sample(slot, moment, value, number);
        }
        Ok(())
    }

    #[cold]
    fn learn(
        &mut self,
        series: &[u8],
        row: Row,
        number: u32,
        intake: &mut impl Intake,
    ) -> Result<Option<crate::intake::Slot>, LineError> {
        read_series(series.trim_ascii(), &mut self.name, &mut self.text)?;
        let refused = match self.name.finish() {
            Err(error) => (Reason::Name, format!("{error}: '{}'", shown(series))),
            Ok(()) => match intake.learn(row, b"", &self.name) {
                Ok(slot) => return Ok(Some(slot)),
                Err(refused) => (refused.reason, refused.text),
            },
        };
        intake.refuse(number, refused.0, format_args!("{}", refused.1));
        Ok(None)
    }
}

/// Delivers what a comment says of a metric: `TYPE name kind`, `HELP name text` or
/// `UNIT name unit`, where a quoted name may be any text. Any other comment says nothing.
#[cold]
fn metadata(comment: &[u8], intake: &mut impl Intake) {
    let Ok(comment) = std::str::from_utf8(comment) else {
        return;
    };
    let is_blank = |letter: char| letter == ' ' || letter == '\t';
    let word = |text| str::trim_start_matches(text, is_blank).split_once(is_blank);
    let Some((what, rest)) = word(comment) else {
        return;
    };
    let mut name = Vec::new();
    let rest = rest.trim_start_matches(is_blank).as_bytes();
    let Ok(rest) = part(rest, &mut name, b" \t") else {
        return;
    };
    // Cut at ASCII alone, both are still texts.
    let (Ok(metric), Ok(rest)) = (str::from_utf8(&name), str::from_utf8(rest)) else {
        return;
    };
    if !rest.starts_with(is_blank) {
        return;
    }
    let text = rest.trim_matches(is_blank);
    let help;
    let told = match what {
        "TYPE" => match text {
            "untyped" => Told {
                kind: Some(METRIC_KINDS[0]),
                ..Told::default()
            },
            kind if METRIC_KINDS.contains(&kind) => Told {
                kind: Some(kind),
                ..Told::default()
            },
            _ => return,
        },
        "HELP" => {
            help = unescaped(text);
            Told {
                help: Some(&help),
                ..Told::default()
            }
        }
        "UNIT" => Told {
            unit: Some(text),
            ..Told::default()
        },
        _ => return,
    };
    intake.metadata(metric, told);
}

/// A help text without its escapes.
fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut letters = after.chars();
        match letters.next() {
            Some('n') => out.push('\n'),
            Some(letter @ ('\\' | '"')) => out.push(letter),
            Some(letter) => out.extend(['\\', letter]),
            None => out.push('\\'),
        }
        rest = letters.as_str();
    }
    out + rest
}

/// Length of the series at the start of a line, with its delimiter.
#[inline]
fn series_length(line: &[u8]) -> Result<usize, LineError> {
    let end = memchr::memchr3(b'{', b' ', b'\t', line).ok_or(LineError::Value)?;
    let blank = line[end..].trim_ascii_start();
    if blank.first() != Some(&b'{') {
        return Ok(end + 1);
    }
    let mut at = line.len() - blank.len() + 1;
    let mut is_quoted = false;
    while let Some(&byte) = line.get(at) {
        at += 1;
        match byte {
            b'\\' if is_quoted => at += 1,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Ok(at),
            _ => {}
        }
    }
    Err(LineError::Labels)
}

/// The value and time after the series.
#[inline]
fn numbers(rest: &[u8], format: Format, now_ms: i64) -> Result<(f64, Moment), LineError> {
    let rest = match memchr::memchr(b'#', rest) {
        Some(exemplar) => &rest[..exemplar],
        None => rest,
    };
    let mut words = rest
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let value = words.next().and_then(|word| std::str::from_utf8(word).ok());
    let value = value.and_then(parse_f64).ok_or(LineError::Value)?;
    let moment = match words.next() {
        None => Moment::whole(now_ms),
        Some(word) => {
            let text = std::str::from_utf8(word).unwrap_or_default();
            match format {
                Format::Prometheus => {
                    let ms = text.parse().map_err(|_| LineError::Milliseconds)?;
                    Moment::whole(ms)
                }
                Format::OpenMetrics => seconds(text).ok_or(LineError::Seconds)?,
            }
        }
    };
    match words.next() {
        Some(_) => Err(LineError::Rest),
        None => Ok((value, moment)),
    }
}

/// A time in seconds, rounded down to milliseconds.
fn seconds(text: &str) -> Option<Moment> {
    let after_point = text.find('.').map_or(text.len(), |point| point + 1);
    let (number, finer) = text.split_at_checked(after_point + 3).unwrap_or((text, ""));
    if let Some(ms) = exact_seconds(number)
        && finer.bytes().all(|byte| byte.is_ascii_digit())
    {
        let is_rounded = finer.bytes().any(|byte| byte != b'0');
        return Some(Moment { ms, is_rounded });
    }
    let ms = parse_f64(text)? * 1000.0;
    // What a float of this size holds exactly.
    (ms.abs() < (1i64 << 53) as f64).then(|| Moment {
        ms: ms.floor() as i64,
        is_rounded: ms.fract() != 0.0,
    })
}

/// Parses a series.
fn read_series(series: &[u8], name: &mut SeriesName, text: &mut Vec<u8>) -> Result<(), LineError> {
    let open = memchr::memchr(b'{', series).unwrap_or(series.len());
    let metric = series[..open].trim_ascii();
    let mut rest = match series.get(open + 1..) {
        Some(inner) => inner
            .strip_suffix(b"}")
            .ok_or(LineError::Labels)?
            .trim_ascii(),
        None => &[],
    };
    if !metric.is_empty() {
        check_initial(metric)?;
        name.begin(metric);
    }
    let mut has_metric = !metric.is_empty();
    while !rest.is_empty() {
        text.clear();
        if rest[0] != b'"' {
            check_initial(rest)?;
        }
        rest = part(rest, text, b"=,")?.trim_ascii_start();
        let name_end = text.len();
        match rest.first() {
            Some(b'=') => {
                rest = rest[1..].trim_ascii_start();
                if rest.first() != Some(&b'"') {
                    return Err(LineError::Labels);
                }
                rest = part(rest, text, b",")?.trim_ascii_start();
                if !has_metric {
                    return Err(LineError::Metric);
                }
                name.label(&text[..name_end], &text[name_end..]);
            }
            // A name without a value is the metric, unless that precedes the braces.
            _ if has_metric => return Err(LineError::Labels),
            _ => {
                name.begin(text);
                has_metric = true;
            }
        }
        rest = match rest {
            [] => rest,
            [b',', rest @ ..] => rest.trim_ascii_start(),
            _ => return Err(LineError::Labels),
        };
    }
    if has_metric {
        Ok(())
    } else {
        Err(LineError::Metric)
    }
}

/// Refuses a name without quotes that may be a number, as after a line that was cut.
fn check_initial(name: &[u8]) -> Result<(), LineError> {
    match name.first() {
        Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b':' | 0x80..) => Ok(()),
        _ => Err(LineError::Initial),
    }
}

/// Appends a name or value, quoted or up to one of `ends`, to `text`; returns the
/// rest.
fn part<'a>(rest: &'a [u8], text: &mut Vec<u8>, ends: &[u8]) -> Result<&'a [u8], LineError> {
    let [b'"', quoted @ ..] = rest else {
        let end = rest
            .iter()
            .position(|byte| ends.contains(byte))
            .unwrap_or(rest.len());
        text.extend_from_slice(rest[..end].trim_ascii_end());
        return Ok(&rest[end..]);
    };
    let mut at = 0;
    while let Some(&byte) = quoted.get(at) {
        at += 1;
        match byte {
            b'"' => return Ok(&quoted[at..]),
            b'\\' => {
                match quoted.get(at) {
                    Some(b'n') => text.push(b'\n'),
                    Some(&other @ (b'\\' | b'"')) => text.push(other),
                    // As in Prometheus, the backslash is kept.
                    Some(&other) => text.extend_from_slice(&[b'\\', other]),
                    None => return Err(LineError::Labels),
                }
                at += 1;
            }
            byte => text.push(byte),
        }
    }
    Err(LineError::Labels)
}
