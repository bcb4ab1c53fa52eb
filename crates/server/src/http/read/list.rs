//! Lists in the envelope of Prometheus' HTTP API.

use super::asked::Asked;
use super::stream::{PIECE_BYTES, Pieces};
use crate::http::answer::Answer;
use crate::observe::reads::add;
use std::sync::Arc;

/// `{"status":"success","data":[...]}`, where not all items are given with
/// `"warnings"` that says so.
pub(super) struct List<T> {
    items: std::vec::IntoIter<T>,
    write: fn(&T, &mut Vec<u8>),
    is_begun: bool,
    is_cut: bool,
}

impl<T> List<T> {
    /// The first `limit` of `items`.
    pub(super) fn new(
        mut items: Vec<T>,
        limit: Option<usize>,
        write: fn(&T, &mut Vec<u8>),
    ) -> Self {
        let limit = limit.unwrap_or(usize::MAX);
        let is_cut = items.len() > limit;
        items.truncate(limit);
        Self {
            items: items.into_iter(),
            write,
            is_begun: false,
            is_cut,
        }
    }
}

impl<T: Send + 'static> Pieces for List<T> {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let mut is_first = !std::mem::replace(&mut self.is_begun, true);
        if is_first {
            out.extend_from_slice(b"{\"status\":\"success\",\"data\":[");
        }
        let before = self.items.len();
        while out.len() < PIECE_BYTES {
            let Some(item) = self.items.next() else {
                break;
            };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            (self.write)(&item, out);
        }
        add(&asked.counters().items, before - self.items.len());
        let follows = self.items.len() > 0;
        if !follows {
            let end: &[u8] = if self.is_cut {
                b"],\"warnings\":[\"results truncated due to limit\"]}\n"
            } else {
                b"]}\n"
            };
            out.extend_from_slice(end);
        }
        Ok(follows)
    }
}

/// Appends a text as JSON has it.
pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    // Writing to memory cannot fail, and every text is one in JSON.
    let _ = serde_json::to_writer(out, text);
}
