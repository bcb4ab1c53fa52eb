//! Splits a stream of bytes into lines of bounded length.
//!
//! Line protocols do not announce the length of a line, so `max_bytes` bounds
//! the buffer of a connection: a longer line is reported once, its rest is
//! discarded as it arrives, and the next line is read normally. A line ends at
//! LF or CR LF; the ending is not part of it. Bytes after the last LF wait for
//! more.
//!
//! Tested below, and by the fuzz targets of the protocols.

use crate::intake::{Intake, Reason};

/// Bytes of a bad line in its error text.
const SHOWN_BYTES_MAX: usize = 200;

/// A line for an error text, cut if it is long.
pub(crate) fn shown(line: &[u8]) -> String {
    let line = line.trim_ascii_end();
    let cut = &line[..line.len().min(SHOWN_BYTES_MAX)];
    let dots = if cut.len() < line.len() { "..." } else { "" };
    String::from_utf8_lossy(cut).into_owned() + dots
}

/// Splits the bytes of one connection into lines.
#[derive(Clone, Debug)]
pub struct Lines {
    max_bytes: usize,
    discarding: bool,
    /// Bytes of the incomplete line that were looked through.
    seen: usize,
    number: u64,
}

/// The start of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A line without its ending.
    Line(&'a [u8]),
    /// A line that is too long; it is discarded.
    TooLong,
    /// An incomplete line.
    More,
}

impl Lines {
    /// Reads lines of at most `max_bytes` bytes, their ending included.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            discarding: false,
            seen: 0,
            number: 0,
        }
    }

    /// The first line of `buffer` and the number of bytes consumed. Call it again
    /// with the rest until it returns [`Step::More`]; then at most `max_bytes`
    /// bytes are left, which must come first next time and are not looked at again.
    #[inline]
    pub fn step<'a>(&mut self, buffer: &'a [u8]) -> (Step<'a>, usize) {
        let seen = std::mem::take(&mut self.seen).min(buffer.len());
        let end = memchr::memchr(b'\n', &buffer[seen..]).map(|end| seen + end);
        if self.discarding {
            let Some(end) = end else {
                return (Step::More, buffer.len());
            };
            self.discarding = false;
            let (step, taken) = self.step(&buffer[end + 1..]);
            return (step, end + 1 + taken);
        }
        match end {
            Some(end) if end < self.max_bytes => {
                self.number += 1;
                let line = &buffer[..end];
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                (Step::Line(line), end + 1)
            }
            Some(end) => {
                self.number += 1;
                (Step::TooLong, end + 1)
            }
            None if buffer.len() >= self.max_bytes => {
                self.number += 1;
                self.discarding = true;
                (Step::TooLong, buffer.len())
            }
            None => {
                self.seen = buffer.len();
                (Step::More, 0)
            }
        }
    }

    /// Gives each complete line of `bytes` with its number to `take`, and the last one too if
    /// `is_end`; refuses those that are too long. Returns the number of bytes consumed; the others
    /// must come first next time.
    pub(crate) fn each<I: Intake>(
        &mut self,
        bytes: &[u8],
        is_end: bool,
        intake: &mut I,
        mut take: impl FnMut(&[u8], u32, &mut I),
    ) -> usize {
        let mut taken = 0;
        loop {
            let (step, length) = self.step(&bytes[taken..]);
            taken += length;
            let number = u32::try_from(self.number).unwrap_or(u32::MAX);
            match step {
                Step::Line(line) => take(line, number, intake),
                Step::TooLong => {
                    let most = self.max_bytes;
                    let text = format_args!("the line is longer than {most} bytes");
                    intake.refuse(number, Reason::Long, text);
                }
                Step::More if is_end => {
                    take(&bytes[taken..], number.saturating_add(1), intake);
                    return bytes.len();
                }
                Step::More => return taken,
            }
        }
    }

    /// The number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of `input` that arrives in pieces of `piece` bytes.
    fn read(input: &[u8], piece: usize, max_bytes: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(max_bytes);
        let (mut buffer, mut found) = (Vec::new(), Vec::new());
        for bytes in input.chunks(piece) {
            buffer.extend_from_slice(bytes);
            loop {
                let (step, taken) = lines.step(&buffer);
                let is_last = step == Step::More;
                match step {
                    Step::Line(line) => found.push(Some(line.to_vec())),
                    Step::TooLong => found.push(None),
                    Step::More => {}
                }
                buffer.drain(..taken);
                if is_last {
                    break;
                }
            }
            assert!(buffer.len() <= max_bytes);
        }
        assert_eq!(lines.number(), found.len() as u64);
        found
    }

    #[test]
    fn bytes_of_an_incomplete_line_are_not_looked_at_again() {
        let mut lines = Lines::new(10);
        assert_eq!(lines.step(b"one"), (Step::More, 0));
        // A line break that was not there before shows what is looked at.
        assert_eq!(lines.step(b"\nne,two"), (Step::More, 0));
        assert_eq!(lines.step(b"one,two\n"), (Step::Line(b"one,two"), 8));
        assert_eq!(lines.step(b"\n"), (Step::Line(b""), 1));
    }

    #[test]
    fn lines_come_out_the_same_however_the_bytes_arrive() {
        let input = b"one\r\n\ntwo\rx\nmuch too long a line\nthree\nrest";
        let line = |text: &[u8]| Some(text.to_vec());
        let expected = [
            line(b"one"),
            line(b""),
            line(b"two\rx"),
            None,
            line(b"three"),
        ];
        for piece in 1..=input.len() {
            assert_eq!(
                read(input, piece, 10),
                expected,
                "in pieces of {piece} bytes"
            );
        }
    }
}
