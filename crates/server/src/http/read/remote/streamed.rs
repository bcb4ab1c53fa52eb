//! The answer as frames of chunks, series by series.

use crate::http::answer::Answer;
use crate::http::read::asked::Asked;
use crate::http::read::stream::{PIECE_BYTES, PIECE_TIME, Pieces};
use crate::http::read::walk::{Next, Walk};
use crate::observe::reads::add;
use latewood_wire::prometheus::read::frames::{FRAME_BYTES, FrameWriter};
use std::sync::Arc;
use std::time::Instant;

/// Frames under way.
pub(super) struct Frames {
    walk: Walk,
    writer: FrameWriter,
}

impl Frames {
    /// Frames of all that `walk` gives.
    pub(super) fn new(walk: Walk) -> Self {
        let writer = FrameWriter::new(FRAME_BYTES);
        Self { walk, writer }
    }
}

impl Pieces for Frames {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let counters = asked.counters();
        let started = Instant::now();
        while out.len() < PIECE_BYTES && started.elapsed() < PIECE_TIME {
            let part = match self.walk.next(asked)? {
                Next::Part(part) => part,
                Next::Nothing => continue,
                Next::End => return Ok(false),
            };
            if part.is_first {
                let labels = part.labels.bytes();
                self.writer.begin_series(part.number, labels);
                add(&counters.items, 1);
            }
            self.writer.samples(part.timestamps, part.values, out);
            if part.is_last {
                self.writer.end_series(out);
            }
            add(&counters.samples, part.timestamps.len());
        }
        Ok(true)
    }
}
