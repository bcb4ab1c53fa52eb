//! Requests in JSON, by protobuf's JSON mapping.
//!
//! `prost-reflect` reads them by the descriptors of the messages: numbers may be quoted, NaN and the
//! infinities are strings, `null` is absent, bytes are base64, names are in camel case or as in the
//! `.proto` files, and unknown fields are ignored. An error names the metric and the field. Before
//! that, the body is walked once for fields that are given twice, of which the library would keep
//! the last. (The
//! messages of `opentelemetry-proto` deserialise themselves too, but know less of the mapping, and
//! take a metric with unreadable data for one without data.)

use super::shown;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::{Deserializer, Path, Segment, Track};
use std::collections::HashSet;
use std::fmt;
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
    let mut track = Track::new();
    let walked = Distinct.deserialize(Deserializer::new(
        &mut serde_json::Deserializer::from_slice(body),
        &mut track,
    ));
    walked.map_err(|error| wrong(body, &track.path(), &error))?;
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

/// The name of the metric that the path leads into, also if what follows the name is not JSON.
fn metric_at(body: &[u8], path: &Path) -> Option<String> {
    // Into a resource, a scope and a metric: a list and an index each.
    const SEGMENTS: usize = 6;
    let path: Vec<_> = path.iter().take(SEGMENTS).collect();
    let mut name = None;
    if path.len() == SEGMENTS {
        let of_metric = NameAt {
            path: &path,
            name: &mut name,
        };
        // The body has an error, perhaps behind the name.
        let _ = of_metric.deserialize(&mut serde_json::Deserializer::from_slice(body));
    }
    name
}

/// Finds the name of the object at a path.
struct NameAt<'a, 'p> {
    path: &'a [&'p Segment],
    name: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for NameAt<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NameAt<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(found) = map.next_key::<String>()? {
            match self.path.split_first() {
                None if found == "name" => *self.name = map.next_value()?,
                Some((Segment::Map { key }, path)) if *key == found => {
                    let name = &mut *self.name;
                    map.next_value_seed(NameAt { path, name })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((Segment::Seq { index }, path)) = self.path.split_first() else {
            return Ok(());
        };
        for _ in 0..*index {
            list.next_element::<IgnoredAny>()?;
        }
        let name = self.name;
        list.next_element_seed(NameAt { path, name }).map(drop)
    }
}

/// Takes any JSON in which no object has a field twice, by either of its names.
#[derive(Clone, Copy)]
struct Distinct;

impl<'de> DeserializeSeed<'de> for Distinct {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if let Some(again) = names.replace(in_camel_case(&name)) {
                return Err(A::Error::custom(format_args!(
                    "the field {:?} is given twice",
                    shown(&again)
                )));
            }
            map.next_value_seed(self)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The name of a field in JSON, from that or from the one in the `.proto` files.
fn in_camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let (initial, rest) = word.split_at(word.ceil_char_boundary(1));
        name += &initial.to_ascii_uppercase();
        name + rest
    })
}
