//! The series of an instant query's result, written piece by piece: also one alone may be long.

use super::json::{put_metric, put_sample};
use latewood_promql::engine::Pairs;
use latewood_promql::labels::Labels;

/// Series that are not written yet.
pub(super) struct Rows {
    rows: std::vec::IntoIter<Row>,
    /// The one that is being written, and its next sample.
    current: Option<(Pairs, usize)>,
}

/// A series.
pub(super) enum Row {
    Sample(Labels, (i64, f64)),
    Samples(Labels, Pairs),
}

impl Rows {
    /// Nothing is written yet.
    pub(super) fn new(rows: Vec<Row>) -> Self {
        Self {
            rows: rows.into_iter(),
            current: None,
        }
    }

    /// Appends to `out` until it has `bytes_max`. `begins` is asked before each series whether it
    /// is written, and puts what stands between two. Whether there are no more, and how many
    /// samples were written.
    pub(super) fn put(
        &mut self,
        out: &mut Vec<u8>,
        bytes_max: usize,
        mut begins: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> (bool, usize) {
        let mut samples = 0;
        while out.len() < bytes_max {
            if self.current.is_some() {
                samples += self.go_on(out, bytes_max);
                continue;
            }
            match self.rows.next() {
                None => return (true, samples),
                Some(_) if !begins(out) => {}
                Some(Row::Sample(labels, (time_ms, value))) => {
                    put_metric(&labels, out);
                    out.extend_from_slice(b",\"value\":");
                    put_sample(time_ms, value, out);
                    out.push(b'}');
                    samples += 1;
                }
                Some(Row::Samples(labels, pairs)) => {
                    put_metric(&labels, out);
                    out.extend_from_slice(b",\"values\":[");
                    self.current = Some((pairs, 0));
                }
            }
        }
        (false, samples)
    }

    /// Appends samples of the current series, and its end where there are no more.
    fn go_on(&mut self, out: &mut Vec<u8>, bytes_max: usize) -> usize {
        let Some((pairs, next)) = &mut self.current else {
            return 0;
        };
        let first = *next;
        while *next < pairs.len() && out.len() < bytes_max {
            if *next > 0 {
                out.push(b',');
            }
            let (time_ms, value) = pairs[*next];
            put_sample(time_ms, value, out);
            *next += 1;
        }
        let written = *next - first;
        if *next == pairs.len() {
            out.extend_from_slice(b"]}");
            self.current = None;
        }
        written
    }
}

impl Row {
    /// Bytes of memory that it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        let (labels, samples) = match self {
            Self::Sample(labels, _) => (labels, 0),
            Self::Samples(labels, samples) => (labels, samples.capacity()),
        };
        size_of::<Self>() + labels.len_bytes() + samples * size_of::<(i64, f64)>()
    }
}
