//! One line of OpenTSDB's telnet protocol.
//!
//! `put METRIC TIMESTAMP VALUE TAG=VALUE...`, words separated by blanks. A valid
//! `put` has no reply; an error is one line, and the connection continues. Tags are
//! parsed only for a new series ([`super::tags()`]); until then the raw bytes
//! identify it.
//!
//! Tested below and by the fuzz target `opentsdb_telnet`.

use super::error::PointError;
use super::number;
use crate::intake::Reason;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request<'a> {
    /// A sample.
    Put(Put<'a>),
    /// The version.
    Version,
    /// Counters.
    Stats,
    /// The list of commands.
    Help,
    /// Close the connection.
    Exit,
    /// An empty line.
    Blank,
    /// An unknown command.
    Unknown(&'a [u8]),
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Put<'a> {
    /// Its metric; not empty.
    pub metric: &'a [u8],
    /// Milliseconds since the epoch; positive.
    pub timestamp_ms: i64,
    /// Finite.
    pub value: f64,
    /// The text after the value, for [`super::tags()`]; not empty.
    pub tags: &'a [u8],
}

/// Parses one line without its ending.
///
/// # Errors
/// An invalid `put`.
#[inline]
pub fn parse(line: &[u8]) -> Result<Request<'_>, PointError> {
    let (command, rest) = word(line);
    match command {
        b"put" => put(rest).map(Request::Put),
        b"" => Ok(Request::Blank),
        b"version" => Ok(Request::Version),
        b"stats" => Ok(Request::Stats),
        b"help" => Ok(Request::Help),
        b"exit" => Ok(Request::Exit),
        other => Ok(Request::Unknown(other)),
    }
}

/// Appends the reply to a refused `put`: the reason and text that the intake
/// received from [`super::refuse`] or gave itself.
pub fn append_refusal(out: &mut Vec<u8>, reason: Reason, text: &str) {
    use Reason::{Name, Syntax, Timestamp, Value};
    // Refusals of this crate already begin with their kind.
    let kind = match reason {
        Syntax | Name | Value | Timestamp => "",
        _ => "illegal argument: ",
    };
    out.extend_from_slice(format!("put: {kind}{text}\n").as_bytes());
}

/// Appends the reply to an unknown command.
pub fn append_unknown(out: &mut Vec<u8>, command: &[u8]) {
    out.extend_from_slice(b"unknown command: ");
    out.extend_from_slice(super::error::quoted(command).as_bytes());
    out.extend_from_slice(b".  Try `help'.\n");
}

#[inline]
fn put(rest: &[u8]) -> Result<Put<'_>, PointError> {
    let (metric, rest) = word(rest);
    let (timestamp, rest) = word(rest);
    let (value, rest) = word(rest);
    let tags = rest.trim_ascii_start();
    if tags.is_empty() {
        let given = [metric, timestamp, value];
        let words = given.iter().filter(|word| !word.is_empty()).count();
        return Err(PointError::TooFewWords(words));
    }
    Ok(Put {
        metric,
        timestamp_ms: number::timestamp_ms(timestamp)?,
        value: number::value(value)?,
        tags,
    })
}

/// The first word and the rest; leading blanks are skipped.
#[inline]
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let blanks = line.iter().take_while(|byte| **byte == b' ').count();
    let line = &line[blanks..];
    match memchr::memchr(b' ', line) {
        Some(end) => line.split_at(end),
        None => (line, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> String {
        let mut out = Vec::new();
        match parse(line.as_bytes()) {
            Ok(Request::Unknown(command)) => append_unknown(&mut out, command),
            Ok(request) => out = format!("{request:?}").into_bytes(),
            Err(error) => {
                let text = format!("{}: {error}", error.kind());
                append_refusal(&mut out, error.reason(), &text);
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_point_in_every_spacing() {
        let expected = Put {
            metric: b"sys.cpu.user",
            timestamp_ms: 1_356_998_400_000,
            value: 42.5,
            tags: b"host=web01 cpu=0",
        };
        for line in [
            "put sys.cpu.user 1356998400 42.5 host=web01 cpu=0",
            "put  sys.cpu.user  1356998400  42.5   host=web01 cpu=0",
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(Request::Put(expected)));
        }
    }

    #[test]
    fn errors_are_worded_as_opentsdb_words_them() {
        for (line, expected) in [
            (
                "put a",
                "put: illegal argument: not enough arguments (need least 4, got 1)\n",
            ),
            (
                "put a 1 2",
                "put: illegal argument: not enough arguments (need least 4, got 3)\n",
            ),
            (
                "put a 0 2 x=y",
                "put: illegal argument: invalid timestamp: 0\n",
            ),
            (
                "put a 1 two x=y",
                "put: invalid value: For input string: \"two\"\n",
            ),
            (
                "put a 1 NaN x=y",
                "put: illegal argument: value is NaN or Infinite: NaN\n",
            ),
            ("get a", "unknown command: get.  Try `help'.\n"),
            ("PUT a 1 2 x=y", "unknown command: PUT.  Try `help'.\n"),
        ] {
            assert_eq!(answer(line), expected);
        }
    }

    #[test]
    fn other_commands() {
        assert_eq!(parse(b""), Ok(Request::Blank));
        assert_eq!(parse(b"   "), Ok(Request::Blank));
        assert_eq!(parse(b"version"), Ok(Request::Version));
        assert_eq!(parse(b"stats"), Ok(Request::Stats));
        assert_eq!(parse(b"help put"), Ok(Request::Help));
        assert_eq!(parse(b"exit"), Ok(Request::Exit));
    }
}
