//! Data points to samples.
//!
//! A data point is identified by raw bytes (`raw`); labels are built only for a new
//! one. A resource whose attributes are not all in the labels of its series is described by a series
//! of its own, `target_info`. Sums are stored as sent: a cumulative sum is a counter, each sample of a
//! delta sum is the change since the previous one. Buckets of histograms are
//! cumulative, as in Prometheus (`le`).

use super::labels::{self, Origin};
use super::metric::{check_temporality, kind_of, moment, number_text, points_of};
use super::naming::{Kind, Naming};
use super::raw::Raw;
use super::shown;
use crate::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use crate::series_name::SeriesName;
use latewood_model::Told;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1 as metrics;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Gauge, HistogramDataPoint, Sum, SummaryDataPoint};

/// The flag of a data point that marks the end of its series.
const NO_RECORDED_VALUE: u32 = 1;
/// The NaN with which Prometheus marks the end of a series.
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Of what is not a data point of the request.
const NO_POINT: u32 = 0;

/// The metric that describes resources.
const TARGET_INFO: &str = "target_info";
/// The least time between two of its samples: half of what PromQL looks back.
const TARGET_INFO_STEP_NS: u64 = 150_000_000_000;

/// Delivers requests to an intake; reuses its memory.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    naming: &'a Naming,
    name: SeriesName,
    raw: Raw,
    text: String,
    /// Number of the data point in the request, from 1.
    point: u32,
    /// Times of the data points of the resource.
    times: Vec<u64>,
    /// Samples delivered and refusals reported.
    told: u64,
    /// What had nothing in it: the first, and the number of the others.
    empty: Option<(String, u64)>,
}

/// The common part of all points of a metric.
#[derive(Clone, Copy)]
struct Metric<'a> {
    name: &'a str,
    origin: Origin<'a>,
}

/// The point at hand.
#[derive(Clone, Copy)]
struct Place<'a> {
    metric: Metric<'a>,
    attributes: &'a [KeyValue],
    row: Row,
    at: Moment,
    is_ended: bool,
}

/// The common part of all points of any type.
#[derive(Clone, Copy)]
struct Common<'a> {
    attributes: &'a [KeyValue],
    time_unix_nano: u64,
    flags: u32,
}

/// The common part of a point.
macro_rules! common {
    ($point:ident) => {
        Common {
            attributes: &$point.attributes,
            time_unix_nano: $point.time_unix_nano,
            flags: $point.flags,
        }
    };
}

impl<'a> Decoder<'a> {
    /// A new decoder.
    pub fn new(naming: &'a Naming) -> Self {
        Self {
            naming,
            name: SeriesName::new(),
            raw: Raw::default(),
            text: String::new(),
            point: 0,
            times: Vec::new(),
            told: 0,
            empty: None,
        }
    }

    /// A sentence about what was empty in the requests: nothing of it is refused, but a field with
    /// an unknown name is ignored, and leaves what it is in empty.
    pub fn warning(&self) -> Option<String> {
        let (first, others) = self.empty.as_ref()?;
        let more = match others {
            0 => String::new(),
            others => format!(" (and {others} more are empty)"),
        };
        Some(format!("{first}{more}"))
    }

    /// Delivers the samples of a request to `intake`; its line numbers are those of
    /// the data points, from 1, and 0 for what describes their resources: it was not sent,
    /// so its refusal is none of a data point.
    pub fn decode(&mut self, request: &ExportMetricsServiceRequest, intake: &mut impl Intake) {
        self.point = 0;
        self.raw.request();
        for of_resource in &request.resource_metrics {
            let resource = of_resource.resource.as_ref();
            let resource = resource.map_or(&[][..], |resource| &resource.attributes);
            self.raw.resource(resource);
            self.times.clear();
            if of_resource.scope_metrics.is_empty() {
                self.note_empty(|| "a resource has no scopeMetrics".to_owned());
            }
            for of_scope in &of_resource.scope_metrics {
                if of_scope.metrics.is_empty() {
                    self.note_empty(|| "a scope has no metrics".to_owned());
                }
                let origin = Origin {
                    naming: self.naming,
                    resource,
                    scope: of_scope.scope.as_ref(),
                    schema_url: &of_scope.schema_url,
                };
                self.raw.scope(origin);
                for metric in &of_scope.metrics {
                    self.named(metric, origin, intake);
                }
            }
            if labels::has_target_info(resource) {
                self.target_info(resource, intake);
            }
        }
    }

    /// Delivers the samples of a metric under its translated name.
    fn named(&mut self, metric: &metrics::Metric, origin: Origin<'_>, intake: &mut impl Intake) {
        let (kind, named_by) = metric.data.as_ref().map(kind_of).unzip();
        let named_by = named_by.unwrap_or(Kind::Other);
        if points_of(metric) == 0 {
            let name = shown(&metric.name);
            return self.note_empty(|| format!("the metric {name:?} has no data points"));
        }
        let translation = self.naming.translation;
        let name = match translation.metric(&metric.name, &metric.unit, named_by) {
            Ok(name) => name,
            Err(why) => return self.refuse_all(metric, Reason::Name, &why, intake),
        };
        if let Err(why) = check_temporality(metric) {
            return self.refuse_all(metric, Reason::Value, &why, intake);
        }
        self.raw.metric(&name);
        let [help, unit] = [&metric.description, &metric.unit].map(|text| {
            let text = Some(&**text);
            text.filter(|text| !text.is_empty())
        });
        let about = Told { kind, help, unit };
        let before = self.kept(intake);
        let metric_of = Metric {
            name: &name,
            origin,
        };
        self.metric(metric_of, metric.data.as_ref(), intake);
        if self.kept(intake) > before {
            intake.metadata(&name, about);
        }
    }

    /// Samples delivered that the intake has not refused so far: a metric of which it takes none
    /// gets no metadata.
    fn kept(&self, intake: &impl Intake) -> i64 {
        self.told.cast_signed() - intake.refusals().cast_signed()
    }

    fn note_empty(&mut self, what: impl FnOnce() -> String) {
        match &mut self.empty {
            Some((_, others)) => *others += 1,
            None => self.empty = Some((what(), 0)),
        }
    }

    /// Refuses all points of a metric.
    #[cold]
    fn refuse_all(
        &mut self,
        metric: &metrics::Metric,
        reason: Reason,
        why: &str,
        intake: &mut impl Intake,
    ) {
        for _ in 0..points_of(metric) {
            self.point = self.point.saturating_add(1);
            self.refuse(&metric.name, reason, why, intake);
        }
    }

    /// Delivers the samples of the series that describes a resource: at the first and the last time
    /// of its points, and at those between that are far enough from each other.
    fn target_info(&mut self, resource: &[KeyValue], intake: &mut impl Intake) {
        let mut times = std::mem::take(&mut self.times);
        times.sort_unstable();
        let mut next_ns = 0;
        let last = times.last().copied();
        times.retain(|&time_ns| {
            let is_due = time_ns >= next_ns;
            if is_due {
                next_ns = time_ns.saturating_add(TARGET_INFO_STEP_NS);
            }
            is_due || Some(time_ns) == last
        });
        times.dedup();
        if !times.is_empty() {
            let before = self.kept(intake);
            match self.target_slot(resource, intake) {
                Ok(slot) => {
                    for &time_ns in &times {
                        self.told += 1;
                        intake.sample(slot, moment(time_ns), 1.0, NO_POINT);
                    }
                }
                Err(Refused { reason, text }) => {
                    intake.refuse(NO_POINT, reason, format_args!("{TARGET_INFO}: {text}"));
                }
            }
            let told = Told {
                kind: Some("gauge"),
                help: Some("Target metadata"),
                unit: None,
            };
            if self.kept(intake) > before {
                intake.metadata(TARGET_INFO, told);
            }
        }
        self.times = times;
    }

    fn target_slot(
        &mut self,
        resource: &[KeyValue],
        intake: &mut impl Intake,
    ) -> Result<Slot, Refused> {
        let origin = Origin {
            naming: self.naming,
            resource,
            scope: None,
            schema_url: "",
        };
        self.raw.scope(origin);
        self.raw.metric(TARGET_INFO);
        let row = intake.row(self.raw.point(origin, &[])?);
        // No field of a point begins with a letter.
        let field = TARGET_INFO.as_bytes();
        if let Some(slot) = intake.field(row, usize::MAX, field) {
            return Ok(slot);
        }
        self.raw.spend()?;
        labels::target_info(&mut self.name, TARGET_INFO, self.naming, resource)?;
        self.name.finish()?;
        intake.learn(row, field, &self.name)
    }

    fn metric(&mut self, metric: Metric<'_>, data: Option<&Data>, intake: &mut impl Intake) {
        match data {
            None => {}
            Some(Data::Gauge(Gauge { data_points }) | Data::Sum(Sum { data_points, .. })) => {
                for point in data_points {
                    let Some(place) = self.place(metric, common!(point), intake) else {
                        continue;
                    };
                    self.number(place, point.value.as_ref(), intake);
                }
            }
            Some(Data::Histogram(histogram)) => {
                for point in &histogram.data_points {
                    let Some(place) = self.place(metric, common!(point), intake) else {
                        continue;
                    };
                    self.histogram(place, point, intake);
                }
            }
            Some(Data::Summary(summary)) => {
                for point in &summary.data_points {
                    let Some(place) = self.place(metric, common!(point), intake) else {
                        continue;
                    };
                    self.summary(place, point, intake);
                }
            }
            Some(Data::ExponentialHistogram(histogram)) => {
                for _ in &histogram.data_points {
                    self.point = self.point.saturating_add(1);
                    let text = "exponential histograms are not supported";
                    self.refuse(metric.name, Reason::Value, text, intake);
                }
            }
        }
    }

    fn number(&mut self, place: Place<'_>, value: Option<&Value>, intake: &mut impl Intake) {
        let value = match value {
            Some(Value::AsDouble(value)) => *value,
            Some(Value::AsInt(value)) => *value as f64,
            None if place.is_ended => STALE,
            None => return self.refuse_value(place, "a data point has no value", intake),
        };
        self.sample(place, "", None, value, intake);
    }

    fn histogram(
        &mut self,
        place: Place<'_>,
        point: &HistogramDataPoint,
        intake: &mut impl Intake,
    ) {
        let (bounds, counts) = (&point.explicit_bounds, &point.bucket_counts);
        if !counts.is_empty() && counts.len() != bounds.len() + 1 {
            let text = "a histogram must have one more bucket than bounds";
            return self.refuse_value(place, text, intake);
        }
        if !bounds.is_sorted_by(|a, b| a < b) || bounds.iter().any(|bound| bound.is_nan()) {
            return self.refuse_value(place, "histogram bounds must ascend", intake);
        }
        let mut total = 0u64;
        for (bound, count) in bounds.iter().zip(counts) {
            total = total.saturating_add(*count);
            if *bound < f64::INFINITY {
                let le = number_text(*bound);
                self.sample(place, "_bucket", Some(("le", &le)), total as f64, intake);
            }
        }
        // As in Prometheus: always, and all that was counted.
        let (all, count) = (Some(("le", "+Inf")), point.count as f64);
        self.sample(place, "_bucket", all, count, intake);
        self.sample(place, "_count", None, count, intake);
        let rest = [
            ("_sum", point.sum),
            ("_min", point.min),
            ("_max", point.max),
        ];
        for (suffix, value) in rest {
            if let Some(value) = value {
                self.sample(place, suffix, None, value, intake);
            }
        }
    }

    fn summary(&mut self, place: Place<'_>, point: &SummaryDataPoint, intake: &mut impl Intake) {
        let quantiles = &point.quantile_values;
        if quantiles.iter().any(|one| one.quantile.is_nan()) {
            return self.refuse_value(place, "a quantile is not a number", intake);
        }
        for one in quantiles {
            let label = number_text(one.quantile);
            let extra = Some(("quantile", &*label));
            self.sample(place, "", extra, one.value, intake);
        }
        self.sample(place, "_count", None, point.count as f64, intake);
        self.sample(place, "_sum", None, point.sum, intake);
    }

    /// Finds or adds the row of a point; `None` if it is refused.
    fn place<'p>(
        &mut self,
        metric: Metric<'p>,
        common: Common<'p>,
        intake: &mut impl Intake,
    ) -> Option<Place<'p>> {
        self.point = self.point.saturating_add(1);
        let Common {
            attributes,
            time_unix_nano,
            flags,
        } = common;
        if time_unix_nano == 0 {
            let text = "a data point has no timestamp";
            self.refuse(metric.name, Reason::Timestamp, text, intake);
            return None;
        }
        self.times.push(time_unix_nano);
        let raw = self.raw.point(metric.origin, attributes);
        let row = raw.map(|raw| intake.row(raw));
        let row = row.map_err(|why| self.refuse(metric.name, why.reason, &why.text, intake));
        Some(Place {
            metric,
            attributes,
            row: row.ok()?,
            at: moment(time_unix_nano),
            is_ended: flags & NO_RECORDED_VALUE != 0,
        })
    }

    /// Delivers one sample of a point, of the metric name followed by `suffix`.
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
            Some(slot) => Ok(slot),
            None => self.learn(place, suffix, extra, intake),
        };
        match slot {
            Ok(slot) => {
                self.told += 1;
                intake.sample(slot, place.at, value, self.point);
            }
            Err(why) => self.refuse(place.metric.name, why.reason, &why.text, intake),
        }
    }

    /// The slot of a new series of the row.
    #[cold]
    fn learn(
        &mut self,
        place: Place<'_>,
        suffix: &'static str,
        extra: Option<(&str, &str)>,
        intake: &mut impl Intake,
    ) -> Result<Slot, Refused> {
        self.raw.spend()?;
        let metric = format!("{}{suffix}", place.metric.name);
        let (origin, attributes) = (place.metric.origin, place.attributes);
        labels::name(&mut self.name, &metric, origin, attributes, extra)?;
        self.name.finish()?;
        intake.learn(place.row, self.text.as_bytes(), &self.name)
    }

    /// Refuses a point for its value.
    fn refuse_value(&mut self, place: Place<'_>, why: &str, intake: &mut impl Intake) {
        self.refuse(place.metric.name, Reason::Value, why, intake);
    }

    #[cold]
    fn refuse(&mut self, metric: &str, reason: Reason, why: &str, intake: &mut impl Intake) {
        self.told += 1;
        let name = shown(metric);
        intake.refuse(self.point, reason, format_args!("{name}: {why}"));
    }
}
