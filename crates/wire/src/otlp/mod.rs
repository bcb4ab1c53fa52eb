//! OTLP metrics, as exported by OpenTelemetry SDKs and collectors.
//!
//! The messages are those of the `opentelemetry-proto` crate, as protobuf or
//! JSON. A data point becomes one sample or several: a histogram one for each
//! bucket and for its sum and count, a summary one for each quantile. `labels` and
//! `docs/protocols.md` describe how attributes become labels.
//!
//! Refused data points are counted, for the partial success of the response. Tested by `tests.rs` and the fuzz target `otlp`.

mod json;
mod labels;
mod metric;
mod naming;
mod points;
mod raw;
#[cfg(test)]
mod tests;
mod weight;

pub use naming::{Naming, Translation};
pub use points::Decoder;
pub use weight::weight;

use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use prost::Message;

/// Bytes of a metric name in an error text.
const SHOWN_BYTES_MAX: usize = 200;

/// A metric name for an error text: truncated, since a thousand texts are kept and
/// a name may be as long as a body.
fn shown(name: &str) -> &str {
    &name[..name.floor_char_boundary(SHOWN_BYTES_MAX)]
}

/// The encoding of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/x-protobuf`.
    Protobuf,
    /// `application/json`.
    Json,
}

/// Parses a request, which may take many times the memory of its body: see [`weight()`].
///
/// # Errors
/// The first error in the message.
pub fn read(encoding: Encoding, body: &[u8]) -> Result<ExportMetricsServiceRequest, String> {
    match encoding {
        Encoding::Protobuf => {
            ExportMetricsServiceRequest::decode(body).map_err(|error| error.to_string())
        }
        Encoding::Json => json::read(body),
    }
}

/// The response to a request with this many refused data points.
pub fn answer(encoding: Encoding, rejected: u64, why: &str) -> Vec<u8> {
    let partial = ExportMetricsPartialSuccess {
        rejected_data_points: i64::try_from(rejected).unwrap_or(i64::MAX),
        error_message: why.to_owned(),
    };
    let is_partial = rejected > 0 || !why.is_empty();
    let response = ExportMetricsServiceResponse {
        partial_success: is_partial.then_some(partial),
    };
    match (encoding, &response.partial_success) {
        (Encoding::Protobuf, _) => response.encode_to_vec(),
        (Encoding::Json, None) => b"{}".to_vec(),
        // In JSON a 64-bit number is a string.
        (Encoding::Json, Some(partial)) => serde_json::json!({"partialSuccess": {
            "rejectedDataPoints": partial.rejected_data_points.to_string(),
            "errorMessage": partial.error_message,
        }})
        .to_string()
        .into_bytes(),
    }
}

/// `google.rpc.Status`, the body of an error.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// The body of an error with a code of gRPC: 3 is an invalid argument, 14
/// unavailable.
pub fn status(encoding: Encoding, code: i32, message: &str) -> Vec<u8> {
    match encoding {
        Encoding::Json => serde_json::json!({"code": code, "message": message})
            .to_string()
            .into_bytes(),
        Encoding::Protobuf => {
            let message = message.to_owned();
            Status { code, message }.encode_to_vec()
        }
    }
}
