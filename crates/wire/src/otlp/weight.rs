//! The memory that a request takes once it is parsed.
//!
//! An empty message takes two bytes on the wire and up to hundreds in memory, so a
//! small body could take any amount. The weight is computed before parsing: for
//! protobuf from the type of each message, for JSON from the number of opening
//! brackets and commas, an upper bound: a message is read into a tree of its fields
//! before it becomes one of its type.

use super::Encoding;
use crate::protobuf::{Fields, ProtobufError, Value};
use opentelemetry_proto::tonic::common::v1::{AnyValue, EntityRef, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogramDataPoint, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, SummaryDataPoint,
};
use std::mem::size_of;

/// Depth of nested messages.
const DEPTH_MAX: usize = 100;
/// Capacity of a list that is not empty.
const LIST_PLACES_MIN: usize = 4;
/// A field of a message in JSON, or an element of a list that has grown to twice its length.
const JSON_VALUE_BYTES: usize = 2 * size_of::<prost_reflect::Value>();
/// A message in JSON: itself, and a node for eleven of its fields.
const JSON_MESSAGE_BYTES: usize = 12 * (size_of::<prost_reflect::Value>() + size_of::<u64>());

/// A type of message.
struct Kind {
    /// Bytes of one message, unless it is stored inline in another.
    bytes: usize,
    /// Bytes per byte of its numbers.
    of_byte: usize,
    /// Its messages and strings that take memory, by field.
    parts: &'static [(u32, &'static Self)],
}

const fn list(bytes: usize, parts: &'static [(u32, &'static Kind)]) -> Kind {
    Kind {
        bytes,
        of_byte: 0,
        parts,
    }
}

const fn in_place(parts: &'static [(u32, &'static Kind)]) -> Kind {
    list(0, parts)
}

static REQUEST: Kind = in_place(&[(1, &RESOURCE_METRICS)]);
static RESOURCE_METRICS: Kind = list(
    size_of::<ResourceMetrics>(),
    &[(1, &RESOURCE), (2, &SCOPE_METRICS)],
);
static RESOURCE: Kind = in_place(&[(1, &ATTRIBUTE), (3, &ENTITY)]);
static ENTITY: Kind = list(size_of::<EntityRef>(), &[(3, &TEXT), (4, &TEXT)]);
static SCOPE_METRICS: Kind = list(size_of::<ScopeMetrics>(), &[(1, &SCOPE), (2, &METRIC)]);
static SCOPE: Kind = in_place(&[(3, &ATTRIBUTE)]);
static METRIC: Kind = list(
    size_of::<Metric>(),
    &[
        (5, &NUMBERS),
        (7, &NUMBERS),
        (9, &HISTOGRAMS),
        (10, &EXPONENTIALS),
        (11, &SUMMARIES),
        (12, &ATTRIBUTE),
    ],
);
static NUMBERS: Kind = in_place(&[(1, &NUMBER)]);
static NUMBER: Kind = list(
    size_of::<NumberDataPoint>(),
    &[(5, &EXEMPLAR), (7, &ATTRIBUTE)],
);
static HISTOGRAMS: Kind = in_place(&[(1, &HISTOGRAM)]);
static HISTOGRAM: Kind = list(
    size_of::<HistogramDataPoint>(),
    &[(8, &EXEMPLAR), (9, &ATTRIBUTE)],
);
static EXPONENTIALS: Kind = in_place(&[(1, &EXPONENTIAL)]);
static EXPONENTIAL: Kind = list(
    size_of::<ExponentialHistogramDataPoint>(),
    &[
        (1, &ATTRIBUTE),
        (8, &BUCKETS),
        (9, &BUCKETS),
        (11, &EXEMPLAR),
    ],
);
/// A packed number takes at least one byte and becomes eight.
static BUCKETS: Kind = Kind {
    bytes: 0,
    of_byte: size_of::<u64>(),
    parts: &[],
};
static SUMMARIES: Kind = in_place(&[(1, &SUMMARY)]);
static SUMMARY: Kind = list(
    size_of::<SummaryDataPoint>(),
    &[(6, &QUANTILE), (7, &ATTRIBUTE)],
);
static QUANTILE: Kind = list(size_of::<ValueAtQuantile>(), &[]);
static EXEMPLAR: Kind = list(size_of::<Exemplar>(), &[(7, &ATTRIBUTE)]);
static ATTRIBUTE: Kind = list(size_of::<KeyValue>(), &[(2, &VALUE)]);
static VALUE: Kind = in_place(&[(5, &VALUES), (6, &ATTRIBUTES)]);
static VALUES: Kind = in_place(&[(1, &VALUE_IN_LIST)]);
static VALUE_IN_LIST: Kind = list(size_of::<AnyValue>(), VALUE.parts);
static ATTRIBUTES: Kind = in_place(&[(1, &ATTRIBUTE)]);
static TEXT: Kind = list(size_of::<String>(), &[]);

/// Approximate memory in bytes that [`read`](super::read) takes for a request,
/// beside its body. One pass over the keys of the body, no allocation.
///
/// # Errors
/// An invalid message.
pub fn weight(encoding: Encoding, body: &[u8]) -> Result<usize, String> {
    let of_parts = match encoding {
        Encoding::Protobuf => weigh(body, &REQUEST, 0).map_err(|error| error.to_string())?,
        Encoding::Json => {
            let count = |sign| memchr::memchr_iter(sign, body).count();
            count(b'{') * JSON_MESSAGE_BYTES
                + (LIST_PLACES_MIN * count(b'[') + count(b',')) * JSON_VALUE_BYTES
        }
    };
    // Strings are copied.
    Ok(body.len().saturating_add(of_parts))
}

fn weigh(message: &[u8], kind: &Kind, depth: usize) -> Result<usize, ProtobufError> {
    if depth > DEPTH_MAX {
        return Err(ProtobufError::Malformed);
    }
    let mut bytes = message.len() * kind.of_byte;
    let mut lists = 0u32;
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        let Value::Bytes(part) = value else { continue };
        let Some((_, of_part)) = kind.parts.iter().find(|part| part.0 == number) else {
            continue;
        };
        let is_first = lists & (1 << number) == 0;
        lists |= 1 << number;
        let places = if is_first { LIST_PLACES_MIN } else { 1 };
        bytes += places * of_part.bytes + weigh(part, of_part, depth + 1)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::read;
    use prost::Message;

    /// A protobuf field of bytes.
    fn field(number: u32, part: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        prost::encoding::bytes::encode(number, &part.to_vec(), &mut out);
        out
    }

    /// A request with `part` nested in messages of these fields.
    fn nested(path: &[u32], part: &[u8]) -> Vec<u8> {
        let inner_first = path.iter().rev();
        inner_first.fold(part.to_vec(), |part, number| field(*number, &part))
    }

    #[test]
    fn empty_messages_weigh_what_they_take_in_memory() {
        let number = size_of::<NumberDataPoint>();
        let paths: [(&[u32], u8, usize); 9] = [
            (&[], 1, size_of::<ResourceMetrics>()),
            (&[1, 1], 1, size_of::<KeyValue>()),
            (&[1, 1, 3], 3, size_of::<String>()),
            (&[1], 2, size_of::<ScopeMetrics>()),
            (&[1, 2], 2, size_of::<Metric>()),
            (&[1, 2, 2, 7], 1, number),
            (
                &[1, 2, 2, 10],
                1,
                size_of::<ExponentialHistogramDataPoint>(),
            ),
            (&[1, 2, 2, 5, 1], 5, size_of::<Exemplar>()),
            (&[1, 2, 2, 5, 1, 7, 2, 5], 1, size_of::<AnyValue>()),
        ];
        for (path, number, bytes) in paths {
            let body = nested(path, &[number << 3 | 2, 0].repeat(10_000));
            let weight = weight(Encoding::Protobuf, &body).unwrap();
            assert!(weight >= 10_000 * bytes, "{path:?}: {weight}");
            assert!(weight < 10_000 * (bytes + 2) + 4096, "{path:?}: {weight}");
        }
        let body = nested(&[1, 2, 2, 10, 1, 8, 2], &[1; 10_000]);
        assert!(weight(Encoding::Protobuf, &body).unwrap() >= 80_000);
    }

    #[test]
    fn json_weighs_no_less_than_the_same_request_in_protobuf() {
        let points = r#"{"timeUnixNano":"1","asInt":"2","attributes":[{"key":"a",
            "value":{"stringValue":"b"}}]},"#
            .repeat(1000);
        let points = points.trim_end_matches(',');
        let json = format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[
            {{"name":"m","gauge":{{"dataPoints":[{points}]}}}}]}}]}}]}}"#
        );
        let request = read(Encoding::Json, json.as_bytes()).unwrap();
        let in_json = weight(Encoding::Json, json.as_bytes()).unwrap();
        let in_protobuf = weight(Encoding::Protobuf, &request.encode_to_vec()).unwrap();
        assert!(in_json >= in_protobuf, "{in_json} {in_protobuf}");
        // A usual request takes a few times its length.
        assert!(in_json < 40 * json.len(), "{in_json} {}", json.len());
    }

    #[test]
    fn what_is_no_message_or_too_deep_has_no_weight() {
        assert!(weight(Encoding::Protobuf, b"\x0a\xff").is_err());
        // A group, which could hide the rest.
        assert!(weight(Encoding::Protobuf, b"\x4b\x4c").is_err());
        let path: Vec<u32> = [1, 1, 1, 2].into_iter().chain([5, 1].repeat(60)).collect();
        let deep = nested(&path, b"");
        assert!(weight(Encoding::Protobuf, &deep).is_err());
        assert!(read(Encoding::Protobuf, &deep).is_err());
        assert!(weight(Encoding::Protobuf, &nested(&path[..80], b"")).is_ok());
    }
}
