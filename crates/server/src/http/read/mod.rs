//! Reading over HTTP.
//!
//! `/api/v1/series`, `/api/v1/labels` and `/api/v1/label/NAME/values` have the
//! shape of Prometheus' HTTP API, `/api/v1/read` is its remote read,
//! `/api/v1/export` gives samples as JSON lines, CSV or Arrow, `/federate` the newest ones,
//! [`promql`] queries. Series are found
//! and named by [`crate::labelled`].
//!
//! ```text
//! asked       user, parameters, and what may be read
//!   walk      samples of one series after the other, in bounded parts
//!   stream    an answer in pieces, each made once the one before was taken
//! ```
//!
//! An answer holds the names of its series, never all their samples: a reader
//! who is slow holds no thread, one who leaves ends the work, one who takes
//! nothing for a while loses its place. Series are read when their turn comes:
//! an answer is one moment of each part, not of the database.
//!
//! Tested by `tests/http/reading.rs`, `export.rs` and `remote_read.rs`.

mod asked;
mod brief;
mod cardinality;
pub(super) mod corrections;
mod delete_series;
mod envelope;
mod export;
mod federate;
pub(super) mod groups;
mod influx_delete;
mod labels;
mod lateness;
mod list;
mod metadata;
mod packing;
mod parameters;
pub(super) mod promql;
mod remote;
mod series;
pub(super) mod status;
mod stream;
mod walk;

pub(super) use cardinality::cardinality;
pub(super) use delete_series::delete_series;
pub(super) use export::export;
pub(super) use federate::federate;
pub(super) use influx_delete::influx_delete;
pub(super) use labels::{label_values, labels, nameless_values};
pub(super) use lateness::lateness;
pub(super) use metadata::metadata;
pub(super) use remote::read;
pub(super) use series::series;
