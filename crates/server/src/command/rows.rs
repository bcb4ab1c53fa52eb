//! The rows of range queries as replies: an array of rows, each a timestamp
//! and its values.
//!
//! Rows become reply bytes as the engine makes them; nothing is held but the
//! reply. How many there are is known at the end: room for the array's header
//! is left in front and closed then. Rows that grow over the limit of a reply
//! end the query and become an error.

use super::Fault;
use crate::observe::Limit;
use latewood_engine::query::Sink;
use latewood_model::limits::REPLY_BYTES_MAX;
use latewood_wire::resp::{Protocol, Reply};
use std::ops::ControlFlow;

/// How the values of a row stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `[timestamp, value, value, ...]`
    Flat,
    /// `[timestamp, [value, value, ...]]`
    Nested,
}

/// Bytes of the longest header of an array that [`REPLY_BYTES_MAX`] allows.
const HEADER_BYTES_MAX: usize = 16;

/// Appends the rows that `query` gives to its sink. After an error `out` holds
/// part of them.
pub(crate) fn append(
    out: &mut Vec<u8>,
    protocol: Protocol,
    shape: Shape,
    query: impl FnOnce(&mut dyn Sink) -> latewood_engine::Result<()>,
) -> Result<(), Fault> {
    let start = out.len();
    let room = start + HEADER_BYTES_MAX;
    out.resize(room, 0);
    let mut rows = Rows {
        start,
        count: 0,
        overflowed: false,
        protocol,
        shape,
        out,
    };
    query(&mut rows)?;
    if rows.overflowed {
        let text = "ERR TSDB: the reply is longer than 1 GiB; ask for a shorter span or use COUNT";
        return Err(Fault::Limit(Limit::Reply, text.into()));
    }
    let mut header = Vec::with_capacity(HEADER_BYTES_MAX);
    Reply::new(&mut header, protocol).array(rows.count);
    let begin = start + header.len();
    out.copy_within(room.., begin);
    out.truncate(out.len() - (room - begin));
    out[start..begin].copy_from_slice(&header);
    Ok(())
}

/// Writes rows to a reply.
struct Rows<'a> {
    out: &'a mut Vec<u8>,
    /// Where the reply begins.
    start: usize,
    count: usize,
    overflowed: bool,
    protocol: Protocol,
    shape: Shape,
}

impl Sink for Rows<'_> {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        let mut reply = Reply::new(self.out, self.protocol);
        let rows = timestamps.iter().zip(values.chunks_exact(width.max(1)));
        match self.shape {
            Shape::Flat if width == 1 => {
                let rows = timestamps.iter().zip(values);
                rows.for_each(|(timestamp, value)| reply.sample(*timestamp, *value));
            }
            Shape::Flat => rows.for_each(|(timestamp, values)| {
                reply.array(1 + width);
                reply.integer(*timestamp);
                values.iter().for_each(|value| reply.double(*value));
            }),
            Shape::Nested => rows.for_each(|(timestamp, values)| {
                reply.array(2);
                reply.integer(*timestamp);
                reply.array(width);
                values.iter().for_each(|value| reply.double(*value));
            }),
        }
        self.count += timestamps.len();
        if self.out.len() - self.start > REPLY_BYTES_MAX {
            self.overflowed = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
