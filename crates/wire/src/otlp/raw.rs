//! The bytes that identify data points: resource, scope, metric, attributes.
//!
//! Each level is written once for everything inside it. A few bytes of a request
//! can refer to many, as a point without attributes does to those of its resource,
//! so both the bytes of a point and those of all points together are bounded.

use super::labels::{self, Origin};
use crate::intake::{Reason, Refused};
use crate::series_name::NameError;
use latewood_model::limits::{LABEL_BYTES_MAX, LABELS_MAX};
use opentelemetry_proto::tonic::common::v1::KeyValue;

/// Bytes of one point: the longest labels, and those of the resource that they
/// override.
const POINT_BYTES_MAX: usize = 2 * LABEL_BYTES_MAX;
/// Bytes of all points of one request together.
const REQUEST_BYTES_MAX: u64 = 4 << 30;

/// The bytes of the point at hand; reuses its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw {
    bytes: Vec<u8>,
    resource_end: usize,
    scope_end: usize,
    metric_end: usize,
    /// Bytes looked up or named in this request.
    spent: u64,
    text: String,
}

impl Raw {
    /// Begins with a request.
    pub(super) fn request(&mut self) {
        self.spent = 0;
    }

    /// Begins with a resource.
    pub(super) fn resource(&mut self, attributes: &[KeyValue]) {
        self.bytes.clear();
        // Attribute names are arbitrary: their number delimits them.
        let count = attributes.len() as u64;
        self.bytes.extend_from_slice(&count.to_le_bytes());
        self.append(attributes);
        self.resource_end = self.bytes.len();
    }

    /// Begins with a scope of the resource, which counts only where it makes labels.
    pub(super) fn scope(&mut self, origin: Origin<'_>) {
        self.bytes.truncate(self.resource_end);
        if origin.naming.scope_labels
            && let Some(scope) = origin.scope
        {
            for part in [&*scope.name, &scope.version, origin.schema_url] {
                append_part(&mut self.bytes, part.as_bytes());
            }
            self.append(&scope.attributes);
        }
        self.scope_end = self.bytes.len();
    }

    /// Begins with a metric of the scope.
    pub(super) fn metric(&mut self, name: &str) {
        self.bytes.truncate(self.scope_end);
        append_part(&mut self.bytes, name.as_bytes());
        self.metric_end = self.bytes.len();
    }

    /// The bytes of a point of the metric.
    pub(super) fn point(
        &mut self,
        origin: Origin<'_>,
        attributes: &[KeyValue],
    ) -> Result<&[u8], Refused> {
        if origin.resource.len() > LABELS_MAX || attributes.len() > LABELS_MAX {
            return Err(NameError::TooMany.into());
        }
        self.bytes.truncate(self.metric_end);
        self.append(attributes);
        if self.bytes.len() > POINT_BYTES_MAX {
            return Err(NameError::TooLong.into());
        }
        // With a delimiter, a row is rarely a prefix of another.
        append_part(&mut self.bytes, &[0; 5]);
        self.spend()?;
        Ok(&self.bytes)
    }

    /// Counts the bytes of the point once more.
    pub(super) fn spend(&mut self) -> Result<(), Refused> {
        self.spent += self.bytes.len() as u64;
        if self.spent <= REQUEST_BYTES_MAX {
            return Ok(());
        }
        Err(Refused {
            reason: Reason::Limit,
            text: "the names and attributes of the request's data points take too many bytes \
                   together: send fewer at a time"
                .to_owned(),
        })
    }

    /// Adds raw attributes, up to the limit.
    fn append(&mut self, attributes: &[KeyValue]) {
        for attribute in attributes {
            if self.bytes.len() > POINT_BYTES_MAX {
                return;
            }
            append_part(&mut self.bytes, attribute.key.as_bytes());
            self.text.clear();
            labels::append_value(&mut self.text, attribute.value.as_ref());
            append_part(&mut self.bytes, self.text.as_bytes());
        }
    }
}

/// Adds a part, preceded by its length.
fn append_part(bytes: &mut Vec<u8>, part: &[u8]) {
    // A body is far shorter than 4 GiB.
    bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
    bytes.extend_from_slice(part);
}
