//! Labels from attributes, as Prometheus 3 makes them.
//!
//! The attributes of a data point are labels. Of those of the resource, `service.name` (after
//! `service.namespace` and a slash, if there is one) is the label `job` and `service.instance.id` the
//! label `instance`; those that are promoted are labels where the point has none of that name, and all
//! others are labels of `target_info` alone: a process that starts again does not make new series.
//! Scopes make labels only where that is asked for.
//!
//! Strings are used as they are, numbers and booleans as in JSON, bytes in
//! hexadecimal, lists and maps as JSON. An attribute without a value, or with an
//! empty string, makes no label. Values of attributes whose names become the same are joined by `;`.

use super::naming::Naming;
use crate::intake::{Reason, Refused};
use crate::series_name::{METRIC, SeriesName};
use latewood_model::limits::LABEL_BYTES_MAX;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Nesting depth of lists and maps; deeper ones are written as `null`.
const DEPTH_MAX: usize = 8;

const NAMESPACE: &str = "service.namespace";
const SERVICE: &str = "service.name";
const INSTANCE: &str = "service.instance.id";

/// The origin of a data point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) naming: &'a Naming,
    pub(super) resource: &'a [KeyValue],
    pub(super) scope: Option<&'a InstrumentationScope>,
    pub(super) schema_url: &'a str,
}

/// Builds the name of a series from a metric, attributes, and one more label
/// (`le`, `quantile`), which overrides all others.
pub(super) fn name(
    name: &mut SeriesName,
    metric: &str,
    origin: Origin<'_>,
    attributes: &[KeyValue],
    extra: Option<(&str, &str)>,
) -> Result<(), Refused> {
    let mut labels = of_attributes(origin.naming, &mut attributes.iter())?;
    let promoted = origin.resource.iter();
    let mut promoted = promoted.filter(|one| origin.naming.promotes(&one.key));
    for (key, value) in of_attributes(origin.naming, &mut promoted)? {
        labels.entry(key).or_insert(value);
    }
    if origin.naming.scope_labels {
        add_scope(&mut labels, origin)?;
    }
    add_identity(&mut labels, origin.resource);
    labels.extend(extra.map(|(key, value)| (key.to_owned(), value.to_owned())));
    put(name, metric, &labels);
    Ok(())
}

/// Builds the name of the series that describes a resource.
pub(super) fn target_info(
    name: &mut SeriesName,
    metric: &str,
    naming: &Naming,
    resource: &[KeyValue],
) -> Result<(), Refused> {
    let mut described = resource.iter().filter(|one| !is_identity(&one.key));
    let mut labels = of_attributes(naming, &mut described)?;
    add_identity(&mut labels, resource);
    put(name, metric, &labels);
    Ok(())
}

/// Whether there is something to tell of a resource, and a name to tell it of.
pub(super) fn has_target_info(resource: &[KeyValue]) -> bool {
    let is_named = |one: &KeyValue| one.key == SERVICE || one.key == INSTANCE;
    resource.iter().any(is_named) && resource.iter().any(|one| !is_identity(&one.key))
}

fn is_identity(key: &str) -> bool {
    matches!(key, NAMESPACE | SERVICE | INSTANCE)
}

fn put(name: &mut SeriesName, metric: &str, labels: &BTreeMap<String, String>) {
    name.begin(metric.as_bytes());
    for (key, value) in labels {
        name.label(key.as_bytes(), value.as_bytes());
    }
}

/// The labels of attributes.
fn of_attributes(
    naming: &Naming,
    attributes: &mut dyn Iterator<Item = &KeyValue>,
) -> Result<BTreeMap<String, String>, Refused> {
    let mut sorted: Vec<_> = attributes
        .filter(|one| one.key.as_bytes() != METRIC)
        .collect();
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for attribute in sorted {
        let key = label(naming, &attribute.key)?;
        let value = labels.entry(key).or_default();
        if !value.is_empty() {
            value.push(';');
        }
        append_value(value, attribute.value.as_ref());
    }
    Ok(labels)
}

/// Adds the labels of the scope, which override others.
fn add_scope(labels: &mut BTreeMap<String, String>, origin: Origin<'_>) -> Result<(), Refused> {
    let Some(scope) = origin.scope.filter(|scope| !scope.name.is_empty()) else {
        return Ok(());
    };
    for (key, value) in [
        ("otel_scope_name", &*scope.name),
        ("otel_scope_version", &*scope.version),
        ("otel_scope_schema_url", origin.schema_url),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    for attribute in &scope.attributes {
        let key = label(origin.naming, &format!("otel_scope_{}", attribute.key))?;
        let mut value = String::new();
        append_value(&mut value, attribute.value.as_ref());
        labels.insert(key, value);
    }
    Ok(())
}

/// Adds what tells one resource from another, which overrides others.
fn add_identity(labels: &mut BTreeMap<String, String>, resource: &[KeyValue]) {
    let text = |key: &str| {
        let attribute = resource.iter().find(|one| one.key == key)?;
        let mut text = String::new();
        append_value(&mut text, attribute.value.as_ref());
        Some(text)
    };
    if let Some(service) = text(SERVICE) {
        let job = match text(NAMESPACE) {
            Some(namespace) => format!("{namespace}/{service}"),
            None => service,
        };
        labels.insert("job".to_owned(), job);
    }
    if let Some(instance) = text(INSTANCE) {
        labels.insert("instance".to_owned(), instance);
    }
}

fn label(naming: &Naming, key: &str) -> Result<String, Refused> {
    let translated = naming.translation.label(key);
    let translated = translated.map_err(|text| Refused {
        reason: Reason::Name,
        text,
    })?;
    Ok(translated.into_owned())
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
