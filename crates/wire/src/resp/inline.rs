//! Inline commands: a line of words, as a person types it into telnet.
//!
//! Words are separated by blanks. `"..."` may hold blanks and the escapes
//! `\n \r \t \b \a \xHH`; a backslash before any other byte stands for that
//! byte. `'...'` may hold blanks; `\'` is its only escape. A closing quote must
//! be followed by a blank or the end. A quote may begin inside a word. NUL is an
//! ordinary byte (Redis hangs at it).

use super::{Command, ProtocolError};

/// Splits `line`, which has no line break at its end, into the arguments of `command`.
pub(super) fn split(line: &[u8], command: &mut Command) -> Result<(), ProtocolError> {
    if is_http(line) {
        return Err(ProtocolError::Http);
    }
    let mut rest = skip_blanks(line);
    while !rest.is_empty() {
        let text = command.begin_inline();
        let start = text.len();
        rest = word(rest, text)?;
        command.end_inline_argument(start);
        rest = skip_blanks(rest);
    }
    Ok(())
}

/// Parses one word into `text`; returns the rest.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            [] => return Ok(rest),
            [byte, ..] if is_blank(*byte) => return Ok(rest),
            [b'"', inner @ ..] => return closed(double_quoted(inner, text)?),
            [b'\'', inner @ ..] => return closed(single_quoted(inner, text)?),
            [byte, after @ ..] => {
                text.push(*byte);
                rest = after;
            }
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                text.push(hex(*high) << 4 | hex(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                text.push(*byte);
                after
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', after @ ..] => return Ok(after),
            [b'\\', b'\'', after @ ..] => {
                text.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                text.push(*byte);
                after
            }
        };
    }
}

/// Checks that a blank or the end follows a closing quote.
fn closed(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !is_blank(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

/// Whether this is an HTTP request line, or the header that every request has.
/// `POST` and `Host:` are enough, as in Redis: a browser's request begins with one
/// of them.
fn is_http(line: &[u8]) -> bool {
    let mut words = line
        .split(|byte| is_blank(*byte))
        .filter(|word| !word.is_empty());
    let Some(first) = words.next() else {
        return false;
    };
    if first.eq_ignore_ascii_case(b"post") || first.eq_ignore_ascii_case(b"host:") {
        return true;
    }
    let is_target = words.next().is_some_and(|word| word.starts_with(b"/"));
    is_target && words.next().is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// Whitespace as in C's `isspace`.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

fn skip_blanks(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|byte| is_blank(**byte)).count();
    &line[blanks..]
}
