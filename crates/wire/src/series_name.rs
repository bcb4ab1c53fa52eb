//! From a metric and its labels to the one key of a series, and back.
//!
//! Protocols that name a series by labels send them in any order. A series
//! must have one key all the same, so that each of them finds what another
//! wrote: `metric{name="value",...}`, labels sorted by the bytes of their
//! names, values escaped as in the Prometheus text format, and just `metric`
//! without labels. A name that would make the key ambiguous is quoted as in
//! Prometheus 3: `{"a metric","a label"="value"}`. So two sets of labels have
//! the same key only where they are the same, and a key can be read back.
//!
//! A label with an empty value is the same as no label, as in Prometheus. The
//! metric itself is the label `__name__`.
//!
//! The memory of a [`SeriesName`] is used again from series to series. Tested
//! below and by `fuzz/targets/series_name.rs`.

mod read;
#[cfg(test)]
mod tests;

use latewood_model::limits::{KEY_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX};
use std::ops::Range;

/// The label that holds the metric.
pub const METRIC: &[u8] = b"__name__";

/// The name of a series, put together label by label.
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

/// Why a metric and labels are not the name of a series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no metric.
    #[error("the metric has no name")]
    NoMetric,
    /// A label has no name.
    #[error("a label has no name")]
    NoLabelName,
    /// This is no text.
    #[error("{0:?} is not valid UTF-8")]
    NotUtf8(String),
    /// A label is there twice.
    #[error("the label {0:?} is there twice")]
    Doubled(String),
    /// More labels than a series may have.
    #[error("more than {LABELS_MAX} labels")]
    TooMany,
    /// More bytes than the labels of a series may take.
    #[error("the labels take more than {LABEL_BYTES_MAX} bytes")]
    TooLong,
    /// A longer key than a series may have.
    #[error("the labels make a key of more than {KEY_BYTES_MAX} bytes")]
    KeyTooLong,
}

impl SeriesName {
    /// No name yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets what was there and begins with `metric`.
    pub fn begin(&mut self, metric: &[u8]) {
        self.clear();
        let value = self.keep(metric);
        let name = self.keep(METRIC);
        self.pairs.push(Pair { name, value });
    }

    /// Adds a label; one with an empty value is none.
    pub fn label(&mut self, name: &[u8], value: &[u8]) {
        // One more than is allowed tells `finish` enough.
        if value.is_empty() || self.pairs.len() > LABELS_MAX || self.bytes.len() > LABEL_BYTES_MAX {
            return;
        }
        let (name, value) = (self.keep(name), self.keep(value));
        self.pairs.push(Pair { name, value });
    }

    /// Checks and sorts the labels and writes the key.
    ///
    /// # Errors
    /// What is wrong with the metric or a label.
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
        // A part over the limit is not kept whole: `finish` refuses it.
        let part = &part[..part.len().min(LABEL_BYTES_MAX + 1)];
        self.bytes.extend_from_slice(part);
        start..self.bytes.len()
    }

    fn check(&self) -> Result<(), NameError> {
        if self.pairs.len() > LABELS_MAX {
            return Err(NameError::TooMany);
        }
        // As the labels of a series are counted: two lengths beside each pair.
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
            match is_plain(name) {
                true => key.extend_from_slice(name),
                false => quote(key, name),
            }
            key.push(b'=');
            quote(key, &bytes[pair.value.clone()]);
        }
        key.push(b'}');
    }
}

/// Whether a name stands in a key as it is.
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
