//! Splits a file into pieces of whole lines. Headings of `influx_inspect export` are left out.

use crate::error::{Doing, Result};
use latewood_wire::influx::{Decoder, LINE_BYTES_MAX, Precision};
use latewood_wire::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use latewood_wire::series_cache::SeriesCache;
use latewood_wire::series_name::SeriesName;
use std::fmt::Arguments;
use std::io::Read;
use std::mem::take;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Approximate bytes of a piece: some ten thousand lines, which a server
/// processes in hundredths of a second.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// Bytes of the buffer: more than the longest line.
const HELD_BYTES: usize = 2 * LINE_BYTES_MAX;
/// How a heading of `influx_inspect export` begins that is no comment.
const CREATE_DATABASE: &[u8] = b"CREATE DATABASE ";
/// Most bytes of the cache of known series.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// Whole lines, ready to be sent.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) name: Arc<str>,
    /// The lines, with blank ones in place of skipped ones.
    pub(super) text: Vec<u8>,
    /// The line number in the file of each line, from 1.
    pub(super) starts: Vec<u64>,
    pub(super) samples: u64,
    /// Values that are texts.
    pub(super) texts: u64,
    /// Skipped lines and reasons.
    pub(super) bad: Vec<(u64, String)>,
}

/// A file being read.
pub(super) struct Scan<R> {
    reader: R,
    name: Arc<str>,
    decoder: Decoder,
    /// Whether to continue after a bad line.
    skips_bad: bool,
    seen: Seen,
    buffer: Vec<u8>,
    at: usize,
    is_end: bool,
    /// The number of the next line.
    line: u64,
    /// The rest of a line that is too long is being skipped.
    is_passing: bool,
}

impl<R: Read> Scan<R> {
    pub(super) fn new(reader: R, name: Arc<str>, precision: Precision, skips_bad: bool) -> Self {
        Self {
            reader,
            name,
            decoder: Decoder::new(precision),
            skips_bad,
            seen: Seen::default(),
            buffer: Vec::new(),
            at: 0,
            is_end: false,
            line: 1,
            is_passing: false,
        }
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn next_piece(&mut self) -> Result<Option<Piece>> {
        let mut piece = Piece {
            name: Arc::clone(&self.name),
            ..Piece::default()
        };
        while piece.text.len() < PIECE_BYTES {
            if self.at == self.buffer.len() && self.is_end {
                break;
            }
            let text = &self.buffer[self.at..];
            let read = self.decoder.step(text, self.is_end, &mut self.seen);
            if read == 0 {
                self.fill()?;
                continue;
            }
            if !self.put(read, &mut piece) {
                self.give_up();
            }
        }
        (piece.samples, piece.texts) = (take(&mut self.seen.samples), take(&mut self.seen.texts));
        let is_empty = piece.text.is_empty() && piece.bad.is_empty();
        Ok((!is_empty).then_some(piece))
    }

    /// Moves `read` bytes of the buffer into the piece: a line, or a part of one.
    /// Returns whether to continue.
    fn put(&mut self, read: usize, piece: &mut Piece) -> bool {
        let text = &self.buffer[self.at..self.at + read];
        self.at += read;
        let begun = self.line;
        self.line += memchr::memchr_iter(b'\n', text).count() as u64;
        let ends = text.ends_with(b"\n");
        if take(&mut self.is_passing) {
            self.is_passing = !ends;
            return true;
        }
        match self.seen.refused.take() {
            Some(reason) => {
                self.is_passing = !ends;
                if !text.starts_with(CREATE_DATABASE) {
                    piece.bad.push((begun, reason));
                }
                piece.text.push(b'\n');
            }
            // Blanks before a line.
            None if !ends && text.trim_ascii().is_empty() => return true,
            None => piece.text.extend_from_slice(text),
        }
        piece.starts.push(begun);
        self.skips_bad || piece.bad.is_empty()
    }

    fn fill(&mut self) -> Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let room = HELD_BYTES.saturating_sub(self.buffer.len()) as u64;
        let mut part = (&mut self.reader).take(room);
        let read = part.read_to_end(&mut self.buffer);
        self.is_end = (read.doing(format!("read {}", self.name))? as u64) < room;
        Ok(())
    }

    /// Stops reading.
    fn give_up(&mut self) {
        self.buffer.clear();
        (self.at, self.is_end) = (0, true);
    }
}

/// Counts the samples as the server will.
#[derive(Default)]
pub(super) struct Seen {
    cache: SeriesCache,
    samples: u64,
    texts: u64,
    pub(super) refused: Option<String>,
}

impl Intake for Seen {
    fn follow(&mut self, text: &[u8]) -> Option<(Row, usize)> {
        self.cache.follow(text)
    }

    fn find(&mut self, raw: &[u8]) -> Option<Row> {
        if self.cache.len_bytes() > CACHE_BYTES_MAX {
            self.cache.clear();
        }
        self.cache.find(raw)
    }

    fn add(&mut self, raw: &[u8]) -> Row {
        self.cache.add(raw)
    }

    fn field(&mut self, row: Row, at: usize, name: &[u8]) -> Option<Slot> {
        self.cache.field(row, at, name)
    }

    fn expect(&mut self, row: Row, at: usize, text: &[u8]) -> Option<(Slot, usize)> {
        self.cache.expect(row, at, text)
    }

    fn learn(
        &mut self,
        row: Row,
        name: &[u8],
        _: &SeriesName,
    ) -> std::result::Result<Slot, Refused> {
        let slot = self.cache.learn(row, name);
        if self.cache.len_bytes() > CACHE_BYTES_MAX {
            // Forces a lookup, which clears the cache.
            self.cache.expect_none();
        }
        Ok(slot)
    }

    fn samples(&mut self, samples: &[(Slot, f64)], _: Moment, _: u32) {
        self.samples += samples.len() as u64;
    }

    fn refuse(&mut self, _: u32, _: Reason, text: Arguments<'_>) {
        self.refused = Some(text.to_string());
    }

    fn skip_text(&mut self) {
        self.texts += 1;
    }

    fn now_ms(&self) -> i64 {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
        i64::try_from(elapsed.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
    }
}

/// The samples and texts that a server finds in `text`, and why it refuses a line.
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(super) fn fuzz_samples(text: &[u8]) -> (u64, u64, Option<String>) {
    let mut seen = Seen::default();
    Decoder::new(Precision::Nanoseconds).decode(text, true, &mut seen);
    (seen.samples, seen.texts, seen.refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a file that is read a few bytes at a time.
    fn pieces(text: &[u8], skips_bad: bool) -> Vec<Piece> {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let length = buffer.len().min(9973).min(self.0.len());
                let (now, later) = self.0.split_at(length);
                buffer[..length].copy_from_slice(now);
                self.0 = later;
                Ok(length)
            }
        }
        let mut scan = Scan::new(Slow(text), "f".into(), Precision::Seconds, skips_bad);
        let mut pieces = Vec::new();
        while let Some(piece) = scan.next_piece().unwrap() {
            pieces.push(piece);
        }
        pieces
    }

    #[test]
    fn bad_lines_become_blank_ones_and_numbers_are_those_of_the_file() {
        let text = b"m v=1 1\n# x\nm t=\"two\nlines\",v=2 2\nm v=\n  m v=3 3\nm v=4 4";
        let read = pieces(text, true);
        assert_eq!(read.len(), 1);
        let expected = b"m v=1 1\n# x\nm t=\"two\nlines\",v=2 2\n\nm v=3 3\nm v=4 4";
        assert_eq!(read[0].text, expected);
        assert_eq!(read[0].starts, [1, 2, 3, 5, 6, 7]);
        assert_eq!((read[0].samples, read[0].texts), (4, 1));
        assert_eq!(
            read[0].bad,
            [(5, "unable to parse 'm v=': missing field value".into())]
        );
    }

    #[test]
    fn headings_of_an_export_are_left_out() {
        let text = b"# DDL\nCREATE DATABASE \"my db\" WITH NAME autogen\n# DML\n\
                     CREATE DATABASE=1 1\nCREATE DATABASES x\n";
        let read = pieces(text, true);
        assert_eq!(read[0].text, b"# DDL\n\n# DML\nCREATE DATABASE=1 1\n\n");
        assert_eq!((read[0].samples, read[0].bad[0].0), (1, 5));
    }

    #[test]
    fn the_first_bad_line_ends_the_file_where_none_may_be_skipped() {
        let read = pieces(b"m v=1 1\nm v=x 1\nm v=3 3\n", false);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].text, b"m v=1 1\n\n");
        assert_eq!((read[0].samples, read[0].bad[0].0), (1, 2));
    }

    #[test]
    fn a_line_longer_than_any_buffer_is_left_out_and_nothing_of_it_is_read_as_another() {
        let long = "x v=9 9 ".repeat(HELD_BYTES / 4);
        let text = format!("m v=1 1\n{long}\nm v=2 2\n");
        let read = pieces(text.as_bytes(), true);
        let lines: Vec<_> = read.iter().map(|piece| piece.text.as_slice()).collect();
        assert_eq!(lines.concat(), b"m v=1 1\n\nm v=2 2\n");
        let starts: Vec<_> = read.iter().flat_map(|piece| &piece.starts).collect();
        assert_eq!(starts, [&1, &2, &3]);
        assert_eq!(read.iter().map(|piece| piece.bad.len()).sum::<usize>(), 1);
    }

    #[test]
    fn a_row_that_shows_more_and_more_fields_is_forgotten_in_time() {
        let mut seen = Seen::default();
        let mut decoder = Decoder::new(Precision::Seconds);
        // Within what a key may take.
        let long = "x".repeat(60_000);
        let lines = 3 * CACHE_BYTES_MAX / long.len();
        for number in 0..lines {
            let line = format!("m {number}{long}=1 1\n");
            assert_eq!(
                decoder.decode(line.as_bytes(), false, &mut seen),
                line.len()
            );
            let held = seen.cache.len_bytes();
            assert!(held < CACHE_BYTES_MAX + 2 * LINE_BYTES_MAX, "{held}");
        }
        assert_eq!((seen.samples, seen.refused), (lines as u64, None));
    }

    #[test]
    fn a_large_file_comes_in_pieces_of_whole_lines() {
        let lines: Vec<_> = (0..200_000)
            .map(|at| format!("m,h={} v={at} {at}\n", at % 7))
            .collect();
        let text = lines.concat();
        let read = pieces(text.as_bytes(), false);
        assert!(read.len() > 2);
        let whole: Vec<_> = read.iter().map(|piece| piece.text.as_slice()).collect();
        assert!(whole.iter().all(|text| text.ends_with(b"\n")));
        assert!(whole.concat() == text.as_bytes());
        assert_eq!(read.iter().map(|piece| piece.samples).sum::<u64>(), 200_000);
        let numbers: Vec<_> = read
            .iter()
            .flat_map(|piece| &piece.starts)
            .copied()
            .collect();
        assert!(numbers.into_iter().eq(1..=200_000));
    }
}
