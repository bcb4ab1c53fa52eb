//! Connections that say one thing after the other, as often as they may; and a part of the fleet as
//! TS.MADD commands.
//!
//! The bytes of each key are made once: what is left for a sample is copying them beside two numbers
//! of fixed width, a few nanoseconds, since the server shares the cores.

use std::io::Write;

use crate::load::Source;
use crate::workload::sensors::{Part, key};

/// What says the next command of a connection.
pub(crate) trait Say: Send {
    /// Appends one command.
    fn say(&mut self, out: &mut Vec<u8>);
}

/// Commands of a connection, as many as are `left`.
#[derive(Debug)]
pub(crate) struct Turns<S> {
    pub(crate) says: S,
    pub(crate) left: u64,
}

impl<S: Say> Turns<S> {
    /// Has nothing to say yet.
    pub(crate) fn of(says: S) -> Self {
        Turns { says, left: 0 }
    }
}

impl<S: Say> Source for Turns<S> {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        (0..count).for_each(|_| self.says.say(out));
        self.left -= count as u64;
        count
    }
}

/// Sends a part, round after round, `batch` samples with each command.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) part: Part,
    /// The word of each key, as it goes over the wire.
    keys: Vec<Vec<u8>>,
    batch: usize,
    next: usize,
}

impl Sender {
    /// Begins with the first series.
    pub(crate) fn new(part: Part, batch: usize) -> Self {
        let word = |at| {
            let key = key(part.number(at));
            format!("${}\r\n{key}\r\n", key.len()).into_bytes()
        };
        Sender {
            keys: (0..part.len()).map(word).collect(),
            batch: batch.max(1),
            next: 0,
            part,
        }
    }

    /// Commands with a sample of every series each.
    pub(crate) fn commands(&self) -> u64 {
        self.keys.len().div_ceil(self.batch) as u64
    }
}

impl Say for Sender {
    /// Writing to a `Vec` cannot fail, so no outcome is looked at.
    fn say(&mut self, out: &mut Vec<u8>) {
        let end = self.keys.len().min(self.next + self.batch);
        let _ = write!(out, "*{}\r\n$7\r\nTS.MADD\r\n", 1 + 3 * (end - self.next));
        let mut time = itoa::Buffer::new();
        for at in self.next..end {
            let (timestamp_ms, hundredths) = self.part.next(at);
            let time = time.format(timestamp_ms).as_bytes();
            out.extend_from_slice(&self.keys[at]);
            // A time after 2001 and before 2286 has thirteen digits.
            out.extend_from_slice(b"$13\r\n");
            out.extend_from_slice(time);
            out.extend_from_slice(b"\r\n$5\r\n");
            let digit = |unit: u16| b'0' + (hundredths / unit % 10) as u8;
            out.extend_from_slice(&[digit(1_000), digit(100), b'.', digit(10), digit(1)]);
            out.extend_from_slice(b"\r\n");
        }
        self.next = end % self.keys.len();
    }
}
