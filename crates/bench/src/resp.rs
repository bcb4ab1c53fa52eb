//! The client's half of RESP2: commands to bytes, bytes to replies.
//!
//! Two readers of replies, because the load generator must cost less than what it measures:
//! `skip` finds where a reply ends and whether it is an error, without building anything;
//! `parse` builds a value, for the few commands whose answer matters.

use crate::error::{Error, Result};

/// Nested replies deeper than this are refused; no command used here goes beyond 4.
const DEPTH_MAX: usize = 16;

/// One reply of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// `+OK`.
    Simple(String),
    /// `-ERR ...`, without the dash.
    Error(String),
    /// `:42`.
    Integer(i64),
    /// `$2..`; `None` is the null bulk string.
    Bulk(Option<Vec<u8>>),
    /// `*n`; a null array reads as an empty one.
    Array(Vec<Reply>),
}

/// What `skip` saw of one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Bytes of the whole reply.
    pub(crate) len_bytes: usize,
    /// Whether the reply, or for an array its first failed element, is an error.
    pub(crate) is_error: bool,
}

/// Appends a command to `out` as an array of bulk strings.
pub(crate) fn encode_command(out: &mut Vec<u8>, parts: &[&[u8]]) {
    encode_header(out, parts.len());
    for part in parts {
        encode_bulk(out, part);
    }
}

/// Appends the `*n` line that begins a command of `parts` arguments.
pub(crate) fn encode_header(out: &mut Vec<u8>, parts: usize) {
    let mut digits = itoa::Buffer::new();
    out.push(b'*');
    out.extend_from_slice(digits.format(parts).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends one argument.
#[inline]
pub(crate) fn encode_bulk(out: &mut Vec<u8>, part: &[u8]) {
    let mut digits = itoa::Buffer::new();
    out.push(b'$');
    out.extend_from_slice(digits.format(part.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(part);
    out.extend_from_slice(b"\r\n");
}

/// Length and kind of the reply at the start of `input`; `None` when it is not whole yet.
///
/// # Errors
/// When the bytes are no RESP2 reply.
#[inline]
pub(crate) fn skip(input: &[u8]) -> Result<Option<Skipped>> {
    match input.first() {
        None => Ok(None),
        Some(b':' | b'+') => Ok(line_end(input).map(|len_bytes| Skipped {
            len_bytes,
            is_error: false,
        })),
        Some(b'-') => Ok(line_end(input).map(|len_bytes| Skipped {
            len_bytes,
            is_error: true,
        })),
        Some(_) => Ok(parse(input)?.map(|(reply, len_bytes)| Skipped {
            len_bytes,
            is_error: reply.has_error(),
        })),
    }
}

/// The reply at the start of `input` and its length in bytes; `None` when it is not whole yet.
///
/// # Errors
/// When the bytes are no RESP2 reply.
pub(crate) fn parse(input: &[u8]) -> Result<Option<(Reply, usize)>> {
    parse_at(input, DEPTH_MAX)
}

impl Reply {
    /// The reply as text: a simple or bulk string, an integer or an error.
    pub(crate) fn text(&self) -> String {
        match self {
            Reply::Simple(text) | Reply::Error(text) => text.clone(),
            Reply::Integer(number) => number.to_string(),
            Reply::Bulk(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Bulk(None) => String::new(),
            Reply::Array(items) => format!("an array of {}", items.len()),
        }
    }

    /// The reply as a number, if it reads as one.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Reply::Integer(number) => Some(*number),
            Reply::Simple(_) | Reply::Bulk(Some(_)) => self.text().parse().ok(),
            _ => None,
        }
    }

    /// The value behind `name` in a flat array of names and values.
    pub(crate) fn field(&self, name: &str) -> Option<&Reply> {
        let Reply::Array(items) = self else {
            return None;
        };
        items
            .chunks_exact(2)
            .find(|pair| pair[0].text() == name)
            .map(|pair| &pair[1])
    }

    fn has_error(&self) -> bool {
        match self {
            Reply::Error(_) => true,
            Reply::Array(items) => items.iter().any(Reply::has_error),
            _ => false,
        }
    }
}

/// Bytes up to and with the first line feed.
#[inline]
fn line_end(input: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', input).map(|at| at + 1)
}

fn parse_at(input: &[u8], depth: usize) -> Result<Option<(Reply, usize)>> {
    let Some(end) = line_end(input) else {
        return Ok(None);
    };
    let line = input[..end].trim_ascii_end();
    let (&kind, rest) = line.split_first().ok_or_else(|| malformed(line))?;
    let text = || String::from_utf8_lossy(rest).into_owned();
    let number = || -> Result<i64> {
        std::str::from_utf8(rest)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| malformed(line))
    };
    match kind {
        b'+' => Ok(Some((Reply::Simple(text()), end))),
        b'-' => Ok(Some((Reply::Error(text()), end))),
        b':' => Ok(Some((Reply::Integer(number()?), end))),
        b'$' => parse_bulk(input, end, number()?),
        b'*' => parse_array(input, end, number()?, depth),
        _ => Err(malformed(line)),
    }
}

fn parse_bulk(input: &[u8], start: usize, len: i64) -> Result<Option<(Reply, usize)>> {
    let Ok(len) = usize::try_from(len) else {
        return Ok(Some((Reply::Bulk(None), start)));
    };
    let end = start.saturating_add(len).saturating_add(2);
    if input.len() < end {
        return Ok(None);
    }
    Ok(Some((
        Reply::Bulk(Some(input[start..end - 2].to_vec())),
        end,
    )))
}

fn parse_array(
    input: &[u8],
    start: usize,
    count: i64,
    depth: usize,
) -> Result<Option<(Reply, usize)>> {
    if depth == 0 {
        return Err(Error::new("a reply nests deeper than any command answers"));
    }
    let mut items = Vec::new();
    let mut at = start;
    for _ in 0..count.max(0) {
        let Some((item, len)) = parse_at(&input[at..], depth - 1)? else {
            return Ok(None);
        };
        items.push(item);
        at += len;
    }
    Ok(Some((Reply::Array(items), at)))
}

fn malformed(line: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
    Error::new(format!(
        "the server does not speak RESP2, it sent {shown:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_a_command() {
        let mut out = Vec::new();
        encode_command(&mut out, &[b"TS.GET", b"k"]);
        assert_eq!(out, b"*2\r\n$6\r\nTS.GET\r\n$1\r\nk\r\n");
    }

    #[test]
    fn every_prefix_waits_for_more() {
        let whole = b"*4\r\n:12\r\n$2\r\nab\r\n$-1\r\n-ERR no\r\n";
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len]).unwrap(), None, "{len} bytes");
            assert_eq!(skip(&whole[..len]).unwrap(), None, "{len} bytes");
        }
        let (reply, len) = parse(whole).unwrap().unwrap();
        assert_eq!(len, whole.len());
        assert_eq!(
            reply,
            Reply::Array(vec![
                Reply::Integer(12),
                Reply::Bulk(Some(b"ab".to_vec())),
                Reply::Bulk(None),
                Reply::Error("ERR no".into()),
            ])
        );
        let skipped = skip(whole).unwrap().unwrap();
        assert!(skipped.is_error && skipped.len_bytes == whole.len());
    }

    #[test]
    fn refuses_what_is_no_reply() {
        assert!(parse(b"HTTP/1.1 200 OK\r\n").is_err());
        assert!(parse(b"\r\n").is_err());
        assert!(parse(b":x\r\n").is_err());
        let deep = "*1\r\n".repeat(DEPTH_MAX + 2);
        assert!(parse(deep.as_bytes()).is_err());
    }
}
