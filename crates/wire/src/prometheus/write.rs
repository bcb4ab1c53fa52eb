//! Remote write: `prometheus.WriteRequest` of 1.0 and
//! `io.prometheus.write.v2.Request` of 2.0, uncompressed.
//!
//! A series is found by the bytes of its labels in the order they came, so one
//! that was met before costs no sorting and no allocation. Values are taken
//! bit for bit, stale markers too. Native histograms are refused, each of
//! their samples; exemplars and metadata are passed over. The line numbers that
//! the intake hears are those of the series in the message, from 1.
//!
//! Message layouts: the specifications of remote write at prometheus.io.
//! Tested by `write/tests.rs` and the fuzz target `remote_write`.

use crate::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use crate::protobuf::{Fields, ProtobufError, Value, varint};
use crate::series_name::{METRIC, SeriesName};

#[cfg(test)]
mod tests;

/// The two message types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `prometheus.WriteRequest`.
    V1,
    /// `io.prometheus.write.v2.Request`.
    V2,
}

/// What a message held beside what the intake heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Samples of native histograms, refused.
    pub histograms: u64,
    /// Exemplars, which are not stored.
    pub exemplars: u64,
}

/// Reads messages; its memory is used again from message to message.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// The labels of a series: lengths and bytes in the order they came.
    raw: Vec<u8>,
    name: SeriesName,
}

impl Decoder {
    /// Nothing was read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Brings the samples of a message to `intake`.
    ///
    /// # Errors
    /// A message that is none. What stood before the damage was brought.
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
        // Symbols may stand behind the series that refer to them.
        let mut symbols = Vec::new();
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            if let (true, Value::Bytes(symbol)) = (number == symbols_field, value) {
                symbols.push(symbol);
            }
        }
        let (mut passed, mut line) = (Passed::default(), 0u32);
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            if let (true, Value::Bytes(series)) = (number == series_field, value) {
                line = line.saturating_add(1);
                match version {
                    Version::V1 => self.series_v1(series, line, &mut passed, intake)?,
                    Version::V2 => self.series_v2(series, &symbols, line, &mut passed, intake)?,
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
        self.raw.clear();
        let mut fields = Fields::of(series);
        while let Some((number, value)) = fields.next_field()? {
            if let (1, Value::Bytes(label)) = (number, value) {
                let [name, value] = texts(label)?;
                self.push(name);
                self.push(value);
            }
        }
        let places = Places {
            samples: 2,
            exemplars: 3,
            histograms: 4,
        };
        self.samples(series, places, line, passed, intake)
    }

    fn series_v2(
        &mut self,
        series: &[u8],
        symbols: &[&[u8]],
        line: u32,
        passed: &mut Passed,
        intake: &mut impl Intake,
    ) -> Result<(), ProtobufError> {
        self.raw.clear();
        let mut count = 0;
        let mut push = |this: &mut Self, reference: u64| {
            let place = usize::try_from(reference).ok();
            let symbol = place.and_then(|place| symbols.get(place));
            this.push(symbol.ok_or(ProtobufError::NoSymbol(reference))?);
            count += 1;
            Ok(())
        };
        let mut fields = Fields::of(series);
        while let Some((number, value)) = fields.next_field()? {
            match (number, value) {
                (1, Value::Varint(reference)) => push(self, reference)?,
                (1, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        push(self, varint(&mut packed)?)?;
                    }
                }
                _ => {}
            }
        }
        if count % 2 != 0 {
            return Err(ProtobufError::OddReferences);
        }
        let places = Places {
            samples: 2,
            histograms: 3,
            exemplars: 4,
        };
        self.samples(series, places, line, passed, intake)
    }

    /// Adds one part of a label to the bytes of the series.
    #[inline]
    fn push(&mut self, part: &[u8]) {
        // A body is shorter than 4 GiB by far.
        self.raw
            .extend_from_slice(&(part.len() as u32).to_le_bytes());
        self.raw.extend_from_slice(part);
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
                let moment = Moment {
                    ms: timestamp_ms,
                    is_rounded: false,
                };
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

    /// The series of the labels in `raw`, or why there is none.
    #[inline]
    fn slot(&mut self, intake: &mut impl Intake) -> Result<Slot, Refused> {
        // With a delimiter hardly any row is the beginning of another, so the
        // expected one is compared in vain as seldom as can be.
        self.push(b"");
        let row = intake.row(&self.raw);
        match intake.field(row, 0, b"") {
            Some(slot) => Ok(slot),
            None => self.learn(row, intake),
        }
    }

    #[cold]
    fn learn(&mut self, row: Row, intake: &mut impl Intake) -> Result<Slot, Refused> {
        let pairs = || {
            let mut parts = Parts(&self.raw);
            std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
        };
        let metric = pairs().find(|(name, _)| *name == METRIC);
        self.name.begin(metric.map_or(&[], |(_, metric)| metric));
        let mut metrics = 0;
        for (name, value) in pairs() {
            match name == METRIC {
                // A second one is told to be there twice.
                true if metrics == 0 => metrics = 1,
                _ => self.name.label(name, value),
            }
        }
        self.name.finish().map_err(|error| Refused {
            reason: Reason::Name,
            text: error.to_string(),
        })?;
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

/// The parts that [`Decoder::push`] put together.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(part)
    }
}

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
            // An int64 is written as the unsigned number of the same bits.
            (2, Value::Varint(number)) => timestamp_ms = number as i64,
            _ => {}
        }
    }
    Ok((found, timestamp_ms))
}
