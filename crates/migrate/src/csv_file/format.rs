//! Lines of a CSV file of samples.
//!
//! `key,timestamp,value` followed, in any order, by labels as `name=value` and options as
//! `@name=value`. A backslash escapes `=`, `@` and itself. Timestamp and value are both empty in a
//! line that only declares a series. The line `key,timestamp,value` is a heading and is ignored.
//! Fields are bytes: keys and labels need not be text. Quoting is that of CSV; the reader finds a
//! quote that is open at the end of the file by a line which it adds there.

use crate::samples::Sample;
use crate::series::{Ignore, Rule, Shape};
use crate::value::{parse_value, value_text};
use csv::ByteRecord;
use std::io::{Chain, Read};

/// The heading, written by export and ignored by import.
pub(crate) const HEADING: [&str; 3] = ["key", "timestamp", "value"];

/// Follows the end of each file: a line of its own, unless a quote is still open there.
const END: &[u8] = b"\n\0end of file\0";

pub(crate) fn reader<R: Read>(file: R) -> csv::Reader<Chain<R, &'static [u8]>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(file.chain(END))
}

/// The number of lines of a record, of which a field in quotes can have several.
pub(crate) fn lines_of(record: &ByteRecord) -> u64 {
    let text = record.as_slice();
    match text.strip_suffix(END) {
        Some(text) => 1 + breaks(text.strip_suffix(b"\n").unwrap_or(text)),
        None => 1 + breaks(text),
    }
}

fn breaks(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The line of the quote that is open at the end of the file, if this record has one.
fn open_quote(record: &ByteRecord) -> Option<u64> {
    let last = record.iter().next_back()?;
    let before = record.as_slice().strip_suffix(last)?;
    let begin = record.position().map_or(0, csv::Position::line);
    last.ends_with(END).then(|| begin + breaks(before))
}

/// The description of a series in a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Described {
    pub(crate) shape: Shape,
    pub(crate) rules: Vec<Rule>,
    /// Milliseconds since 1970.
    pub(crate) expires_ms: Option<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) key: Vec<u8>,
    pub(crate) sample: Option<Sample>,
    /// `None` if the line has no fields after the value, or a wrong one.
    pub(crate) described: Option<Described>,
    /// What is wrong with the fields after the value: the sample is valid all the same.
    pub(crate) wrong: Option<String>,
}

impl Line {
    /// Parses a record; `None` for the heading and the end of the file.
    ///
    /// # Errors
    /// The invalid field.
    pub(crate) fn parse(record: &ByteRecord) -> Result<Option<Self>, String> {
        if record.iter().eq(HEADING.map(str::as_bytes)) || record.iter().eq([&END[1..]]) {
            return Ok(None);
        }
        if let Some(line) = open_quote(record) {
            return Err(format!("the quote opened in line {line} is not closed"));
        }
        let field = |at: usize, name: &str| record.get(at).ok_or_else(|| format!("missing {name}"));
        let key = field(0, "key")?;
        if record.iter().all(<[u8]>::is_empty) {
            // A blank row of a spreadsheet, although an empty key is valid.
            return Err("all fields are empty".to_owned());
        }
        let (timestamp, value) = (field(1, "timestamp")?, field(2, "value")?);
        let sample = match (timestamp.is_empty(), value.is_empty()) {
            (true, true) => None,
            _ => Some(Sample {
                timestamp: parse_timestamp(timestamp)?,
                value: parse_value(value)
                    .ok_or_else(|| format!("{} is not a value", crate::error::shown(value)))?,
            }),
        };
        let mut described = Described::default();
        let wrong = record
            .iter()
            .skip(3)
            .find_map(|it| described.read(it).err());
        Ok(Some(Self {
            key: key.to_vec(),
            sample,
            described: (record.len() > 3 && wrong.is_none()).then_some(described),
            wrong,
        }))
    }

    pub(crate) fn sample(key: &[u8], sample: &Sample, record: &mut ByteRecord) {
        record.clear();
        record.push_field(key);
        record.push_field(sample.timestamp.to_string().as_bytes());
        record.push_field(value_text(sample.value).as_bytes());
    }
}

impl Described {
    /// Whether all that a later line says of the series is said here.
    pub(crate) fn covers(&self, later: &Self) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, later: &Option<T>) -> bool {
            later.is_none() || one == later
        }
        let (one, two) = (&self.shape, &later.shape);
        same(&one.retention_ms, &two.retention_ms)
            && same(&one.chunk_size_bytes, &two.chunk_size_bytes)
            && same(&one.uncompressed, &two.uncompressed)
            && same(&one.policy, &two.policy)
            && same(&one.ignore, &two.ignore)
            && same(&self.expires_ms, &later.expires_ms)
            && two.labels.iter().all(|label| one.labels.contains(label))
            && later.rules.iter().all(|rule| self.rules.contains(rule))
    }

    /// The record that declares `key`.
    pub(crate) fn record(&self, key: &[u8]) -> ByteRecord {
        let mut record = ByteRecord::from(vec![key, b"", b""]);
        for (name, value) in &self.shape.labels {
            record.push_field(&[&escaped(name)[..], b"=", value].concat());
        }
        let mut option = |name: &str, value: &[u8]| {
            record.push_field(&[b"@", name.as_bytes(), b"=", value].concat());
        };
        if let Some(retention_ms) = self.shape.retention_ms {
            option("retention", retention_ms.to_string().as_bytes());
        }
        if let Some(bytes) = self.shape.chunk_size_bytes {
            option("chunk-size", bytes.to_string().as_bytes());
        }
        if let Some(uncompressed) = self.shape.uncompressed {
            let name: &[u8] = if uncompressed {
                b"uncompressed"
            } else {
                b"compressed"
            };
            option("encoding", name);
        }
        if let Some(policy) = &self.shape.policy {
            option("policy", policy);
        }
        if let Some(ignore) = &self.shape.ignore {
            let time = ignore.max_time_diff_ms.to_string();
            option(
                "ignore",
                &[time.as_bytes(), b":", &ignore.max_value_diff].concat(),
            );
        }
        if let Some(at) = self.expires_ms {
            option("expires", at.to_string().as_bytes());
        }
        for rule in &self.rules {
            let numbers = format!(":{}:{}:", rule.bucket_ms, rule.align_ms);
            option(
                "rule",
                &[&rule.aggregator, numbers.as_bytes(), &rule.destination].concat(),
            );
        }
        record
    }

    fn read(&mut self, field: &[u8]) -> Result<(), String> {
        let shown = || crate::error::shown(field);
        let (name, value) = split(field)
            .ok_or_else(|| format!("{} must be name=value or @option=value", shown()))?;
        let Some(option) = field.strip_prefix(b"@") else {
            self.shape.labels.push((name, value.to_vec()));
            return Ok(());
        };
        let option = &option[..name.len() - 1];
        self.option(option, value)
            .ok_or_else(|| format!("{}: unknown option or invalid value", shown()))
    }

    fn option(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
        match name {
            b"retention" => self.shape.retention_ms = Some(number(value)?),
            b"chunk-size" => self.shape.chunk_size_bytes = Some(number(value)?),
            b"encoding" => {
                self.shape.uncompressed = Some(match value {
                    b"uncompressed" => true,
                    b"compressed" => false,
                    _ => return None,
                });
            }
            b"policy" => self.shape.policy = Some(value.to_vec()),
            b"ignore" => {
                let colon = value.iter().position(|byte| *byte == b':')?;
                self.shape.ignore = Some(Ignore {
                    max_time_diff_ms: number(&value[..colon])?,
                    max_value_diff: value[colon + 1..].to_vec(),
                });
            }
            b"expires" => self.expires_ms = Some(number(value)?),
            b"rule" => {
                let mut parts = value.splitn(4, |byte| *byte == b':');
                self.rules.push(Rule {
                    aggregator: parts.next()?.to_vec(),
                    bucket_ms: number(parts.next()?)?,
                    align_ms: number(parts.next()?)?,
                    destination: parts.next()?.to_vec(),
                });
            }
            _ => return None,
        }
        Some(())
    }
}

fn parse_timestamp(text: &[u8]) -> Result<i64, String> {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number
        .filter(|timestamp: &i64| *timestamp >= 0)
        .ok_or_else(|| {
            format!(
                "{} is not a timestamp in milliseconds",
                crate::error::shown(text)
            )
        })
}

/// A label name with backslashes where needed.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for (at, byte) in name.iter().enumerate() {
        if matches!(byte, b'=' | b'\\') || (at == 0 && *byte == b'@') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

/// The unescaped name, and the text after the first unescaped `=`.
fn split(field: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    let mut bytes = field.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'=' => return (!name.is_empty()).then_some((name, &field[at + 1..])),
            b'\\' => name.push(*bytes.next()?.1),
            _ => name.push(*byte),
        }
    }
    None
}

#[cfg(test)]
mod tests;
