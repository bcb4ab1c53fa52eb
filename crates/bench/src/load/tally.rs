//! Counting error replies by their text.

use std::collections::HashMap;

/// Texts kept apart; the rest is counted together, so that a server that puts a different number
/// into every error cannot fill the memory.
const TEXTS_MAX: usize = 64;
const REST: &[u8] = b"(other errors)";

/// Error texts and how often each came.
#[derive(Debug, Default)]
pub(crate) struct Tally(HashMap<Vec<u8>, u64>);

impl Tally {
    /// Counts one error line; the dash and the line end may be there.
    pub(crate) fn count(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"-").unwrap_or(line).trim_ascii_end();
        self.add(line, 1);
    }

    pub(crate) fn merge(&mut self, other: Tally) {
        for (text, count) in other.0 {
            self.add(&text, count);
        }
    }

    /// Texts and counts, the most frequent first.
    pub(crate) fn by_text(&self) -> Vec<(String, u64)> {
        let text = |(text, count): (&Vec<u8>, &u64)| (String::from_utf8_lossy(text).into(), *count);
        let mut all: Vec<(String, u64)> = self.0.iter().map(text).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }

    fn add(&mut self, text: &[u8], count: u64) {
        let is_kept = self.0.len() < TEXTS_MAX || self.0.contains_key(text);
        let text = if is_kept { text } else { REST };
        *self.0.entry(text.to_vec()).or_insert(0) += count;
    }
}
