//! History before the clock starts: many samples in order, moved to disk, until the server rests.

use std::time::Instant;

use super::cell::Fixed;
use super::wire;
use crate::base::address::Address;
use crate::base::control::{Control, encoded};
use crate::base::error::Result;
use crate::load::{Load, Shape, Source};
use crate::workload::series::{Series, Writer};

const BATCH_SAMPLES: u64 = 500;

/// A connection's series, filled one TS.MADD after the other, taking turns.
struct Filler {
    writer: Writer,
    left: Vec<u64>,
    next: usize,
}

/// Sends `fixed.preload` samples of every series in order through the connection that writes it
/// later, and waits until the server has them on disk and rests. Returns the writers.
pub(super) fn run(address: &Address, writers: Vec<Writer>, fixed: &Fixed) -> Result<Vec<Writer>> {
    let shape = Shape {
        threads: fixed.threads,
        ..Shape::pipelined(2)
    };
    let fillers = writers.into_iter().map(|writer| Filler {
        left: vec![fixed.preload; writer.series().len()],
        writer,
        next: 0,
    });
    let mut load = Load::connect(address, fillers.collect(), shape)?;
    load.run(|_| ())?.clean()?;
    let mut control = Control::connect(address)?;
    control.run("SAVE")?;
    wire::rest(&mut control, Instant::now())?;
    Ok(load.into_sources().into_iter().map(|f| f.writer).collect())
}

impl Source for Filler {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        for count in 0..most {
            let at = self.next;
            self.next = (at + 1) % self.left.len();
            let samples = self.left[at].min(BATCH_SAMPLES);
            if samples == 0 {
                // Series stay level, so the first that has none left is the last.
                return count;
            }
            self.left[at] -= samples;
            encode(self.writer.series_mut(at), samples, out);
        }
        most
    }
}

fn encode(series: &mut Series, samples: u64, out: &mut Vec<u8>) {
    let mut command = "TS.MADD".to_owned();
    for _ in 0..samples {
        let (timestamp_ms, value) = series.next_in_order();
        let mut text = zmij::Buffer::new();
        let (key, value) = (series.key(), text.format_finite(value));
        command += &format!(" {key} {timestamp_ms} {value}");
    }
    out.extend(encoded(&command));
}
