//! How much memory a series holds, by what it holds.

use super::Series;
use super::chunk::Held;
use latewood_model::Sample;

impl Series {
    /// Bytes of memory by part.
    pub(crate) fn memory(&self) -> Memory {
        Memory {
            tail_bytes: self.tail.capacity() * size_of::<Sample>(),
            chunk_bytes: self.chunks.capacity() * size_of::<Held>()
                + self
                    .chunks
                    .iter()
                    .map(|chunk| chunk.memory_bytes() + 16)
                    .sum::<usize>(),
            late_bytes: self.late.as_ref().map_or(0, |late| late.memory_bytes()),
            other_bytes: size_of::<Self>()
                + self.key.len()
                + self.links.as_ref().map_or(0, |links| links.memory_bytes()),
        }
    }
}

/// Bytes of memory of series, by what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Raw samples not yet sealed.
    pub tail_bytes: usize,
    /// Encoded chunks.
    pub chunk_bytes: usize,
    /// Late samples on their way into chunks.
    pub late_bytes: usize,
    /// Keys and bookkeeping.
    pub other_bytes: usize,
}

impl Memory {
    /// All parts together.
    pub fn total_bytes(&self) -> usize {
        self.tail_bytes + self.chunk_bytes + self.late_bytes + self.other_bytes
    }
}

impl std::ops::AddAssign for Memory {
    fn add_assign(&mut self, other: Self) {
        self.tail_bytes += other.tail_bytes;
        self.chunk_bytes += other.chunk_bytes;
        self.late_bytes += other.late_bytes;
        self.other_bytes += other.other_bytes;
    }
}
