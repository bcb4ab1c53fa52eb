//! Requests in JSON, by protobuf's JSON mapping.
//!
//! `prost-reflect` reads them by the descriptors of the messages: numbers may be quoted, NaN and the
//! infinities are strings, `null` is absent, bytes are base64, names are in camel case or as in the
//! `.proto` files, and unknown fields are ignored. An error names the metric and the field. (The
//! messages of `opentelemetry-proto` deserialise themselves too, but know less of the mapping, and
//! take a metric with unreadable data for one without data.)

use super::shown;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde_json::Value;
use serde_path_to_error::{Deserializer, Path, Segment, Track};
use std::fmt::Display;
use std::sync::LazyLock;

/// The type of a request.
static REQUEST: LazyLock<MessageDescriptor> = LazyLock::new(|| {
    let name = "opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest";
    let pool = DescriptorPool::decode(opentelemetry_proto::DESCRIPTORS);
    let request = pool.expect("the crate's descriptors are valid");
    let request = request.get_message_by_name(name);
    request.expect("the crate describes all of its messages")
});

/// Parses a request.
///
/// # Errors
/// The first error, with the metric and field if it is in one, and its position.
pub(super) fn read(body: &[u8]) -> Result<ExportMetricsServiceRequest, String> {
    let request = dynamic(body)?.encode_to_vec();
    ExportMetricsServiceRequest::decode(&*request).map_err(|error| error.to_string())
}

fn dynamic(body: &[u8]) -> Result<DynamicMessage, String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let mut track = Track::new();
    let tracked = Deserializer::new(&mut json, &mut track);
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let request = DynamicMessage::deserialize_with_options(REQUEST.clone(), tracked, &options);
    let request = request.map_err(|error| wrong(body, &track.path(), &error))?;
    json.end().map_err(|error| error.to_string())?;
    Ok(request)
}

/// An error at this path, with the name of the metric that it is in.
#[cold]
fn wrong(body: &[u8], path: &Path, error: &dyn Display) -> String {
    let at = match path.iter().next() {
        Some(_) => format!("{path}: {error}"),
        None => error.to_string(),
    };
    match metric_at(body, path) {
        Some(name) => format!("metric {:?}: {at}", shown(&name)),
        None => at,
    }
}

/// The name of the metric that the path leads into.
fn metric_at(body: &[u8], path: &Path) -> Option<String> {
    // Into a resource, a scope and a metric: a list and an index each.
    const SEGMENTS: usize = 6;
    let request = serde_json::from_slice::<Value>(body).ok()?;
    let mut segments = path.iter().take(SEGMENTS);
    let metric = segments.try_fold(&request, |value, segment| match segment {
        Segment::Map { key } => value.get(key),
        Segment::Seq { index } => value.get(index),
        _ => None,
    })?;
    Some(metric.get("name")?.as_str()?.to_owned())
}
