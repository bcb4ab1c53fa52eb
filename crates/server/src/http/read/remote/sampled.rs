//! The answer as one message with every sample.

use crate::http::answer::Answer;
use crate::http::read::asked::Asked;
use crate::http::read::figures::add;
use crate::http::read::walk::Walk;
use latewood_wire::prometheus::read::SamplesAnswer;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples of one message.
const SAMPLES_MAX: usize = 5_000_000;
/// Bytes of one message before it is compressed.
const MESSAGE_BYTES_MAX: usize = 128 << 20;
/// Bytes of it that memory is asked for at a time.
const STEP_BYTES: usize = 4 << 20;

/// The message, compressed. Ends early, with nothing of use, once `left` says
/// that the reader is gone.
///
/// # Errors
/// 400 where it would hold too much, 503 where other requests take the memory.
pub(super) fn message(
    asked: &Asked,
    mut walk: Walk,
    queries: usize,
    left: &AtomicBool,
) -> Result<Vec<u8>, Answer> {
    let counters = asked.counters();
    let mut answer = SamplesAnswer::new();
    let (mut query, mut samples) = (0, 0);
    // The message and what it is compressed to.
    let (mut granted, mut memory) = (0, Vec::new());
    while let Some(part) = walk.next(asked)? {
        if left.load(Ordering::Relaxed) {
            add(&counters.cancelled, 1);
            return Ok(Vec::new());
        }
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
                 ask for a shorter span or fewer series, or accept STREAMED_XOR_CHUNKS"
            )));
        }
        while 2 * answer.len_bytes() > granted {
            memory.push(asked.context.work.memory(STEP_BYTES)?);
            granted += STEP_BYTES;
        }
    }
    for _ in query..queries {
        answer.end_query();
    }
    let message = answer.finish();
    let compressed = snap::raw::Encoder::new().compress_vec(&message);
    let compressed = compressed.map_err(|error| {
        let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
        Answer::new(status, format!("the answer does not compress: {error}"))
    })?;
    add(&counters.samples, samples);
    add(&counters.bytes, compressed.len());
    Ok(compressed)
}
