//! Positions in the text of a query.

/// A range of bytes of the text: `start` inclusive, `end` exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Byte behind the last.
    pub end: usize,
}

impl Span {
    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start,
            end: other.end,
        }
    }
}

/// Line and column of a byte of a query, from 1, as errors show them.
pub(crate) fn place(query: &str, start: usize) -> String {
    let before = query.as_bytes().get(..start);
    match before {
        _ if query.is_empty() => "unknown position".to_owned(),
        None => "invalid position".to_owned(),
        Some(before) => {
            let lines = before.iter().filter(|byte| **byte == b'\n').count();
            let line_start = before.iter().rposition(|byte| *byte == b'\n');
            let column = start - line_start.map_or(0, |at| at + 1) + 1;
            format!("{}:{column}", lines + 1)
        }
    }
}
