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
