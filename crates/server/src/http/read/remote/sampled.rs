//! The answer as one message with every sample.
//!
//! It is made whole and sent in pieces, as its reader takes them: until the last
//! is taken it counts among the memory of readers.

use crate::http::answer::Answer;
use crate::http::permits;
use crate::http::read::asked::Asked;
use crate::http::read::stream::{PIECE_BYTES, Pieces};
use crate::http::read::walk::{Next, Walk};
use crate::observe::reads::add;
use latewood_wire::prometheus::read::SamplesAnswer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::OwnedSemaphorePermit;

/// Samples of one message.
const SAMPLES_MAX: usize = 5_000_000;
/// Bytes of one message before it is compressed.
const MESSAGE_BYTES_MAX: usize = 128 << 20;
/// Bytes of it that memory is asked for at a time.
const STEP_BYTES: usize = 4 << 20;

/// A message, compressed, with the memory that was given out for it.
pub(super) struct Message {
    bytes: Vec<u8>,
    sent: usize,
    _memory: OwnedSemaphorePermit,
}

impl Message {
    pub(super) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl Pieces for Message {
    fn more(&mut self, _: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let rest = &self.bytes[self.sent..];
        let piece = &rest[..rest.len().min(PIECE_BYTES)];
        out.extend_from_slice(piece);
        self.sent += piece.len();
        Ok(self.sent < self.bytes.len())
    }
}

/// Makes the message. Ends early, with nothing of use, once the reader is gone.
///
/// # Errors
/// 400 where it would hold too much, 503 where other requests take the memory.
pub(super) fn message(asked: &Asked, mut walk: Walk, queries: usize) -> Result<Message, Answer> {
    let counters = asked.counters();
    let mut answer = SamplesAnswer::new();
    let (mut query, mut samples) = (0, 0);
    // The message and what it is compressed to.
    let mut memory = asked.permits().memory(STEP_BYTES)?;
    let mut granted = STEP_BYTES;
    loop {
        if asked.unwanted().load(Ordering::Relaxed) {
            add(&counters.cancelled, 1);
            return compressed(SamplesAnswer::new(), memory);
        }
        let part = match walk.next(asked)? {
            Next::Part(part) => part,
            Next::Nothing => continue,
            Next::End => break,
        };
        while query < part.number {
            answer.end_query();
            query += 1;
        }
        if part.is_first {
            answer.begin_series(part.labels.bytes());
            add(&counters.items, 1);
        }
        answer.samples(part.timestamps, part.values);
        if part.is_last {
            answer.end_series();
        }
        samples += part.timestamps.len();
        if samples > SAMPLES_MAX || answer.len_bytes() > MESSAGE_BYTES_MAX {
            return Err(Answer::bad(format!(
                "the answer is more than {SAMPLES_MAX} samples or {MESSAGE_BYTES_MAX} bytes: \
                 request a shorter time range or fewer series, or accept STREAMED_XOR_CHUNKS"
            )));
        }
        while 2 * answer.len_bytes() > granted {
            memory.merge(asked.permits().memory(STEP_BYTES)?);
            granted += STEP_BYTES;
        }
    }
    for _ in query..queries {
        answer.end_query();
    }
    add(&counters.samples, samples);
    compressed(answer, memory)
}

fn compressed(answer: SamplesAnswer, mut memory: OwnedSemaphorePermit) -> Result<Message, Answer> {
    let compressed = snap::raw::Encoder::new().compress_vec(&answer.finish());
    let mut bytes = compressed.map_err(|error| {
        let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
        Answer::new(status, format!("cannot compress the answer: {error}"))
    })?;
    bytes.shrink_to_fit();
    permits::shrink(&mut memory, bytes.len());
    Ok(Message {
        bytes,
        sent: 0,
        _memory: memory,
    })
}
