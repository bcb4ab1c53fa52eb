//! Metadata of metrics in messages of remote write: their type, help and unit.

use super::Labels;
use crate::intake::Intake;
use crate::protobuf::{Fields, ProtobufError, Value};
use crate::series_name::METRIC;
use latewood_model::{METRIC_KINDS, Told};

/// The field of a message of version 1.
pub(super) const FIELD_V1: u32 = 3;
/// The field of a series of version 2.
const FIELD_V2: u32 = 5;
/// What follows the name of a family in the names of its series.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

/// What was told last, which most series repeat.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    message: Vec<u8>,
    metric: Vec<u8>,
}

/// Delivers a `prometheus.MetricMetadata`.
pub(super) fn of_family(message: &[u8], intake: &mut impl Intake) -> Result<(), ProtobufError> {
    let (mut kind, mut texts) = (0, [&[][..]; 3]);
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        match (number, value) {
            (1, Value::Varint(number)) => kind = number,
            (2, Value::Bytes(text)) => texts[0] = text,
            (4, Value::Bytes(text)) => texts[1] = text,
            (5, Value::Bytes(text)) => texts[2] = text,
            _ => {}
        }
    }
    deliver(texts[0], kind, texts[1], texts[2], intake);
    Ok(())
}

impl Metadata {
    /// Delivers what a series of version 2 says of its metric, which refers to symbols.
    pub(super) fn of_series(
        &mut self,
        series: &[u8],
        symbols: &[&[u8]],
        labels: &Labels,
        intake: &mut impl Intake,
    ) -> Result<(), ProtobufError> {
        let mut message = None;
        let mut fields = Fields::of(series);
        while let Some((number, value)) = fields.next_field()? {
            if let (FIELD_V2, Value::Bytes(told)) = (number, value) {
                message = Some(told);
            }
        }
        let metric = labels.pairs().find(|(name, _)| *name == METRIC);
        let (Some(message), Some((_, metric))) = (message, metric) else {
            return Ok(());
        };
        if *self.message == *message && *self.metric == *metric {
            return Ok(());
        }
        let (mut kind, mut references) = (0, [0; 2]);
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match (number, value) {
                (1, Value::Varint(number)) => kind = number,
                (3, Value::Varint(reference)) => references[0] = reference,
                (4, Value::Varint(reference)) => references[1] = reference,
                _ => {}
            }
        }
        let [help, unit] = references.map(|reference| {
            let place = usize::try_from(reference).ok();
            let symbol = place.and_then(|place| symbols.get(place));
            symbol.copied().ok_or(ProtobufError::NoSymbol(reference))
        });
        deliver(family(metric, kind), kind, help?, unit?, intake);
        self.message.clear();
        self.message.extend_from_slice(message);
        self.metric.clear();
        self.metric.extend_from_slice(metric);
        Ok(())
    }
}

/// The name of the family of a series with this metric.
fn family(metric: &[u8], kind: u64) -> &[u8] {
    let has_parts = usize::try_from(kind)
        .ok()
        .and_then(|kind| METRIC_KINDS.get(kind))
        .is_some_and(|kind| ["histogram", "gaugehistogram", "summary"].contains(kind));
    let suffixes = SUFFIXES.iter().filter(|_| has_parts);
    let mut cut = suffixes.filter_map(|suffix| metric.strip_suffix(suffix.as_bytes()));
    cut.next().unwrap_or(metric)
}

/// What is not UTF-8, or has no name, is passed over. Nothing said at all is not passed on.
fn deliver(metric: &[u8], kind: u64, help: &[u8], unit: &[u8], intake: &mut impl Intake) {
    let kind = usize::try_from(kind)
        .ok()
        .and_then(|kind| METRIC_KINDS.get(kind));
    let is_said =
        kind.is_some_and(|kind| *kind != METRIC_KINDS[0]) || !(help.is_empty() && unit.is_empty());
    let text = std::str::from_utf8;
    if let (true, Ok(metric), Ok(help), Ok(unit)) = (is_said, text(metric), text(help), text(unit))
        && !metric.is_empty()
    {
        let told = Told {
            kind: kind.copied(),
            help: Some(help),
            unit: Some(unit),
        };
        intake.metadata(metric, told);
    }
}
