//! Parses the measurement and tags of a line.
//!
//! The grammar is that of InfluxDB's own parser (`models/points.go`): a comma, space or equals sign
//! is escaped by a backslash directly before it, whatever precedes that backslash, and any other
//! backslash is literal. `a\\,b` with two backslashes is therefore the text `a\,b`. An equals sign
//! that is not escaped cannot stand in a tag value: it tells that a comma before it was escaped by
//! the end of a value such as `C:\`.

use super::error::Bad;
use std::ops::Range;

/// Bytes that a backslash escapes in measurements and field keys.
pub(super) const NAME_ESCAPED: &[u8] = b",= \"";

/// A measurement and its tags, unescaped.
#[derive(Debug, Default)]
pub(super) struct Key {
    bytes: Vec<u8>,
    measurement: Range<usize>,
    tags: Vec<(Range<usize>, Range<usize>)>,
}

/// Position of the first unescaped byte of `ends`. A line break cannot be escaped.
pub(super) fn end_of(text: &[u8], ends: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += match *ends {
            [end] => memchr::memchr(end, rest),
            [one, other] => memchr::memchr2(one, other, rest),
            _ => rest.iter().position(|byte| ends.contains(byte)),
        }?;
        let is_escaped = at > 0 && text[at - 1] == b'\\' && text[at] != b'\n';
        if !is_escaped {
            return Some(at);
        }
        at += 1;
    }
}

impl Key {
    /// Parses the text before the first space.
    pub(super) fn read(&mut self, text: &[u8]) -> Result<(), Bad> {
        self.bytes.clear();
        self.tags.clear();
        let end = end_of(text, b",").unwrap_or(text.len());
        self.measurement = self.keep(&text[..end], NAME_ESCAPED);
        if self.measurement.is_empty() {
            return Err(Bad::NoMeasurement);
        }
        let mut rest = &text[end..];
        while let Some(tag) = rest.strip_prefix(b",") {
            let equals = end_of(tag, b"=,").unwrap_or(tag.len());
            if equals == 0 {
                return Err(Bad::NoTagKey);
            }
            let Some(value) = tag[equals..].strip_prefix(b"=") else {
                return Err(Bad::NoTagValue);
            };
            let end = end_of(value, b"=,").unwrap_or(value.len());
            if value.get(end) == Some(&b'=') {
                return Err(Bad::TagFormat);
            }
            if end == 0 {
                return Err(Bad::NoTagValue);
            }
            let name = self.keep(&tag[..equals], b",= ");
            let tag_value = self.keep(&value[..end], b",= ");
            self.tags.push((name, tag_value));
            rest = &value[end..];
        }
        Ok(())
    }

    pub(super) fn measurement(&self) -> &[u8] {
        &self.bytes[self.measurement.clone()]
    }

    /// The tags, in order.
    pub(super) fn tags(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let tags = self.tags.iter();
        tags.map(|(name, value)| (&self.bytes[name.clone()], &self.bytes[value.clone()]))
    }

    fn keep(&mut self, text: &[u8], escaped: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        unescape(text, escaped, &mut self.bytes);
        start..self.bytes.len()
    }
}

/// Appends `text` without the backslashes before bytes of `escaped`.
pub(super) fn unescape(text: &[u8], escaped: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let is_escape = rest.get(at + 1).is_some_and(|next| escaped.contains(next));
        out.extend_from_slice(&rest[..at + usize::from(!is_escape)]);
        rest = &rest[at + 1..];
        if is_escape {
            out.push(rest[0]);
            rest = &rest[1..];
        }
    }
    out.extend_from_slice(rest);
}
