//! Labels from attributes.
//!
//! A label has the name of its attribute, dots included. An attribute of the data
//! point overrides one of the resource. The name of the instrumentation scope is
//! the label `otel.scope.name`, unless it is empty or an attribute has that name.
//! Strings are used as they are, numbers and booleans as in JSON, bytes in
//! hexadecimal, lists and maps as JSON. An attribute without a value, or with an
//! empty string, makes no label.

use crate::series_name::{METRIC, SeriesName};
use latewood_model::limits::LABEL_BYTES_MAX;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use std::collections::HashSet;
use std::fmt::Write;

/// The label of the instrumentation scope's name.
const SCOPE: &str = "otel.scope.name";
/// Nesting depth of lists and maps; deeper ones are written as `null`.
const DEPTH_MAX: usize = 8;

/// The origin of a data point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) resource: &'a [KeyValue],
    pub(super) scope: &'a str,
}

/// Builds the name of a series from a metric, attributes, and one more label
/// (`le`, `quantile`), which overrides all others.
pub(super) fn name(
    name: &mut SeriesName,
    metric: &str,
    origin: Origin<'_>,
    attributes: &[KeyValue],
    extra: Option<(&str, &str)>,
) {
    name.begin(metric.as_bytes());
    let is_extra = |key: &str| extra.is_some_and(|(extra, _)| extra == key);
    let is_own = |key: &str| is_extra(key) || key.as_bytes() == METRIC;
    let mut text = String::new();
    let mut label = |key: &str, value: &Option<AnyValue>| {
        text.clear();
        append_value(&mut text, value.as_ref());
        name.label(key.as_bytes(), text.as_bytes());
    };
    for attribute in attributes
        .iter()
        .filter(|attribute| !is_own(&attribute.key))
    {
        label(&attribute.key, &attribute.value);
    }
    let inner = attributes.iter().map(|attribute| &*attribute.key);
    let inner: HashSet<&str> = inner.collect();
    let is_inner = |key: &str| inner.contains(key);
    let outer = origin.resource.iter();
    for attribute in outer.filter(|attribute| !is_own(&attribute.key) && !is_inner(&attribute.key))
    {
        label(&attribute.key, &attribute.value);
    }
    let is_resource = origin
        .resource
        .iter()
        .any(|attribute| attribute.key == SCOPE);
    if !is_resource && !is_inner(SCOPE) {
        name.label(SCOPE.as_bytes(), origin.scope.as_bytes());
    }
    if let Some((key, value)) = extra {
        name.label(key.as_bytes(), value.as_bytes());
    }
}

/// Appends the text of an attribute's value.
pub(super) fn append_value(out: &mut String, value: Option<&AnyValue>) {
    append(out, value, true, DEPTH_MAX);
}

/// Appends a value as JSON, except for a string that is the whole label.
fn append(out: &mut String, value: Option<&AnyValue>, is_whole: bool, depth: usize) {
    // Already too long for a label.
    if out.len() > LABEL_BYTES_MAX {
        return;
    }
    // Writing to a String cannot fail.
    match value.and_then(|value| value.value.as_ref()) {
        None | Some(Value::StringValueStrindex(_)) if is_whole => {}
        Some(Value::StringValue(text)) if is_whole => out.push_str(text),
        Some(Value::StringValue(text)) => {
            let _ = write!(out, "{}", serde_json::json!(text));
        }
        Some(Value::BoolValue(value)) => {
            let _ = write!(out, "{value}");
        }
        Some(Value::IntValue(value)) => {
            let _ = write!(out, "{value}");
        }
        Some(Value::DoubleValue(value)) => {
            let _ = write!(out, "{value}");
        }
        Some(Value::BytesValue(bytes)) => {
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
        }
        Some(Value::ArrayValue(list)) if depth > 0 => {
            for (at, value) in list.values.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                append(out, Some(value), false, depth - 1);
            }
            out.push_str(if list.values.is_empty() { "[]" } else { "]" });
        }
        Some(Value::KvlistValue(map)) if depth > 0 => {
            for (at, pair) in map.values.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                let _ = write!(out, "{}:", serde_json::json!(pair.key));
                append(out, pair.value.as_ref(), false, depth - 1);
            }
            out.push_str(if map.values.is_empty() { "{}" } else { "}" });
        }
        _ => out.push_str("null"),
    }
}
