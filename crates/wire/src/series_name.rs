//! The key of a series from its metric and labels, and back.
//!
//! Protocols that name a series by labels send them in any order. A series has
//! one key, so that each protocol finds what another wrote:
//! `metric{name="value",...}`, labels sorted by the bytes of their names, values
//! escaped as in the Prometheus text format, and just `metric` without labels. A
//! name that would make the key ambiguous is quoted as in Prometheus 3:
//! `{"a metric","a label"="value"}`. Different label sets therefore have
//! different keys, and a key can be parsed back.
//!
//! A label with an empty value equals no label, as in Prometheus. The metric
//! itself is the label `__name__`.
//!
//! A [`SeriesName`] reuses its memory from series to series. Tested below and by
//! `fuzz/targets/series_name.rs`.

mod read;
#[cfg(test)]
mod tests;

use latewood_model::limits::{KEY_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX};
use std::ops::Range;

/// The label that holds the metric.
pub const METRIC: &[u8] = b"__name__";

/// The name of a series, built label by label.
#[derive(Clone, Debug, Default)]
pub struct SeriesName {
    bytes: Vec<u8>,
    pairs: Vec<Pair>,
    key: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Pair {
    name: Range<usize>,
    value: Range<usize>,
}

/// Why a metric and labels do not form a series name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The metric is empty.
    #[error("empty metric name")]
    NoMetric,
    /// A label name is empty.
    #[error("empty label name")]
    NoLabelName,
    /// A name or value is not UTF-8.
    #[error("{0:?} is not valid UTF-8")]
    NotUtf8(String),
    /// A label occurs twice.
    #[error("duplicate label {0:?}")]
    Doubled(String),
    /// More labels than a series may have.
    #[error("more than {LABELS_MAX} labels")]
    TooMany,
    /// More bytes than the labels of a series may take.
    #[error("the labels take more than {LABEL_BYTES_MAX} bytes")]
    TooLong,
    /// The key would be too long.
    #[error("the labels form a key of more than {KEY_BYTES_MAX} bytes")]
    KeyTooLong,
}

impl SeriesName {
    /// An empty name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a new name with `metric`.
    pub fn begin(&mut self, metric: &[u8]) {
        self.clear();
        let value = self.keep(metric);
        let name = self.keep(METRIC);
        self.pairs.push(Pair { name, value });
    }

    /// Adds a label; one with an empty value is ignored.
    pub fn label(&mut self, name: &[u8], value: &[u8]) {
        // One label over the limit is enough for `finish` to refuse.
        if value.is_empty() || self.pairs.len() > LABELS_MAX || self.bytes.len() > LABEL_BYTES_MAX {
            return;
        }
        let (name, value) = (self.keep(name), self.keep(value));
        self.pairs.push(Pair { name, value });
    }

    /// Checks and sorts the labels and writes the key.
    ///
    /// # Errors
    /// The metric or a label is invalid.
    pub fn finish(&mut self) -> Result<(), NameError> {
        self.check()?;
        let bytes = &self.bytes;
        self.pairs
            .sort_unstable_by(|a, b| bytes[a.name.clone()].cmp(&bytes[b.name.clone()]));
        let doubled = self
            .pairs
            .windows(2)
            .find(|two| bytes[two[0].name.clone()] == bytes[two[1].name.clone()]);
        if let Some(doubled) = doubled {
            return Err(NameError::Doubled(lossy(&bytes[doubled[0].name.clone()])));
        }
        self.write_key();
        if self.key.len() > KEY_BYTES_MAX {
            return Err(NameError::KeyTooLong);
        }
        Ok(())
    }

    /// The key, after [`SeriesName::finish`] or [`SeriesName::read`].
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The labels with `__name__`, by ascending name.
    pub fn labels(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|pair| {
            let name = &self.bytes[pair.name.clone()];
            (name, &self.bytes[pair.value.clone()])
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.pairs.clear();
        self.key.clear();
    }

    fn keep(&mut self, part: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        // A part over the limit is not kept: `finish` refuses it.
        let part = &part[..part.len().min(LABEL_BYTES_MAX + 1)];
        self.bytes.extend_from_slice(part);
        start..self.bytes.len()
    }

    fn check(&self) -> Result<(), NameError> {
        if self.pairs.len() > LABELS_MAX {
            return Err(NameError::TooMany);
        }
        // As `Labels` counts: two lengths per pair.
        if self.bytes.len() + 8 * self.pairs.len() > LABEL_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        for (name, value) in self.labels() {
            if name.is_empty() {
                return Err(NameError::NoLabelName);
            }
            if value.is_empty() {
                return Err(NameError::NoMetric);
            }
            for part in [name, value] {
                if std::str::from_utf8(part).is_err() {
                    return Err(NameError::NotUtf8(lossy(part)));
                }
            }
        }
        if self.pairs.is_empty() {
            return Err(NameError::NoMetric);
        }
        Ok(())
    }

    fn write_key(&mut self) {
        let Self { bytes, pairs, key } = self;
        key.clear();
        let metric = pairs
            .iter()
            .find(|pair| bytes[pair.name.clone()] == *METRIC)
            .map_or(&[][..], |pair| &bytes[pair.value.clone()]);
        let is_quoted = !is_plain(metric);
        if !is_quoted {
            key.extend_from_slice(metric);
        }
        if !is_quoted && pairs.len() == 1 {
            return;
        }
        key.push(b'{');
        if is_quoted {
            quote(key, metric);
        }
        let mut is_first = !is_quoted;
        for pair in pairs.iter() {
            let name = &bytes[pair.name.clone()];
            if name == METRIC {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                key.push(b',');
            }
            if is_plain(name) {
                key.extend_from_slice(name)
            } else {
                quote(key, name)
            }
            key.push(b'=');
            quote(key, &bytes[pair.value.clone()]);
        }
        key.push(b'}');
    }
}

/// Whether a name needs no quotes in a key.
fn is_plain(name: &[u8]) -> bool {
    let is_special = |byte: &u8| {
        *byte <= b' ' || *byte == 0x7f || matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b'=')
    };
    !name.iter().any(is_special)
}

fn quote(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'\n' => out.extend_from_slice(b"\\n"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cold]
fn lossy(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(100)];
    String::from_utf8_lossy(shown).into_owned()
}
