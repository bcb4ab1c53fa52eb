//! The response `STREAMED_XOR_CHUNKS`, frame by frame.
//!
//! A frame is the length of its message as a varint, the CRC-32C of the message in
//! four bytes, big endian, and the message: labels and chunks of one series, and
//! the index of the query. A series that does not fit one frame continues in the
//! next, with its labels repeated.

use super::chunk::{self, CHUNK_SAMPLES};
use super::{put_bytes, put_int, put_labels};
use crc_fast::crc32_iscsi;
use prost::encoding::encode_varint;

/// A frame's message of this many bytes takes no further chunk.
pub const FRAME_BYTES: usize = 1 << 20;
/// The number of the coding of [`chunk`].
const XOR: i64 = 1;

/// Builds frames, series by series.
#[derive(Clone, Debug, Default)]
pub struct FrameWriter {
    frame_bytes: usize,
    query: i64,
    /// The encoded labels, repeated in every frame.
    labels: Vec<u8>,
    /// Labels and chunks of the next frame.
    series: Vec<u8>,
    /// Samples of the next chunk.
    timestamps: Vec<i64>,
    values: Vec<f64>,
    data: Vec<u8>,
    chunk: Vec<u8>,
}

impl FrameWriter {
    /// Frames of about `frame_bytes`; one chunk and the labels may exceed it.
    pub fn new(frame_bytes: usize) -> Self {
        Self {
            frame_bytes,
            ..Self::default()
        }
    }

    /// Begins a series of query number `query`.
    pub fn begin_series<'a>(
        &mut self,
        query: usize,
        labels: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        // Queries are few.
        self.query = query as i64;
        self.labels.clear();
        put_labels(&mut self.labels, labels);
        self.series.clear();
        self.series.extend_from_slice(&self.labels);
    }

    /// Adds samples to the current series; full frames go to `out`.
    pub fn samples(&mut self, timestamps: &[i64], values: &[f64], out: &mut Vec<u8>) {
        let mut rest = (timestamps, values);
        while !rest.0.is_empty() {
            let room = CHUNK_SAMPLES - self.timestamps.len();
            let taken = room.min(rest.0.len());
            self.timestamps.extend_from_slice(&rest.0[..taken]);
            self.values.extend_from_slice(&rest.1[..taken]);
            rest = (&rest.0[taken..], &rest.1[taken..]);
            if self.timestamps.len() == CHUNK_SAMPLES {
                self.end_chunk();
                if self.series.len() >= self.frame_bytes {
                    self.end_frame(out);
                }
            }
        }
    }

    /// Ends the current series. A series without samples has no frame.
    pub fn end_series(&mut self, out: &mut Vec<u8>) {
        self.end_chunk();
        if self.series.len() > self.labels.len() {
            self.end_frame(out);
        }
    }

    fn end_chunk(&mut self) {
        let (Some(first), Some(last)) = (self.timestamps.first(), self.timestamps.last()) else {
            return;
        };
        self.data.clear();
        chunk::encode(&self.timestamps, &self.values, &mut self.data);
        self.chunk.clear();
        put_int(&mut self.chunk, 1, *first);
        put_int(&mut self.chunk, 2, *last);
        put_int(&mut self.chunk, 3, XOR);
        put_bytes(&mut self.chunk, 4, &self.data);
        put_bytes(&mut self.series, 2, &self.chunk);
        self.timestamps.clear();
        self.values.clear();
    }

    fn end_frame(&mut self, out: &mut Vec<u8>) {
        self.data.clear();
        put_bytes(&mut self.data, 1, &self.series);
        put_int(&mut self.data, 2, self.query);
        encode_varint(self.data.len() as u64, out);
        out.extend_from_slice(&crc32_iscsi(&self.data).to_be_bytes());
        out.extend_from_slice(&self.data);
        self.series.clear();
        self.series.extend_from_slice(&self.labels);
    }
}
