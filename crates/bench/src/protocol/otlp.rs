//! OpenTelemetry's OTLP: a resource for each host, whose attributes are its tags, and a gauge for
//! each field. In protobuf as exporters post it, in JSON as files of the collector hold it.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::common::{by_host, metric};
use crate::base::error::{Doing, Result};
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

pub(super) fn encode(load: &CpuLoad, batch: &Batch) -> Vec<u8> {
    request(load, batch).encode_to_vec()
}

pub(crate) fn json_line(load: &CpuLoad, batch: &Batch) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&request(load, batch)).doing("write OTLP in JSON")?;
    line.push(b'\n');
    Ok(line)
}

fn request(load: &CpuLoad, batch: &Batch) -> ExportMetricsServiceRequest {
    let resource = |(host, lines): (u32, Vec<u32>)| {
        let gauges = (0..FIELDS.len()).map(|field| gauge(load, &lines, field));
        ResourceMetrics {
            resource: Some(Resource {
                attributes: attributes(load, host),
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                metrics: gauges.collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }
    };
    ExportMetricsServiceRequest {
        resource_metrics: by_host(load, batch).into_iter().map(resource).collect(),
    }
}

fn attributes(load: &CpuLoad, host: u32) -> Vec<KeyValue> {
    let attribute = |(name, value): (&&str, &String)| KeyValue {
        key: (*name).to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.clone())),
        }),
        ..KeyValue::default()
    };
    TAGS.iter().zip(load.tags(host)).map(attribute).collect()
}

fn gauge(load: &CpuLoad, lines: &[u32], field: usize) -> Metric {
    let point = |line: &u32| NumberDataPoint {
        // The times of a load lie after 1970.
        time_unix_nano: load.timestamp_ms(*line).unsigned_abs() * 1_000_000,
        value: Some(number_data_point::Value::AsInt(i64::from(
            load.fields(*line)[field],
        ))),
        ..NumberDataPoint::default()
    };
    Metric {
        name: metric(FIELDS[field]),
        data: Some(Data::Gauge(Gauge {
            data_points: lines.iter().map(point).collect(),
        })),
        ..Metric::default()
    }
}
