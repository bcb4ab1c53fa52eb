//! The rows of range queries as replies: an array of rows, each a timestamp
//! and its values.
//!
//! Rows become reply bytes as the engine makes them; nothing is held but the
//! reply. How many there are is known at the end: the array's header, whose length is mostly right, is
//! replaced then. Rows that grow over the limit of a reply
//! end the query and become an error, and so do empty buckets that would, before
//! they are walked.

use super::exact;
use super::fault::Fault;
use super::reply_limit::ReplyLimit;
use crate::client::Part;
use latewood_engine::query::Sink;
use latewood_engine::{Cancelled, RangeQuery, View, is_cancelled};
use latewood_model::limits::FRAME_SAMPLES_MAX;
use latewood_wire::resp::{Protocol, Reply};
use std::ops::ControlFlow;

/// How the values of a row stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `[timestamp, value, value, ...]`
    Flat,
    /// `[timestamp, [value, value, ...]]`
    Nested,
    /// As flat; which NaN a value is, is told too, see [`super::exact`].
    Exact,
}

/// Bytes of a row of one value, mostly.
const USUAL_BYTES: usize = 32;
/// Bytes of the rows of a frame, at most.
const FRAME_BYTES: usize = FRAME_SAMPLES_MAX * (ROW_BYTES.1 + VALUE_BYTES.1);
/// The fewest and the most bytes of a row without its values, and of a value.
const ROW_BYTES: (u64, usize) = (8, 48);
const VALUE_BYTES: (u64, usize) = (4, 32);

/// Appends the rows that `query` gives to its sink. `about` estimates their number; 0 is unknown. A right
/// estimate saves copies of the reply. After an error `out` holds part of the rows, and so it does where
/// the work is `cancelled`.
pub(crate) fn append(
    out: &mut Vec<u8>,
    part: Part<'_>,
    shape: Shape,
    about: u64,
    query: impl FnOnce(&mut dyn Sink) -> latewood_engine::Result<()>,
) -> Result<(), Fault> {
    let limit = ReplyLimit::of(part.shared);
    let start = out.len();
    Reply::new(out, part.protocol).array(usize::try_from(about).unwrap_or(0));
    let room = start..out.len();
    if about > FRAME_SAMPLES_MAX as u64 {
        let usual = usize::try_from(about)
            .unwrap_or(usize::MAX)
            .saturating_mul(USUAL_BYTES);
        out.reserve(usual.saturating_add(FRAME_BYTES).min(limit.bytes));
    }
    let mut rows = Rows {
        end: start + limit.bytes,
        count: 0,
        refused: None,
        protocol: part.protocol,
        shape,
        cancelled: part.cancelled,
        out,
    };
    query(&mut rows)?;
    if let Some(count) = rows.refused {
        return Err(limit.fault(Some(count)));
    }
    let mut header = Vec::new();
    Reply::new(&mut header, part.protocol).array(rows.count);
    out.splice(room, header);
    Ok(())
}

/// Appends the rows that `query` gives of `view`, as [`append`].
pub(crate) fn of_view(
    out: &mut Vec<u8>,
    part: Part<'_>,
    shape: Shape,
    query: &RangeQuery,
    view: View,
) -> Result<(), Fault> {
    let is_filtered = query.filter_by_value.is_some() || query.filter_by_timestamps.is_some();
    let about = if is_filtered || query.aggregation.is_some() {
        0
    } else {
        view.samples_about(query)
    };
    append(out, part, shape, about, |sink| view.run(query, sink))
}

/// The fault of a query of the series under `key`, which is named where it is damaged or not on
/// this machine.
pub(crate) fn name_key(fault: Fault, key: &[u8]) -> Fault {
    match fault {
        Fault::Engine(error) if error.is_damage() || error.is_away() => Fault::about(error, key),
        fault => fault,
    }
}

/// Writes rows to a reply.
struct Rows<'a> {
    out: &'a mut Vec<u8>,
    /// Where the reply ends at the latest.
    end: usize,
    count: usize,
    /// It would be longer: how many rows it has at least.
    refused: Option<u64>,
    protocol: Protocol,
    shape: Shape,
    cancelled: Cancelled<'a>,
}

impl Rows<'_> {
    /// Makes room for `rows` rows. The buffer doubles as vectors do, but not past
    /// the end of the longest reply.
    fn make_room(&mut self, rows: usize, width: usize) {
        let (len, capacity) = (self.out.len(), self.out.capacity());
        let needed = len + rows * (ROW_BYTES.1 + width * VALUE_BYTES.1);
        if needed > capacity {
            let doubled = (2 * capacity).min(self.end);
            self.out.reserve_exact(doubled.max(needed) - len);
        }
    }

    fn refuse(&mut self, rows: u64) -> ControlFlow<()> {
        self.refused = Some(rows);
        ControlFlow::Break(())
    }
}

impl Sink for Rows<'_> {
    fn is_cancelled(&self) -> bool {
        is_cancelled(self.cancelled)
    }

    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        self.make_room(timestamps.len(), width);
        let mut reply = Reply::new(self.out, self.protocol);
        let rows = timestamps.iter().zip(values.chunks_exact(width.max(1)));
        match self.shape {
            Shape::Flat if width == 1 => {
                reply.samples(timestamps, values);
            }
            Shape::Flat => rows.for_each(|(timestamp, values)| {
                reply.array(1 + width);
                reply.integer(*timestamp);
                values.iter().for_each(|value| reply.double(*value));
            }),
            Shape::Exact => rows.for_each(|(timestamp, values)| {
                reply.array(1 + width);
                reply.integer(*timestamp);
                values
                    .iter()
                    .for_each(|value| exact::put(&mut reply, *value));
            }),
            Shape::Nested => rows.for_each(|(timestamp, values)| {
                reply.array(2);
                reply.integer(*timestamp);
                reply.array(width);
                values.iter().for_each(|value| reply.double(*value));
            }),
        }
        self.count += timestamps.len();
        if self.is_cancelled() {
            return ControlFlow::Break(());
        }
        if self.out.len() > self.end {
            self.refuse(self.count as u64)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn announce(&mut self, count: u64, width: usize) -> ControlFlow<()> {
        let row_bytes = ROW_BYTES.0 + width as u64 * VALUE_BYTES.0;
        let left = self.end.saturating_sub(self.out.len()) as u64;
        if count > left / row_bytes {
            self.refuse(count.saturating_add(self.count as u64))
        } else {
            ControlFlow::Continue(())
        }
    }
}
