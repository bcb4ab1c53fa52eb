//! History before the clock starts: many samples in order, fast, moved to disk, and left in peace
//! until nothing is left to do for it.

use std::time::Instant;

use latewood_wire::resp::encode_command;

use super::{Fixed, rest};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::load::{Load, Shape, Source};
use crate::workload::{Series, Writer};

/// Samples of one TS.MADD.
const BATCH_SAMPLES: u64 = 500;

/// A connection's series, filled one TS.MADD after the other, taking turns.
struct Filler {
    writer: Writer,
    /// Samples every series still gets.
    left: Vec<u64>,
    next: usize,
}

/// Sends `fixed.preload` samples of every series in order, each series through the connection
/// that writes it later, has the server move them to disk and waits until it rests: compaction of
/// the history is no part of what comes after it. Returns the writers.
///
/// # Errors
/// When the server goes away or refuses samples.
pub(super) fn run(address: &Address, writers: Vec<Writer>, fixed: &Fixed) -> Result<Vec<Writer>> {
    let shape = Shape {
        pipeline: 2,
        threads: fixed.threads,
        rate: 0.0,
    };
    let fillers = writers.into_iter().map(|writer| Filler {
        left: vec![fixed.preload; writer.series().len()],
        writer,
        next: 0,
    });
    let mut load = Load::connect(address, fillers.collect(), shape)?;
    let outcome = load.run(|_| ())?;
    let errors = outcome.errors.by_text();
    if let Some((text, count)) = errors.first() {
        return Err(Error::new(format!("preload: {count} x {text}")));
    }
    if let Some(why) = outcome.lost {
        return Err(Error::new(format!("the preload broke off: {why}")));
    }
    let mut control = Control::connect(address)?;
    control.run(&[b"SAVE"])?;
    rest::quiet(&mut control, Instant::now())?;
    Ok(load.into_sources().into_iter().map(|f| f.writer).collect())
}

impl Source for Filler {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let mut count = 0;
        while count < most {
            let at = self.next;
            self.next = (at + 1) % self.left.len();
            let samples = self.left[at].min(BATCH_SAMPLES);
            if samples == 0 {
                // Series stay level, so the first that has none left is the last.
                break;
            }
            self.left[at] -= samples;
            encode(self.writer.series_mut(at), samples, out);
            count += 1;
        }
        count
    }
}

fn encode(series: &mut Series, samples: u64, out: &mut Vec<u8>) {
    let mut words = vec![b"TS.MADD".to_vec()];
    for _ in 0..samples {
        let (timestamp_ms, value) = series.next_in_order();
        words.push(series.key().to_vec());
        words.push(timestamp_ms.to_string().into_bytes());
        words.push(zmij::Buffer::new().format_finite(value).into());
    }
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    encode_command(out, &words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{LateShape, writers};

    #[test]
    fn every_series_gets_the_same_number_in_order() {
        let keys = (0..3).map(|n| format!("k{n}")).collect();
        let writer = writers(keys, 1, (LateShape::Uniform, 0.9), 1).remove(0);
        let mut filler = Filler {
            left: vec![1_100; 3],
            writer,
            next: 0,
        };
        let mut out = Vec::new();
        let mut commands = 0;
        loop {
            match filler.fill(&mut out, 2) {
                0 => break,
                count => commands += count,
            }
        }
        assert_eq!(commands, 9);
        for series in filler.writer.series() {
            assert_eq!((series.sent(), series.distinct()), (1_100, 1_100));
        }
        assert!(out.starts_with(b"*1501\r\n$7\r\nTS.MADD\r\n$2\r\nk0\r\n$6\r\n100001\r\n"));
    }
}
