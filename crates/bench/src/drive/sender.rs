//! A part of the fleet as TS.MADD commands.
//!
//! Every command is made once, with room for timestamps and values of fixed width, and copied and
//! filled in for each batch: a few nanoseconds a sample, since the server shares the cores.

use latewood_wire::resp::encode_command;

use crate::load::Source;
use crate::workload::sensors::{Part, START_MS, key};

/// Bytes of a timestamp and of a value; START_MS has as many digits as any time before 2286.
const TIME_BYTES: usize = 13;
const VALUE_BYTES: usize = 5;

/// Sends a part, round after round.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) part: Part,
    commands: Vec<Command>,
    next: usize,
    left: u64,
}

/// A command for some neighbouring series.
#[derive(Debug)]
struct Command {
    bytes: Vec<u8>,
    /// Place of its first series in the part, and how many there are.
    first: usize,
    count: usize,
    /// Bytes before the first timestamp, and from one to the next.
    time_at: usize,
    stride: usize,
}

impl Sender {
    /// Has nothing to send until `allow` says how much; `batch` samples with each command.
    pub(crate) fn new(part: Part, batch: usize) -> Self {
        let starts = (0..part.len()).step_by(batch.max(1));
        let command = |first| Command::new(&part, first, batch.min(part.len() - first));
        Sender {
            left: 0,
            commands: starts.map(command).collect(),
            next: 0,
            part,
        }
    }

    /// Lets every series send `rounds` samples more.
    pub(crate) fn allow(&mut self, rounds: u32) {
        self.left += self.commands.len() as u64 * u64::from(rounds);
    }

    /// Commands that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }
}

impl Source for Sender {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        for _ in 0..count {
            self.commands[self.next].write(&mut self.part, out);
            self.next = (self.next + 1) % self.commands.len();
        }
        self.left -= count as u64;
        count
    }
}

impl Command {
    fn new(part: &Part, first: usize, count: usize) -> Self {
        let time = START_MS.to_string();
        let mut words = vec!["TS.MADD".to_owned()];
        for at in first..first + count {
            words.extend([key(part.number(at)), time.clone(), "12.34".to_owned()]);
        }
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let mut bytes = Vec::new();
        encode_command(&mut bytes, &words);
        // Keys have the same length, so the triples have, too.
        let head = format!("*{}\r\n$7\r\nTS.MADD\r\n", words.len()).len();
        let stride = (bytes.len() - head) / count;
        let after_time = "\r\n$5\r\n".len() + VALUE_BYTES + "\r\n".len();
        Command {
            time_at: head + stride - after_time - TIME_BYTES,
            bytes,
            first,
            count,
            stride,
        }
    }

    fn write(&self, part: &mut Part, out: &mut Vec<u8>) {
        let mut at = out.len() + self.time_at;
        out.extend_from_slice(&self.bytes);
        let (mut timestamp_ms, mut time) = (0, [b'0'; TIME_BYTES]);
        for series in self.first..self.first + self.count {
            let (next_ms, value) = part.next(series);
            if next_ms != timestamp_ms {
                timestamp_ms = next_ms;
                time = digits(next_ms);
            }
            out[at..at + TIME_BYTES].copy_from_slice(&time);
            let value_at = at + TIME_BYTES + "\r\n$5\r\n".len();
            out[value_at..value_at + VALUE_BYTES].copy_from_slice(&text(value));
            at += self.stride;
        }
    }
}

/// A value in hundredths, from 10.00 to 99.99.
fn text(hundredths: u16) -> [u8; VALUE_BYTES] {
    let digit = |unit: u16| b'0' + (hundredths / unit % 10) as u8;
    [digit(1_000), digit(100), b'.', digit(10), digit(1)]
}

fn digits(timestamp_ms: i64) -> [u8; TIME_BYTES] {
    let mut digits = [b'0'; TIME_BYTES];
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(timestamp_ms).as_bytes();
    digits.copy_from_slice(&text[..TIME_BYTES]);
    digits
}
