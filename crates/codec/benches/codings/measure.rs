//! Encodes, decodes and searches a series under one pair of codings.

use crate::data::Series;
use crate::frames;
use latewood_codec::{Encoder, Frame, Hint, TimestampCoding, ValueCoding};
use std::hint::black_box;
use std::time::Instant;

/// Rounds of each measurement; the best counts.
const ROUNDS: usize = 9;

/// What to encode with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Codings {
    Fixed(TimestampCoding, ValueCoding),
    Chosen,
}

/// One line of a table.
pub(crate) struct Row {
    pub(crate) data: String,
    pub(crate) is_real: bool,
    pub(crate) part: &'static str,
    pub(crate) coding: String,
    /// Bytes a value or a timestamp, statistics and header included.
    pub(crate) bytes: f64,
    pub(crate) encode_ns: f64,
    pub(crate) decode_ns: f64,
    pub(crate) exists_ns: Option<f64>,
}

/// Values of `series` over regular timestamps; `None` if the coding cannot hold them.
pub(crate) fn values(series: &Series, codings: Codings) -> Option<Row> {
    let count = series.values.len();
    let regular = Series {
        timestamps: (0..count as i64).map(|i| i * 10_000).collect(),
        ..series.clone()
    };
    let encoded = encode(&regular, codings)?;
    let bytes: usize = each_frame(&encoded.bytes)
        .map(|frame| frame.values_len_bytes())
        .sum();
    let coding = match codings {
        Codings::Fixed(_, value) => format!("{value:?}"),
        Codings::Chosen => "frame".to_owned(),
    };
    Some(row(series, "values", coding, bytes, &encoded))
}

/// Timestamps of `series` under a constant value, so that they are most of the frame.
pub(crate) fn timestamps(series: &Series, codings: Codings) -> Option<Row> {
    let constant = Series {
        values: vec![1.0; series.timestamps.len()],
        ..series.clone()
    };
    let encoded = encode(&constant, codings)?;
    let value_bytes: usize = each_frame(&encoded.bytes)
        .map(|frame| frame.values_len_bytes())
        .sum();
    let coding = match codings {
        Codings::Fixed(time, _) => format!("{time:?}"),
        Codings::Chosen => "frame".to_owned(),
    };
    let mut row = row(
        series,
        "timestamps",
        coding,
        encoded.bytes.len() - value_bytes,
        &encoded,
    );
    row.exists_ns = Some(exists_ns(series, &encoded.bytes));
    Some(row)
}

struct Encoded {
    bytes: Vec<u8>,
    samples: usize,
    encode_ns: f64,
}

fn row(
    series: &Series,
    part: &'static str,
    coding: String,
    bytes: usize,
    encoded: &Encoded,
) -> Row {
    Row {
        data: series.name.clone(),
        is_real: series.is_real,
        part,
        coding,
        bytes: bytes as f64 / encoded.samples as f64,
        encode_ns: encoded.encode_ns,
        decode_ns: decode_ns(&encoded.bytes, encoded.samples),
        exists_ns: None,
    }
}

fn encode(series: &Series, codings: Codings) -> Option<Encoded> {
    let (mut encoder, mut bytes, mut best) = (Encoder::new(), Vec::new(), f64::INFINITY);
    let samples = frames(series).map(|(times, _)| times.len()).sum();
    for _ in 0..ROUNDS {
        bytes.clear();
        let mut hint = Hint::default();
        let start = Instant::now();
        for (timestamps, values) in frames(series) {
            let written = match codings {
                Codings::Chosen => encoder.encode(timestamps, values, &mut hint, &mut bytes),
                Codings::Fixed(time, value) => {
                    encoder.encode_as(timestamps, values, time, value, &mut bytes)
                }
            };
            written.ok()?;
        }
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    black_box(&bytes);
    Some(Encoded {
        bytes,
        samples,
        encode_ns: best / samples as f64,
    })
}

fn decode_ns(bytes: &[u8], samples: usize) -> f64 {
    let (mut timestamps, mut values, mut best) = (
        Vec::with_capacity(512),
        Vec::with_capacity(512),
        f64::INFINITY,
    );
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for frame in each_frame(bytes) {
            timestamps.clear();
            values.clear();
            frame
                .decode(&mut timestamps, &mut values)
                .expect("the encoder wrote this frame");
            black_box((&timestamps, &values));
        }
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    best / samples as f64
}

/// Mean time of one `exists`, the frame's header parsed anew each time.
fn exists_ns(series: &Series, bytes: &[u8]) -> f64 {
    let mut starts = vec![0];
    while let Some(last) = starts.last().copied().filter(|last| *last < bytes.len()) {
        let (_, len) = Frame::parse(&bytes[last..]).expect("the encoder wrote this frame");
        starts.push(last + len);
    }
    starts.pop();
    let probes: Vec<(usize, i64)> = (0..20_000usize)
        .map(|i| {
            let index = i.wrapping_mul(2_654_435_761) % (starts.len() * 512);
            (index / 512, series.timestamps[index] + (i & 1) as i64)
        })
        .collect();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut found = 0usize;
        for (frame, t) in &probes {
            let (frame, _) =
                Frame::parse(&bytes[starts[*frame]..]).expect("the encoder wrote this frame");
            found += usize::from(frame.exists(*t).expect("the encoder wrote this frame"));
        }
        best = best.min(start.elapsed().as_nanos() as f64);
        assert!(found >= probes.len() / 2, "half of the probes exist");
    }
    best / probes.len() as f64
}

fn each_frame(mut bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        let (frame, len) = Frame::parse(bytes).ok()?;
        bytes = &bytes[len..];
        Some(frame)
    })
}
