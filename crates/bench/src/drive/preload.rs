//! History before the clock starts: many samples in order, moved to disk, until the server rests.

use std::time::Instant;

use super::cell::Fixed;
use super::sender::{Say, Turns};
use super::wire;
use crate::base::address::Address;
use crate::base::control::{Control, encoded};
use crate::base::error::Result;
use crate::load::{Load, Shape};
use crate::workload::series::Writer;

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
    let filler = |writer: Writer| {
        let left = vec![fixed.preload; writer.series().len()];
        let commands = fixed.preload.div_ceil(BATCH_SAMPLES) * left.len() as u64;
        Turns {
            says: Filler {
                left,
                writer,
                next: 0,
            },
            left: commands,
        }
    };
    let mut load = Load::connect(address, writers.into_iter().map(filler).collect(), shape)?;
    load.run(|_| ())?.clean()?;
    let mut control = Control::connect(address)?;
    control.run("SAVE")?;
    wire::rest(&mut control, Instant::now())?;
    let sources = load.into_sources().into_iter();
    Ok(sources.map(|source| source.says.writer).collect())
}

impl Say for Filler {
    fn say(&mut self, out: &mut Vec<u8>) {
        let at = self.next;
        self.next = (at + 1) % self.left.len();
        let samples = self.left[at].min(BATCH_SAMPLES);
        self.left[at] -= samples;
        let mut command = "TS.MADD".to_owned();
        let series = self.writer.series_mut(at);
        for _ in 0..samples {
            let (timestamp_ms, value) = series.next_in_order();
            let mut text = zmij::Buffer::new();
            let (key, value) = (series.key(), text.format_finite(value));
            command += &format!(" {key} {timestamp_ms} {value}");
        }
        out.extend(encoded(&command));
    }
}
