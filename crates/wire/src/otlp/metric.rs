//! What is asked of one metric or number of a request.

use super::naming::Kind;
use crate::intake::Moment;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric};

const NANOSECONDS_OF_MS: u64 = 1_000_000;

/// The type of a metric, as Prometheus calls it, and as its name depends on it.
pub(super) fn kind_of(data: &Data) -> (&'static str, Kind) {
    match data {
        Data::Sum(sum) if sum.is_monotonic => ("counter", Kind::Counter),
        Data::Sum(_) => ("gauge", Kind::Other),
        Data::Gauge(_) => ("gauge", Kind::Gauge),
        Data::Histogram(_) | Data::ExponentialHistogram(_) => ("histogram", Kind::Other),
        Data::Summary(_) => ("summary", Kind::Other),
    }
}

/// The number of data points of a metric.
pub(super) fn points_of(metric: &Metric) -> usize {
    match &metric.data {
        None => 0,
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        Some(Data::ExponentialHistogram(histogram)) => histogram.data_points.len(),
        Some(Data::Summary(summary)) => summary.data_points.len(),
    }
}

/// Checks the temporality of a sum or histogram, which must be given: in JSON, an unknown word is
/// the same as none.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_temporality(metric: &Metric) -> Result<(), String> {
    let number = match &metric.data {
        Some(Data::Sum(sum)) => sum.aggregation_temporality,
        Some(Data::Histogram(histogram)) => histogram.aggregation_temporality,
        _ => return Ok(()),
    };
    match AggregationTemporality::try_from(number) {
        Ok(AggregationTemporality::Delta | AggregationTemporality::Cumulative) => Ok(()),
        _ => Err(format!(
            "aggregationTemporality is missing or unknown ({number}): it must be 1 (delta) or 2 \
             (cumulative)"
        )),
    }
}

/// A time of OTLP.
pub(super) fn moment(time_unix_nano: u64) -> Moment {
    Moment {
        // At most 2^64 / 10^6, which an i64 holds.
        ms: (time_unix_nano / NANOSECONDS_OF_MS) as i64,
        is_rounded: !time_unix_nano.is_multiple_of(NANOSECONDS_OF_MS),
    }
}

/// A bound or quantile as a label: `5` is `5`, not `5.0`.
pub(super) fn number_text(number: f64) -> String {
    match number {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        number => number.to_string(),
    }
}
