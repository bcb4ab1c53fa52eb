//! Data points to samples.
//!
//! What a data point is called is put together in bytes that tell it apart
//! (`raw`); the labels are made only of one that is new. Sums are taken as they
//! are sent: a cumulative one is a counter, of a delta one each sample is the
//! change since the one before. Buckets of histograms are added up, as those
//! of Prometheus are (`le`).

use super::labels::{self, Origin};
use crate::intake::{Intake, Moment, Reason, Row};
use crate::series_name::SeriesName;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    HistogramDataPoint, NumberDataPoint, SummaryDataPoint,
};

/// The flag of a data point that says its series has ended.
const NO_RECORDED_VALUE: u32 = 1;
/// The NaN by which Prometheus says that a series has ended.
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);
const NANOSECONDS_OF_MS: u64 = 1_000_000;

/// Brings requests to an intake; its memory is used again.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    name: SeriesName,
    raw: Vec<u8>,
    /// Bytes of `raw` that all points of a metric share.
    shared: usize,
    text: String,
    /// The data point, counted from 1 over the whole request.
    point: u32,
}

/// What all points of a metric have.
#[derive(Clone, Copy)]
struct Metric<'a> {
    name: &'a str,
    origin: Origin<'a>,
}

/// One point on its way.
#[derive(Clone, Copy)]
struct Place<'a> {
    metric: Metric<'a>,
    attributes: &'a [KeyValue],
    row: Row,
    at: Moment,
    is_ended: bool,
}

impl Decoder {
    /// Nothing was read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Brings the samples of a request to `intake`, whose line numbers are
    /// those of the data points, from 1.
    pub fn decode(&mut self, request: &ExportMetricsServiceRequest, intake: &mut impl Intake) {
        self.point = 0;
        for of_resource in &request.resource_metrics {
            let resource = of_resource.resource.as_ref();
            let resource = resource.map_or(&[][..], |resource| &resource.attributes);
            for of_scope in &of_resource.scope_metrics {
                let scope = of_scope.scope.as_ref().map_or("", |scope| &scope.name);
                let origin = Origin { resource, scope };
                for metric in &of_scope.metrics {
                    let name = &metric.name;
                    self.begin(Metric { name, origin });
                    self.metric(Metric { name, origin }, metric.data.as_ref(), intake);
                }
            }
        }
    }

    fn begin(&mut self, metric: Metric<'_>) {
        self.raw.clear();
        labels::append_part(&mut self.raw, metric.name.as_bytes());
        labels::append_part(&mut self.raw, metric.origin.scope.as_bytes());
        // Attributes may be called anything: their number says where they end.
        let attributes = metric.origin.resource.len() as u64;
        self.raw.extend_from_slice(&attributes.to_le_bytes());
        labels::append_raw(&mut self.raw, metric.origin.resource, &mut self.text);
        self.shared = self.raw.len();
    }

    fn metric(&mut self, metric: Metric<'_>, data: Option<&Data>, intake: &mut impl Intake) {
        match data {
            None => {}
            Some(Data::Gauge(gauge)) => {
                gauge
                    .data_points
                    .iter()
                    .for_each(|point| self.number(metric, point, intake));
            }
            Some(Data::Sum(sum)) => {
                sum.data_points
                    .iter()
                    .for_each(|point| self.number(metric, point, intake));
            }
            Some(Data::Histogram(histogram)) => {
                let points = histogram.data_points.iter();
                points.for_each(|point| self.histogram(metric, point, intake));
            }
            Some(Data::Summary(summary)) => {
                summary
                    .data_points
                    .iter()
                    .for_each(|point| self.summary(metric, point, intake));
            }
            Some(Data::ExponentialHistogram(histogram)) => {
                for _ in &histogram.data_points {
                    self.point = self.point.saturating_add(1);
                    let text =
                        format_args!("{}: exponential histograms are not supported", metric.name);
                    intake.refuse(self.point, Reason::Value, text);
                }
            }
        }
    }

    fn number(&mut self, metric: Metric<'_>, point: &NumberDataPoint, intake: &mut impl Intake) {
        let place = self.place(
            metric,
            &point.attributes,
            point.time_unix_nano,
            point.flags,
            intake,
        );
        let Some(place) = place else { return };
        match point.value {
            Some(Value::AsDouble(value)) => self.sample(place, "", None, value, intake),
            Some(Value::AsInt(value)) => self.sample(place, "", None, value as f64, intake),
            None if place.is_ended => self.sample(place, "", None, STALE, intake),
            None => self.refuse(metric, "a data point has no value", intake),
        }
    }

    fn histogram(
        &mut self,
        metric: Metric<'_>,
        point: &HistogramDataPoint,
        intake: &mut impl Intake,
    ) {
        let place = self.place(
            metric,
            &point.attributes,
            point.time_unix_nano,
            point.flags,
            intake,
        );
        let Some(place) = place else { return };
        let (bounds, counts) = (&point.explicit_bounds, &point.bucket_counts);
        if !counts.is_empty() && counts.len() != bounds.len() + 1 {
            let text = "a histogram has not one bucket more than bounds";
            return self.refuse(metric, text, intake);
        }
        if !bounds.is_sorted_by(|a, b| a < b) {
            return self.refuse(metric, "the bounds of a histogram do not ascend", intake);
        }
        let mut total = 0u64;
        for (at, count) in counts.iter().enumerate() {
            total = total.saturating_add(*count);
            let le = match bounds.get(at) {
                Some(bound) => number_text(*bound),
                None => "+Inf".to_owned(),
            };
            self.sample(place, "_bucket", Some(("le", &le)), total as f64, intake);
        }
        self.sample(place, "_count", None, point.count as f64, intake);
        for (suffix, value) in [
            ("_sum", point.sum),
            ("_min", point.min),
            ("_max", point.max),
        ] {
            if let Some(value) = value {
                self.sample(place, suffix, None, value, intake);
            }
        }
    }

    fn summary(&mut self, metric: Metric<'_>, point: &SummaryDataPoint, intake: &mut impl Intake) {
        let place = self.place(
            metric,
            &point.attributes,
            point.time_unix_nano,
            point.flags,
            intake,
        );
        let Some(place) = place else { return };
        for quantile in &point.quantile_values {
            let label = number_text(quantile.quantile);
            self.sample(
                place,
                "",
                Some(("quantile", &label)),
                quantile.value,
                intake,
            );
        }
        self.sample(place, "_count", None, point.count as f64, intake);
        self.sample(place, "_sum", None, point.sum, intake);
    }

    /// Finds or remembers the row of a point; nothing where it has no time.
    fn place<'a>(
        &mut self,
        metric: Metric<'a>,
        attributes: &'a [KeyValue],
        time_unix_nano: u64,
        flags: u32,
        intake: &mut impl Intake,
    ) -> Option<Place<'a>> {
        self.point = self.point.saturating_add(1);
        if time_unix_nano == 0 {
            let text = format_args!("{}: a data point has no time", metric.name);
            intake.refuse(self.point, Reason::Timestamp, text);
            return None;
        }
        self.raw.truncate(self.shared);
        labels::append_raw(&mut self.raw, attributes, &mut self.text);
        // With a delimiter hardly any row is the beginning of another.
        labels::append_part(&mut self.raw, &[0; 5]);
        Some(Place {
            metric,
            attributes,
            row: intake.row(&self.raw),
            at: Moment {
                // At most 2^64 / 10^6, which an i64 holds.
                ms: (time_unix_nano / NANOSECONDS_OF_MS) as i64,
                is_rounded: !time_unix_nano.is_multiple_of(NANOSECONDS_OF_MS),
            },
            is_ended: flags & NO_RECORDED_VALUE != 0,
        })
    }

    /// Brings one sample of a point: of the metric with `suffix` behind it.
    fn sample(
        &mut self,
        place: Place<'_>,
        suffix: &'static str,
        extra: Option<(&str, &str)>,
        value: f64,
        intake: &mut impl Intake,
    ) {
        self.text.clear();
        self.text.push_str(suffix);
        if let Some((_, value)) = extra {
            self.text.push('=');
            self.text.push_str(value);
        }
        let value = if place.is_ended { STALE } else { value };
        let slot = match intake.field(place.row, usize::MAX, self.text.as_bytes()) {
            Some(slot) => slot,
            None => {
                let metric = format!("{}{suffix}", place.metric.name);
                let (origin, attributes) = (place.metric.origin, place.attributes);
                labels::name(&mut self.name, &metric, origin, attributes, extra);
                let refused = match self.name.finish() {
                    Err(error) => (Reason::Name, error.to_string()),
                    Ok(()) => match intake.learn(place.row, self.text.as_bytes(), &self.name) {
                        Ok(slot) => return intake.sample(slot, place.at, value, self.point),
                        Err(refused) => (refused.reason, refused.text),
                    },
                };
                let text = format_args!("{}: {}", place.metric.name, refused.1);
                return intake.refuse(self.point, refused.0, text);
            }
        };
        intake.sample(slot, place.at, value, self.point);
    }

    fn refuse(&mut self, metric: Metric<'_>, why: &str, intake: &mut impl Intake) {
        intake.refuse(
            self.point,
            Reason::Value,
            format_args!("{}: {why}", metric.name),
        );
    }
}

/// A bound or quantile as a label: `5` is `5`, not `5.0`.
fn number_text(number: f64) -> String {
    match number {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        number => number.to_string(),
    }
}
