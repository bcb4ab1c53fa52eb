//! Remote write: `prometheus.WriteRequest` of 1.0 and
//! `io.prometheus.write.v2.Request` of 2.0, uncompressed.
//!
//! A series is found by the bytes of its labels in the order received, so a known
//! one needs no sorting or allocation. Values are stored bit for bit, including
//! stale markers. Samples of native histograms are refused; exemplars are ignored. Metadata
//! names the family of a histogram or summary, without `_bucket`, `_sum` and `_count`. The line numbers passed to the intake are those of the series in
//! the message, from 1.
//!
//! Message layouts: the specifications of remote write at prometheus.io.
//! Tested by `write/tests.rs` and the fuzz target `remote_write`.

use crate::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use crate::protobuf::{Fields, ProtobufError, Value};
use crate::series_name::{METRIC, NameError, SeriesName};
use metadata::Metadata;

mod labels;
mod metadata;
#[cfg(test)]
mod tests;

use labels::Labels;

/// Symbols a message may have.
const SYMBOLS_MAX: usize = 1024 * 1024;
/// Total label bytes of the series of one message, each symbol counted once per
/// reference.
const MESSAGE_LABEL_BYTES_MAX: usize = 1 << 30;

/// The two message types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `prometheus.WriteRequest`.
    V1,
    /// `io.prometheus.write.v2.Request`.
    V2,
}

/// The parts of a message that do not reach the intake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Samples of native histograms, refused.
    pub histograms: u64,
    /// Exemplars, which are not stored.
    pub exemplars: u64,
}

/// Decodes messages; reuses its memory.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    labels: Labels,
    name: SeriesName,
    metadata: Metadata,
}

impl Decoder {
    /// A new decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Delivers the samples of a message to `intake`.
    ///
    /// # Errors
    /// The message is invalid. The samples before the error have been delivered.
    pub fn decode(
        &mut self,
        version: Version,
        message: &[u8],
        intake: &mut impl Intake,
    ) -> Result<Passed, ProtobufError> {
        let (symbols_field, series_field) = match version {
            Version::V1 => (0, 1),
            Version::V2 => (4, 5),
        };
        // References of another message mean something else.
        self.metadata = Metadata::default();
        // Symbols may follow the series that refer to them.
        let mut symbols = Vec::new();
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            if let (true, Value::Bytes(symbol)) = (number == symbols_field, value) {
                if symbols.len() == SYMBOLS_MAX {
                    return Err(ProtobufError::TooManySymbols);
                }
                symbols.push(symbol);
            }
        }
        let (mut passed, mut line, mut label_bytes) = (Passed::default(), 0u32, 0usize);
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            if let (Version::V1, metadata::FIELD_V1, Value::Bytes(told)) = (version, number, value)
            {
                // What cannot be read costs no sample.
                let _ = metadata::of_family(told, intake);
            }
            if let (true, Value::Bytes(series)) = (number == series_field, value) {
                line = line.saturating_add(1);
                match version {
                    Version::V1 => self.series_v1(series, line, &mut passed, intake)?,
                    Version::V2 => {
                        self.labels.refer(series, &symbols)?;
                        label_bytes = label_bytes.saturating_add(self.labels.bytes().len());
                        if label_bytes > MESSAGE_LABEL_BYTES_MAX {
                            return Err(ProtobufError::TooManyLabels);
                        }
                        self.samples(series, PLACES_V2, line, &mut passed, intake)?;
                        let _ = self
                            .metadata
                            .of_series(series, &symbols, &self.labels, intake);
                    }
                }
            }
        }
        Ok(passed)
    }

    fn series_v1(
        &mut self,
        series: &[u8],
        line: u32,
        passed: &mut Passed,
        intake: &mut impl Intake,
    ) -> Result<(), ProtobufError> {
        self.labels.clear();
        let mut fields = Fields::of(series);
        while let Some((number, value)) = fields.next_field()? {
            if let (1, Value::Bytes(label)) = (number, value) {
                let [name, value] = texts(label)?;
                self.labels.push(name);
                self.labels.push(value);
            }
        }
        self.samples(series, PLACES_V1, line, passed, intake)
    }

    fn samples(
        &mut self,
        series: &[u8],
        places: Places,
        line: u32,
        passed: &mut Passed,
        intake: &mut impl Intake,
    ) -> Result<(), ProtobufError> {
        let mut slot = None;
        let mut fields = Fields::of(series);
        while let Some((number, value)) = fields.next_field()? {
            let Value::Bytes(part) = value else { continue };
            if number == places.samples {
                let (value, timestamp_ms) = sample(part)?;
                let moment = Moment::whole(timestamp_ms);
                match slot.get_or_insert_with(|| self.slot(intake)) {
                    Ok(slot) => intake.sample(*slot, moment, value, line),
                    Err(why) => intake.refuse(line, why.reason, format_args!("{}", why.text)),
                }
            } else if number == places.histograms {
                passed.histograms += 1;
                let text = format_args!("native histograms are not supported");
                intake.refuse(line, Reason::Value, text);
            } else if number == places.exemplars {
                passed.exemplars += 1;
            }
        }
        Ok(())
    }

    /// The series of the labels, or why it is refused.
    #[inline]
    fn slot(&mut self, intake: &mut impl Intake) -> Result<Slot, Refused> {
        if self.labels.is_too_long() {
            return Err(NameError::TooLong.into());
        }
        // With a delimiter, a row is rarely a prefix of another, so the comparison
        // with the expected row rarely fails late.
        self.labels.push(b"");
        let row = intake.row(self.labels.bytes());
        match intake.field(row, 0, b"") {
            Some(slot) => Ok(slot),
            None => self.learn(row, intake),
        }
    }

    #[cold]
    fn learn(&mut self, row: Row, intake: &mut impl Intake) -> Result<Slot, Refused> {
        let metric = self.labels.pairs().find(|(name, _)| *name == METRIC);
        self.name.begin(metric.map_or(&[], |(_, metric)| metric));
        let mut metrics = 0;
        for (name, value) in self.labels.pairs() {
            match name == METRIC {
                // A second one is refused as a duplicate.
                true if metrics == 0 => metrics = 1,
                _ => self.name.label(name, value),
            }
        }
        self.name.finish()?;
        intake.learn(row, b"", &self.name)
    }
}

/// Numbers of the fields of a series.
#[derive(Clone, Copy)]
struct Places {
    samples: u32,
    exemplars: u32,
    histograms: u32,
}

const PLACES_V1: Places = Places {
    samples: 2,
    exemplars: 3,
    histograms: 4,
};
const PLACES_V2: Places = Places {
    samples: 2,
    histograms: 3,
    exemplars: 4,
};

/// Name and value of a label.
#[inline]
fn texts(label: &[u8]) -> Result<[&[u8]; 2], ProtobufError> {
    let mut found = [&[][..]; 2];
    let mut fields = Fields::of(label);
    while let Some((number, value)) = fields.next_field()? {
        if let (1 | 2, Value::Bytes(text)) = (number, value) {
            found[number as usize - 1] = text;
        }
    }
    Ok(found)
}

/// Value and timestamp of a sample.
#[inline]
fn sample(part: &[u8]) -> Result<(f64, i64), ProtobufError> {
    let (mut found, mut timestamp_ms) = (0.0, 0);
    let mut fields = Fields::of(part);
    while let Some((number, value)) = fields.next_field()? {
        match (number, value) {
            (1, Value::Fixed64(bits)) => found = f64::from_bits(bits),
            // An int64 is encoded as the unsigned number of the same bits.
            (2, Value::Varint(number)) => timestamp_ms = number as i64,
            _ => {}
        }
    }
    Ok((found, timestamp_ms))
}
