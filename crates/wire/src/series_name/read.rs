//! Parses a key back into its metric and labels.

use super::{METRIC, Pair, SeriesName, is_plain};
use std::ops::Range;

impl SeriesName {
    /// Parses a key that [`SeriesName::finish`] made; false, and an empty name, for
    /// any other key.
    ///
    /// Linear in the bytes of the key.
    pub fn read(&mut self, key: &[u8]) -> bool {
        self.clear();
        // Writing it again must give the same text.
        let is_name = self.take(key).is_some() && self.finish().is_ok() && self.key == key;
        if !is_name {
            self.clear();
        }
        is_name
    }

    fn take(&mut self, key: &[u8]) -> Option<()> {
        let plain = key
            .iter()
            .position(|byte| *byte == b'{')
            .unwrap_or(key.len());
        let (metric, mut rest) = key.split_at(plain);
        if rest.is_empty() {
            self.begin(metric);
            return is_plain(metric).then_some(());
        }
        rest = rest.strip_prefix(b"{")?.strip_suffix(b"}")?;
        if metric.is_empty() {
            let value = self.unquote(&mut rest)?;
            let name = self.keep(METRIC);
            self.pairs.push(Pair { name, value });
            if rest.is_empty() {
                return Some(());
            }
            rest = rest.strip_prefix(b",")?;
        } else {
            self.begin(metric);
        }
        loop {
            let name = match rest.first()? {
                b'"' => self.unquote(&mut rest)?,
                _ => {
                    let end = memchr::memchr(b'=', rest)?;
                    let name = self.keep(&rest[..end]);
                    rest = &rest[end..];
                    name
                }
            };
            rest = rest.strip_prefix(b"=")?;
            let value = self.unquote(&mut rest)?;
            self.pairs.push(Pair { name, value });
            if rest.is_empty() {
                return Some(());
            }
            rest = rest.strip_prefix(b",")?;
        }
    }

    /// Takes the quoted text at the start of `rest`.
    fn unquote(&mut self, rest: &mut &[u8]) -> Option<Range<usize>> {
        let mut text = rest.strip_prefix(b"\"")?;
        let start = self.bytes.len();
        loop {
            let (&byte, after) = text.split_first()?;
            text = after;
            match byte {
                b'"' => break,
                b'\\' => {
                    let (&escaped, after) = text.split_first()?;
                    text = after;
                    self.bytes.push(match escaped {
                        b'n' => b'\n',
                        other => other,
                    });
                }
                byte => self.bytes.push(byte),
            }
        }
        *rest = text;
        Some(start..self.bytes.len())
    }
}
