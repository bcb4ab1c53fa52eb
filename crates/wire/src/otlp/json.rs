//! Requests in JSON.
//!
//! The messages of `opentelemetry-proto` deserialise themselves, except metrics:
//! they would take a metric with unreadable data for one without data and lose
//! its points silently. Metrics and the messages that contain them are read here.

use super::shown;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// Parses a request.
///
/// # Errors
/// The first error and its position.
pub(super) fn read(body: &[u8]) -> Result<ExportMetricsServiceRequest, String> {
    let request: Request = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let resource_metrics = request.resource_metrics.into_iter();
    Ok(ExportMetricsServiceRequest {
        resource_metrics: resource_metrics.map(OfResource::whole).collect(),
    })
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request {
    resource_metrics: Vec<OfResource>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OfResource {
    resource: Option<Resource>,
    scope_metrics: Vec<OfScope>,
    schema_url: String,
}

impl OfResource {
    fn whole(self) -> ResourceMetrics {
        let scope_metrics = self.scope_metrics.into_iter();
        ResourceMetrics {
            resource: self.resource,
            scope_metrics: scope_metrics.map(OfScope::whole).collect(),
            schema_url: self.schema_url,
        }
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OfScope {
    scope: Option<InstrumentationScope>,
    metrics: Vec<OfMetric>,
    schema_url: String,
}

impl OfScope {
    fn whole(self) -> ScopeMetrics {
        ScopeMetrics {
            scope: self.scope,
            metrics: self.metrics.into_iter().map(|metric| metric.0).collect(),
            schema_url: self.schema_url,
        }
    }
}

struct OfMetric(Metric);

/// The fields of a metric.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", field_identifier)]
enum Field {
    Name,
    Description,
    Unit,
    Metadata,
    Gauge,
    Sum,
    Histogram,
    ExponentialHistogram,
    Summary,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for OfMetric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Metric;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a metric")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Metric, A::Error> {
        let mut metric = Metric::default();
        while let Some(field) = fields.next_key()? {
            match field {
                Field::Name => metric.name = fields.next_value()?,
                Field::Description => metric.description = fields.next_value()?,
                Field::Unit => metric.unit = fields.next_value()?,
                Field::Metadata => metric.metadata = fields.next_value()?,
                Field::Unknown => drop(fields.next_value::<IgnoredAny>()?),
                Field::Gauge => data(&mut metric, &mut fields, Data::Gauge)?,
                Field::Sum => data(&mut metric, &mut fields, Data::Sum)?,
                Field::Histogram => data(&mut metric, &mut fields, Data::Histogram)?,
                Field::ExponentialHistogram => {
                    data(&mut metric, &mut fields, Data::ExponentialHistogram)?;
                }
                Field::Summary => data(&mut metric, &mut fields, Data::Summary)?,
            }
        }
        Ok(metric)
    }
}

/// Reads the data of a metric, which may occur once; `null` means no data.
fn data<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    metric: &mut Metric,
    fields: &mut A,
    kind: impl FnOnce(T) -> Data,
) -> Result<(), A::Error> {
    let given: Option<T> = match fields.next_value() {
        Ok(given) => given,
        Err(error) => return Err(wrong(metric, &error)),
    };
    if given.is_some() && metric.data.is_some() {
        return Err(wrong(metric, &"more than one kind of data"));
    }
    if let Some(given) = given {
        metric.data = Some(kind(given));
    }
    Ok(())
}

/// An error that names the metric, if its name precedes its data, as it usually
/// does.
#[cold]
fn wrong<E: Error>(metric: &Metric, why: &dyn fmt::Display) -> E {
    match shown(&metric.name) {
        "" => E::custom(format_args!("a metric: {why}")),
        name => E::custom(format_args!("metric {name:?}: {why}")),
    }
}
