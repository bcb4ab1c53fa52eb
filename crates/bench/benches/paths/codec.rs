//! Frames of a sensor: a sample every ten seconds, two digits behind the point.

use latewood_codec::{Encoder, FRAME_SAMPLES_MAX, Frame, Hint};

use super::{Anything, Path};

const FRAMES: usize = 8;
/// Samples of a run.
pub(super) const ITEMS: u64 = (FRAMES * FRAME_SAMPLES_MAX) as u64;

struct Samples {
    timestamps: Vec<i64>,
    values: Vec<f64>,
    encoder: Encoder,
    hint: Hint,
    bytes: Vec<u8>,
}

struct Encode(Samples);
struct Decode(Samples);

pub(super) fn encode() -> Anything<Box<dyn Path>> {
    Ok(Box::new(Encode(Samples::make()?)))
}

pub(super) fn decode() -> Anything<Box<dyn Path>> {
    Ok(Box::new(Decode(Samples::make()?)))
}

impl Samples {
    fn make() -> Anything<Self> {
        let count = ITEMS as i64;
        let mut samples = Samples {
            timestamps: (0..count)
                .map(|at| 1_700_000_000_000 + at * 10_000)
                .collect(),
            values: (0..count)
                .map(|at| 2_000.0 + ((at * 7919) % 401) as f64)
                .map(|hundredths| hundredths / 100.0)
                .collect(),
            encoder: Encoder::new(),
            hint: Hint::default(),
            bytes: Vec::new(),
        };
        samples.encode()?;
        Ok(samples)
    }

    fn encode(&mut self) -> Anything {
        self.bytes.clear();
        let timestamps = self.timestamps.chunks(FRAME_SAMPLES_MAX);
        for (timestamps, values) in timestamps.zip(self.values.chunks(FRAME_SAMPLES_MAX)) {
            let (hint, bytes) = (&mut self.hint, &mut self.bytes);
            self.encoder.encode(timestamps, values, hint, bytes)?;
        }
        Ok(())
    }
}

impl Path for Encode {
    fn run(&mut self) -> Anything<u64> {
        self.0.encode()?;
        Ok(self.0.bytes.len() as u64)
    }
}

impl Path for Decode {
    fn run(&mut self) -> Anything<u64> {
        let Samples {
            timestamps,
            values,
            bytes,
            ..
        } = &mut self.0;
        let (mut rest, mut sum) = (bytes.as_slice(), 0);
        while !rest.is_empty() {
            let (frame, len) = Frame::parse(rest)?;
            timestamps.clear();
            values.clear();
            frame.decode(timestamps, values)?;
            sum += timestamps.len() as u64;
            rest = &rest[len..];
        }
        Ok(sum)
    }
}
