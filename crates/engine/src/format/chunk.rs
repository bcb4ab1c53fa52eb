//! A chunk: a sequence of frames, about CHUNK_SIZE bytes.
//!
//! The last chunk of a series is open and grows frame by frame. A finished chunk is
//! shared behind an `Arc` and never changes, so readers need no lock. A directory
//! of the frames' first timestamps finds a frame without parsing the others.
//!
//! Invariants: frames are ascending and do not overlap; `first` and `last` are the
//! timestamps of the outermost samples; `count` is the sum over frames. Tested
//! through the series and by the model test.

use crate::base::error::{Error, ErrorKind, Result};
use latewood_codec::{Encoder, Frame, Hint};
use latewood_model::limits::FRAME_SAMPLES_MAX;
use latewood_model::{Encoding, Timestamp};
use std::ops::Deref;
use std::sync::Arc;

const LINE_BYTES: usize = 64;
/// Cache lines that hold the header and the timestamps of most frames.
const TIMESTAMP_LINES: usize = 5;

/// How the chunks of one series are cut and coded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) encoding: Encoding,
    pub(crate) chunk_size_bytes: u32,
}

impl Shape {
    /// Samples of a full frame.
    ///
    /// A compressed frame is at most about a quarter of its chunk at four
    /// bytes a sample; an uncompressed one fills its chunk.
    pub(crate) fn frame_samples(self) -> usize {
        let chunk_size_bytes = self.chunk_size_bytes as usize;
        match self.encoding {
            Encoding::Compressed => (chunk_size_bytes / 4).clamp(64, FRAME_SAMPLES_MAX),
            Encoding::Uncompressed => (chunk_size_bytes / 16).clamp(16, FRAME_SAMPLES_MAX),
        }
    }
}

/// The offset of a frame and its first timestamp.
#[derive(Clone, Copy, Debug)]
struct FrameRef {
    first: Timestamp,
    offset_bytes: u32,
}

/// A sequence of frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    first: Timestamp,
    last: Timestamp,
    count: usize,
    frames: Vec<FrameRef>,
    bytes: Vec<u8>,
}

impl Chunk {
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Timestamp of the oldest sample; meaningless while empty.
    pub(crate) fn first(&self) -> Timestamp {
        self.first
    }

    /// Timestamp of the newest sample; meaningless while empty.
    pub(crate) fn last(&self) -> Timestamp {
        self.last
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn frame_first(&self, index: usize) -> Timestamp {
        self.frames[index].first
    }

    pub(crate) fn frame(&self, index: usize) -> Result<Frame<'_>> {
        let (frame, _) = Frame::parse(self.frame_bytes(index)).map_err(damaged)?;
        Ok(frame)
    }

    fn frame_bytes(&self, index: usize) -> &[u8] {
        let start = self.frames[index].offset_bytes as usize;
        let end = self
            .frames
            .get(index + 1)
            .map_or(self.bytes.len(), |next| next.offset_bytes as usize);
        &self.bytes[start..end]
    }

    /// The frame that may hold `timestamp`: the last one that starts at or before
    /// it. Logarithmic in the frames.
    pub(crate) fn frame_at(&self, timestamp: Timestamp) -> Option<usize> {
        self.frames
            .partition_point(|frame| frame.first <= timestamp)
            .checked_sub(1)
    }

    /// Reads the memory that [`Chunk::frame_at`] and [`Chunk::touch_frame`] begin
    /// with.
    pub(crate) fn touch(&self) -> usize {
        self.frames.len() ^ self.bytes.len()
    }

    /// Reads the beginning of the frame that may hold `timestamp`: its header and
    /// as many bytes as most timestamps take.
    pub(crate) fn touch_frame(&self, timestamp: Timestamp) -> usize {
        let frame = self.frame_at(timestamp);
        let bytes = frame.map_or(&[][..], |index| self.frame_bytes(index));
        let lines = bytes.iter().step_by(LINE_BYTES).take(TIMESTAMP_LINES);
        lines.fold(0, |all, &byte| all ^ usize::from(byte))
    }

    /// The number of frames that begin at or before `to`.
    pub(crate) fn frames_to(&self, to: Timestamp) -> usize {
        self.frames.partition_point(|frame| frame.first <= to)
    }

    /// Whether a sample is stored at `timestamp`; decodes at most one restart
    /// block of timestamps.
    pub(crate) fn exists(&self, timestamp: Timestamp) -> Result<bool> {
        match self.frame_at(timestamp) {
            Some(index) => Frame::exists_in(self.frame_bytes(index), timestamp).map_err(damaged),
            None => Ok(false),
        }
    }

    /// The value stored at `timestamp`; decodes one frame.
    pub(crate) fn value_at(&self, timestamp: Timestamp) -> Result<Option<f64>> {
        if !self.exists(timestamp)? {
            return Ok(None);
        }
        let Some(index) = self.frame_at(timestamp) else {
            return Ok(None);
        };
        let frame = self.frame(index)?;
        let position = frame.lower_bound(timestamp).map_err(damaged)?;
        Ok(Some(frame.value_at(position).map_err(damaged)?))
    }

    /// Builds a chunk from its bytes: frames end to end. Parses their headers.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are empty or not frames, or if the frames do not
    /// ascend or begin before 1970.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        let mut start = 0;
        while start < bytes.len() {
            let (frame, len_bytes) = Frame::parse(&bytes[start..]).map_err(damaged)?;
            let (first, last) = (frame.first_timestamp(), frame.last_timestamp());
            if first < 0 {
                return Err(no_chunk("it begins before 1970"));
            }
            chunk.check_follows(first)?;
            if u32::try_from(start).is_err() {
                return Err(no_chunk("it is longer than 4 GiB"));
            }
            chunk.note_frame(start, first, last, frame.count());
            start += len_bytes;
        }
        if chunk.is_empty() {
            return Err(no_chunk("it is empty"));
        }
        chunk.frames.shrink_to_fit();
        chunk.bytes = bytes;
        Ok(chunk)
    }

    /// The frames end to end, as [`Chunk::from_bytes`] takes them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the encoded samples.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory the chunk holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.frames.capacity() * size_of::<FrameRef>() + self.bytes.capacity()
    }

    /// Encodes samples as the next frame.
    ///
    /// # Errors
    /// `Corrupt` if they do not ascend or are not newer than those of the chunk.
    pub(crate) fn push_samples(
        &mut self,
        encoder: &mut Encoder,
        shape: Shape,
        hint: &mut Hint,
        timestamps: &[Timestamp],
        values: &[f64],
    ) -> Result<()> {
        let (Some(&first), Some(&last)) = (timestamps.first(), timestamps.last()) else {
            return Ok(());
        };
        self.check_follows(first)?;
        let start = self.bytes.len();
        match shape.encoding {
            Encoding::Compressed => encoder.encode(timestamps, values, hint, &mut self.bytes),
            Encoding::Uncompressed => encoder.encode_raw(timestamps, values, &mut self.bytes),
        }
        .map_err(damaged)?;
        self.note_frame(start, first, last, timestamps.len());
        Ok(())
    }

    /// Copies frame `index` of `other` unchanged.
    ///
    /// # Errors
    /// `Corrupt` if it is not newer than the frames of the chunk.
    pub(crate) fn push_frame(&mut self, other: &Chunk, index: usize) -> Result<()> {
        let frame = other.frame(index)?;
        self.check_follows(frame.first_timestamp())?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(other.frame_bytes(index));
        self.note_frame(
            start,
            frame.first_timestamp(),
            frame.last_timestamp(),
            frame.count(),
        );
        Ok(())
    }

    /// The same timestamps with values of 0, for existence checks: it takes a
    /// fraction of the memory.
    pub(crate) fn without_values(&self) -> Result<Arc<Chunk>> {
        let mut bare = Chunk::default();
        for index in 0..self.frame_count() {
            let frame = self.frame(index)?;
            let start = bare.bytes.len();
            frame.put_without_values(&mut bare.bytes);
            let (first, last) = (frame.first_timestamp(), frame.last_timestamp());
            bare.note_frame(start, first, last, frame.count());
        }
        Ok(bare.finish())
    }

    /// Refuses a frame that does not follow: what is in files may be forged.
    fn check_follows(&self, first: Timestamp) -> Result<()> {
        if self.frames.is_empty() || first > self.last {
            Ok(())
        } else {
            Err(no_chunk("its frames do not ascend"))
        }
    }

    fn note_frame(&mut self, start: usize, first: Timestamp, last: Timestamp, count: usize) {
        if self.frames.is_empty() {
            self.first = first;
        }
        debug_assert!(self.frames.is_empty() || first > self.last);
        self.last = last;
        self.count += count;
        self.frames.push(FrameRef {
            first,
            // A chunk is closed at 1 MiB and a frame adds less than 32 KiB.
            offset_bytes: start as u32,
        });
    }

    /// Returns the finished chunk, which never changes again, and leaves `self`
    /// empty.
    pub(crate) fn finish(&mut self) -> Arc<Chunk> {
        let mut built = std::mem::take(self);
        built.frames.shrink_to_fit();
        built.bytes.shrink_to_fit();
        Arc::new(built)
    }
}

/// A chunk with its first timestamp beside it, so that a search among the chunks of
/// a series stays inside one array.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// As [`Chunk::first`].
    pub(crate) first: Timestamp,
    pub(crate) chunk: Arc<Chunk>,
}

impl From<Arc<Chunk>> for Held {
    fn from(chunk: Arc<Chunk>) -> Self {
        Self {
            first: chunk.first,
            chunk,
        }
    }
}

impl Deref for Held {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        &self.chunk
    }
}

/// Handles on the chunks of a series, for readers without the lock.
pub(crate) fn shared(held: &[Held]) -> Vec<Arc<Chunk>> {
    held.iter().map(|held| held.chunk.clone()).collect()
}

/// A frame in memory does not decode: a fault of the machine or of this code.
#[cold]
pub(crate) fn damaged(error: latewood_codec::Error) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a chunk is damaged: {error}"))
}

#[cold]
fn no_chunk(why: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a chunk is damaged: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk_of(frames: &[&[i64]]) -> Chunk {
        let shape = Shape {
            encoding: Encoding::Compressed,
            chunk_size_bytes: 4096,
        };
        let mut chunk = Chunk::default();
        for timestamps in frames {
            let values: Vec<f64> = timestamps.iter().map(|&t| t as f64 / 2.0).collect();
            chunk
                .push_samples(
                    &mut Encoder::new(),
                    shape,
                    &mut Hint::default(),
                    timestamps,
                    &values,
                )
                .unwrap();
        }
        chunk
    }

    #[test]
    fn finds_values_across_frames() {
        let chunk = chunk_of(&[&[10, 20, 35], &[40, 41], &[90]]);
        assert_eq!((chunk.first(), chunk.last(), chunk.count()), (10, 90, 6));
        for present in [10, 20, 35, 40, 41, 90] {
            assert!(chunk.exists(present).unwrap(), "{present}");
            let value = chunk.value_at(present).unwrap();
            assert_eq!(value, Some(present as f64 / 2.0));
        }
        for absent in [i64::MIN, 9, 11, 36, 42, 91, i64::MAX] {
            assert!(!chunk.exists(absent).unwrap(), "{absent}");
            assert_eq!(chunk.value_at(absent).unwrap(), None);
        }
    }

    #[test]
    fn without_values_it_knows_what_exists() {
        let chunk = chunk_of(&[&[10, 20, 35], &[40, 41], &[90]]);
        let bare = chunk.without_values().unwrap();
        assert_eq!((bare.first(), bare.last(), bare.count()), (10, 90, 6));
        for at in 0..100 {
            assert_eq!(bare.exists(at).unwrap(), chunk.exists(at).unwrap(), "{at}");
        }
        assert_eq!(bare.value_at(41).unwrap(), Some(0.0));
    }

    #[test]
    fn copied_frames_are_the_same_bytes() {
        let chunk = chunk_of(&[&[10, 20, 35], &[40, 41]]);
        let mut copy = Chunk::default();
        for index in 0..chunk.frame_count() {
            copy.push_frame(&chunk, index).unwrap();
        }
        assert_eq!(copy.bytes, chunk.bytes);
        assert_eq!(copy.count(), chunk.count());
        assert_eq!(copy.finish().last(), 41);
        assert!(copy.is_empty());
    }
    #[test]
    fn a_chunk_comes_back_from_its_bytes() {
        let chunk = chunk_of(&[&[10, 20, 35], &[40, 41], &[90]]);
        let again = Chunk::from_bytes(chunk.bytes().to_vec()).unwrap();
        assert_eq!((again.first(), again.last(), again.count()), (10, 90, 6));
        assert_eq!(again.frame_count(), 3);
        assert_eq!(again.value_at(41).unwrap(), Some(20.5));
        let bytes = chunk.bytes();
        let ends = [
            bytes.len(),
            again.frames[1].offset_bytes as usize,
            again.frames[2].offset_bytes as usize,
        ];
        for cut in 0..bytes.len() {
            let whole = Chunk::from_bytes(bytes[..cut].to_vec());
            assert_eq!(whole.is_ok(), ends.contains(&cut), "{cut}");
        }
        let twice = [bytes, bytes].concat();
        assert!(Chunk::from_bytes(twice).is_err());
        for first in [i64::MIN, -1] {
            let chunk = chunk_of(&[&[first, 20, 35]]);
            let error = Chunk::from_bytes(chunk.bytes().to_vec()).unwrap_err();
            assert!(error.to_string().contains("before 1970"), "{error}");
        }
    }
}
