//! Intakes without an engine: one that keeps everything, for tests and fuzz
//! targets, and one that only adds up, for benchmarks of decoders.

use crate::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use crate::series_cache::SeriesCache;
use crate::series_name::SeriesName;
use latewood_model::Told;
use std::fmt::Arguments;

/// The names and slots of a row's fields.
pub type Fields = Vec<(Vec<u8>, Slot)>;

/// Everything a decoder delivered.
#[derive(Debug, Default)]
pub struct Collected {
    /// The bytes and fields of each row.
    pub rows: Vec<(Vec<u8>, Fields)>,
    /// The key of each slot.
    pub keys: Vec<String>,
    /// Key, moment, value and line of each sample.
    pub samples: Vec<(String, Moment, f64, u32)>,
    /// Line, reason and text of each refusal.
    pub refused: Vec<(u32, Reason, String)>,
    /// Metrics and what was said of them.
    pub metadata: Vec<String>,
    /// Texts that were skipped.
    pub texts: u64,
    /// The clock.
    pub now_ms: i64,
    /// Prefix of keys that may not be written.
    pub closed: Option<String>,
    /// Bytes of all texts in which a row was looked for: what the decoding of lines cost.
    pub looked_through_bytes: usize,
    last: Option<usize>,
}

impl Collected {
    /// Empty, with a fixed clock.
    pub fn at(now_ms: i64) -> Self {
        Self {
            now_ms,
            ..Self::default()
        }
    }

    /// The samples as `key@milliseconds=value`.
    pub fn lines(&self) -> Vec<String> {
        let samples = self.samples.iter();
        samples
            .map(|(key, at, value, _)| format!("{key}@{}={value}", at.ms))
            .collect()
    }

    fn place(&mut self, at: usize) -> Row {
        self.last = Some(at);
        // Tests do not come near 2^32 rows.
        Row(at as u32)
    }
}

impl Intake for Collected {
    fn metadata(&mut self, metric: &str, told: Told<'_>) {
        let parts = [
            ("type", told.kind),
            ("help", told.help),
            ("unit", told.unit),
        ];
        let parts = parts
            .map(|(name, text)| text.map_or(String::new(), |text| format!(" {name}={text:?}")));
        self.metadata.push(format!("{metric}{}", parts.concat()));
    }

    fn follow(&mut self, text: &[u8]) -> Option<(Row, usize)> {
        self.looked_through_bytes += text.len();
        let at = self.last? + 1;
        let length = self.rows.get(at)?.0.len();
        text.starts_with(&self.rows[at].0)
            .then(|| (self.place(at), length))
    }

    fn find(&mut self, raw: &[u8]) -> Option<Row> {
        let at = self.rows.iter().position(|row| row.0 == raw)?;
        Some(self.place(at))
    }

    fn add(&mut self, raw: &[u8]) -> Row {
        assert!(self.rows.iter().all(|row| row.0 != raw), "added twice");
        self.rows.push((raw.to_vec(), Vec::new()));
        self.place(self.rows.len() - 1)
    }

    fn field(&mut self, row: Row, _at: usize, name: &[u8]) -> Option<Slot> {
        let fields = &self.rows[row.0 as usize].1;
        let found = fields.iter().find(|field| field.0 == name);
        found.map(|field| field.1)
    }

    fn expect(&mut self, row: Row, at: usize, text: &[u8]) -> Option<(Slot, usize)> {
        let (name, slot) = self.rows[row.0 as usize].1.get(at)?;
        let rest = text.strip_prefix(&name[..])?;
        rest.starts_with(b"=").then_some((*slot, name.len() + 1))
    }

    fn learn(&mut self, row: Row, name: &[u8], series: &SeriesName) -> Result<Slot, Refused> {
        let fields = &mut self.rows[row.0 as usize].1;
        assert!(fields.iter().all(|field| field.0 != name), "learnt twice");
        if let Some(closed) = &self.closed
            && series.key().starts_with(closed.as_bytes())
        {
            return Err(Refused {
                reason: Reason::Permission,
                text: format!("no permission to write to {closed}"),
            });
        }
        let slot = Slot(self.keys.len() as u32);
        fields.push((name.to_vec(), slot));
        let key = String::from_utf8(series.key().to_vec());
        self.keys
            .push(key.expect("the name was checked to be UTF-8"));
        Ok(slot)
    }

    fn samples(&mut self, samples: &[(Slot, f64)], at: Moment, line: u32) {
        for (slot, value) in samples {
            let key = self.keys[slot.0 as usize].clone();
            self.samples.push((key, at, *value, line));
        }
    }

    fn refuse(&mut self, line: u32, reason: Reason, text: Arguments<'_>) {
        self.refused.push((line, reason, text.to_string()));
    }

    fn refusals(&self) -> u64 {
        self.refused.len() as u64
    }

    fn skip_text(&mut self) {
        self.texts += 1;
    }

    fn now_ms(&self) -> i64 {
        self.now_ms
    }
}

/// Looks up rows and series as the server's intake does and adds up all samples, so
/// that no work is optimised away: the cost of a decoder alone.
#[derive(Debug, Default)]
pub struct Summed {
    cache: SeriesCache,
    /// Samples taken.
    pub samples: u64,
    /// Their values, places and times added up.
    pub sum: f64,
    /// Number of refusals.
    pub refused: u64,
}

impl Intake for Summed {
    #[inline]
    fn follow(&mut self, text: &[u8]) -> Option<(Row, usize)> {
        self.cache.follow(text)
    }

    #[inline]
    fn find(&mut self, raw: &[u8]) -> Option<Row> {
        self.cache.find(raw)
    }

    fn add(&mut self, raw: &[u8]) -> Row {
        self.cache.add(raw)
    }

    #[inline]
    fn field(&mut self, row: Row, at: usize, name: &[u8]) -> Option<Slot> {
        self.cache.field(row, at, name)
    }

    #[inline]
    fn expect(&mut self, row: Row, at: usize, text: &[u8]) -> Option<(Slot, usize)> {
        self.cache.expect(row, at, text)
    }

    fn learn(&mut self, row: Row, name: &[u8], _: &SeriesName) -> Result<Slot, Refused> {
        Ok(self.cache.learn(row, name))
    }

    #[inline]
    fn samples(&mut self, samples: &[(Slot, f64)], at: Moment, _: u32) {
        for (slot, value) in samples {
            self.sum += value + f64::from(slot.0) + at.ms as f64;
        }
        self.samples += samples.len() as u64;
    }

    fn refuse(&mut self, _: u32, _: Reason, _: Arguments<'_>) {
        self.refused += 1;
    }

    fn skip_text(&mut self) {}

    fn now_ms(&self) -> i64 {
        0
    }
}
