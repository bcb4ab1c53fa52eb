//! Parses replies, for clients, the benchmark and the tests.
//!
//! [`skip_reply`] finds the end of a reply and whether it is an error without
//! building anything, which is enough for a load generator. [`parse_reply`]
//! builds a tree. Both walk nested replies with a counter instead of recursion
//! or to a fixed depth, so a hostile server cannot overflow the stack, and
//! neither reserves memory for elements that a header only announces.

#[cfg(test)]
mod tests;

use super::number;
use thiserror::Error;

/// Deepest nesting of arrays and maps.
const DEPTH_MAX: usize = 32;
/// Longest line: a length, a number, a simple string or an error.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Whether a reply is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// Any reply but an error.
    Success,
    /// An error (`-` or `!`); errors inside arrays do not count.
    Error,
    /// An out-of-band message (`>`), which is not the reply to a command.
    Push,
}

/// The bytes are not a valid reply; the connection cannot be used further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// A reply begins with an unknown type byte.
    #[error("unknown reply type {0:#04x}")]
    UnknownType(u8),
    /// An invalid length or number.
    #[error("malformed number or length in a reply")]
    Malformed,
    /// Arrays and maps nest deeper than 32.
    #[error("reply nests too deeply")]
    TooDeep,
    /// A line is longer than a mebibyte.
    #[error("line of a reply is too long")]
    LineTooLong,
}

/// One reply as a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-` or `!`
    Error(Vec<u8>),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `_`, `$-1` or `*-1`
    Null,
    /// `,`
    Double(f64),
    /// `#`
    Boolean(bool),
    /// `(`, as text
    BigNumber(Vec<u8>),
    /// `=`: the format (`txt`, `mkd`) and the text
    Verbatim([u8; 3], Vec<u8>),
    /// `*`
    Array(Vec<Value>),
    /// `%`: pairs in the order they came
    Map(Vec<(Value, Value)>),
    /// `~`
    Set(Vec<Value>),
    /// `>`
    Push(Vec<Value>),
}

/// The first part of a reply: the whole reply, or the header before its elements.
enum Head<'a> {
    Scalar(Value),
    Text(u8, &'a [u8]),
    /// The type and the number of replies that follow.
    Elements(u8, usize),
}

/// Finds the end of the reply at the start of `buffer`: its bytes and kind.
///
/// `Ok(None)` if it is incomplete. Costs O(headers); bulk strings are not read.
///
/// # Errors
/// [`ReplyError`] if it is not a valid reply.
pub fn skip_reply(buffer: &[u8]) -> Result<Option<(usize, ReplyKind)>, ReplyError> {
    let kind = match buffer.first() {
        Some(b'-' | b'!') => ReplyKind::Error,
        Some(b'>') => ReplyKind::Push,
        _ => ReplyKind::Success,
    };
    let mut position = 0;
    let mut open = 1usize;
    while open > 0 {
        let Some((header_bytes, head)) = head(&buffer[position..])? else {
            return Ok(None);
        };
        position += header_bytes;
        open -= 1;
        if let Head::Elements(_, count) = head {
            open = open.checked_add(count).ok_or(ReplyError::Malformed)?;
        }
    }
    Ok(Some((position, kind)))
}

/// Parses the reply at the start of `buffer`: its bytes and its tree.
///
/// `Ok(None)` if it is incomplete; the next call starts over, so for large replies
/// call again only when much has arrived.
///
/// # Errors
/// [`ReplyError`] if it is not a valid reply or nests too deeply.
pub fn parse_reply(buffer: &[u8]) -> Result<Option<(usize, Value)>, ReplyError> {
    value(buffer, DEPTH_MAX)
}

fn value(buffer: &[u8], depth: usize) -> Result<Option<(usize, Value)>, ReplyError> {
    let Some((mut position, head)) = head(buffer)? else {
        return Ok(None);
    };
    let (kind, count) = match head {
        Head::Scalar(value) => return Ok(Some((position, value))),
        Head::Text(kind, text) => return Ok(Some((position, text_value(kind, text)?))),
        Head::Elements(kind, count) => (kind, count),
    };
    let depth = depth.checked_sub(1).ok_or(ReplyError::TooDeep)?;
    let mut elements = Vec::new();
    for _ in 0..count {
        let Some((element_bytes, element)) = value(&buffer[position..], depth)? else {
            return Ok(None);
        };
        position += element_bytes;
        elements.push(element);
    }
    let value = match kind {
        b'%' => Value::Map(pairs(elements)),
        b'~' => Value::Set(elements),
        b'>' => Value::Push(elements),
        _ => Value::Array(elements),
    };
    Ok(Some((position, value)))
}

fn pairs(elements: Vec<Value>) -> Vec<(Value, Value)> {
    let mut elements = elements.into_iter();
    let mut pairs = Vec::with_capacity(elements.len() / 2);
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        pairs.push((key, value));
    }
    pairs
}

fn text_value(kind: u8, text: &[u8]) -> Result<Value, ReplyError> {
    Ok(match kind {
        b'+' => Value::Simple(text.to_vec()),
        b'-' | b'!' => Value::Error(text.to_vec()),
        b'(' => Value::BigNumber(text.to_vec()),
        b'=' => match text {
            [a, b, c, b':', rest @ ..] => Value::Verbatim([*a, *b, *c], rest.to_vec()),
            _ => return Err(ReplyError::Malformed),
        },
        _ => Value::Bulk(text.to_vec()),
    })
}

/// Parses the first line of a reply, and the bytes that a string header announces.
fn head(buffer: &[u8]) -> Result<Option<(usize, Head<'_>)>, ReplyError> {
    let Some(&kind) = buffer.first() else {
        return Ok(None);
    };
    if !b"+-:$_,#(=!*%~>".contains(&kind) {
        return Err(ReplyError::UnknownType(kind));
    }
    let Some(line_bytes) = line_end(buffer)? else {
        return Ok(None);
    };
    let line = &buffer[1..line_bytes];
    let header_bytes = line_bytes + 2;
    let head = match kind {
        b'+' | b'-' | b'(' => Head::Text(kind, line),
        b':' => Head::Scalar(Value::Integer(integer(line)?)),
        b'_' => Head::Scalar(Value::Null),
        b',' => Head::Scalar(Value::Double(double(line)?)),
        b'#' => Head::Scalar(Value::Boolean(match line {
            b"t" => true,
            b"f" => false,
            _ => return Err(ReplyError::Malformed),
        })),
        b'$' | b'*' if line == b"-1" => Head::Scalar(Value::Null),
        b'$' | b'=' | b'!' => {
            let len_bytes = length(line)?;
            let end = header_bytes
                .checked_add(len_bytes)
                .ok_or(ReplyError::Malformed)?;
            let next = end.checked_add(2).ok_or(ReplyError::Malformed)?;
            return match buffer.get(header_bytes..next) {
                Some(_) => Ok(Some((next, Head::Text(kind, &buffer[header_bytes..end])))),
                None => Ok(None),
            };
        }
        b'%' => {
            let elements = length(line)?.checked_mul(2).ok_or(ReplyError::Malformed)?;
            Head::Elements(kind, elements)
        }
        _ => Head::Elements(kind, length(line)?),
    };
    Ok(Some((header_bytes, head)))
}

/// Offset of the `\r` that ends the line, once the byte after it has arrived too.
fn line_end(buffer: &[u8]) -> Result<Option<usize>, ReplyError> {
    // Most lines are short: `+OK`, `:1700000000000`, `$6`.
    let found = match buffer.iter().take(24).position(|byte| *byte == b'\r') {
        Some(end) => Some(end),
        None => memchr::memchr(b'\r', &buffer[..buffer.len().min(LINE_BYTES_MAX)]),
    };
    match found {
        Some(end) if end + 2 <= buffer.len() => Ok(Some(end)),
        None if buffer.len() >= LINE_BYTES_MAX => Err(ReplyError::LineTooLong),
        _ => Ok(None),
    }
}

fn length(line: &[u8]) -> Result<usize, ReplyError> {
    number::parse_u64(line)
        .and_then(|length| usize::try_from(length).ok())
        .ok_or(ReplyError::Malformed)
}

fn integer(line: &[u8]) -> Result<i64, ReplyError> {
    let line = line.strip_prefix(b"+").unwrap_or(line);
    number::parse_i64(line).ok_or(ReplyError::Malformed)
}

fn double(line: &[u8]) -> Result<f64, ReplyError> {
    let text = std::str::from_utf8(line).map_err(|_| ReplyError::Malformed)?;
    text.parse().map_err(|_| ReplyError::Malformed)
}
