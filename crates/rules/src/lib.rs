//! Prometheus' rule files as Prometheus 3.16 reads them: parsing and checks, templates, evaluation of
//! recording and alerting rules, unit tests of rules, and which rules feed which.
//!
//! Pure but for [`mod@unit`] and [`load`], which read files: rows come from a
//! [`Source`](latewood_promql::source::Source) and go to a [`Storage`](evaluate::Storage). Reference:
//! <https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/>.
//!
//! ```text
//! text -> yaml (tree with places) -> file (fields, checks, expressions, templates)
//!      -> evaluate: a group at a time: rows, stale marks, states of alerts
//! ```

pub mod correct;
mod decode;
pub mod duration;
pub mod edges;
pub mod evaluate;
mod fault;
mod file;
pub mod lint;
pub mod load;
mod memory;
mod series;
pub mod template;
pub mod unit;
mod yaml;

pub use fault::{Fault, Faults};
pub use file::{Alerting, Group, Kind, Rule, RuleFile};
pub use yaml::{FILE_BYTES_MAX, Place};
